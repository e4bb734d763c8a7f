"""Whether weights and a configuration belong together."""

import re
from collections.abc import Iterable, Mapping, Sequence

from foundation.errors import BertError
from modeling.config import BertConfig


def check_sizes(place: str, shapes: Mapping[str, Sequence[int]], config: BertConfig) -> None:
    """Refuses a configuration that is not that of the weights.

    Args:
        place: path for the message.
        shapes: the release's names to shapes; what is missing is not checked.
        config: BertConfig.

    Raises:
        BertError: names the first tensor that differs with both shapes, or both numbers of layers.
    """
    for name, size in shapes_of(config).items():
        if name in shapes and list(shapes[name]) != size:
            raise BertError(f"{place}: {name} has the shape {list(shapes[name])}, by the configuration it is {size}.")
    layers = number_of_layers(shapes)
    if layers != config.num_hidden_layers:
        raise BertError(f"{place}: has {layers} layers, by the configuration {config.num_hidden_layers} "
                        "(num_hidden_layers).")


def shapes_of(config: BertConfig) -> dict[str, list[int]]:
    """Shapes of variables that show every size of a configuration except the number of layers."""
    hidden = config.hidden_size
    rows = {"word": config.vocab_size, "position": config.max_position_embeddings, "token_type": config.type_vocab_size}
    shapes = {f"bert/embeddings/{kind}_embeddings": [count, hidden] for kind, count in rows.items()}
    shapes["bert/encoder/layer_0/intermediate/dense/kernel"] = [hidden, config.intermediate_size]
    return shapes


def number_of_layers(names: Iterable[str]) -> int:
    """The number of the encoder's layers that variables of these names belong to."""
    return len({found[1] for name in names if (found := re.match(r"bert/encoder/layer_(\d+)/", name))})

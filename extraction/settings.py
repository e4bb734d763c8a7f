"""Settings of an extraction: the lines, the model, which of its vectors are written, and how."""

import dataclasses

from extraction import vector_files
from foundation.errors import BertError
from foundation.settings import DATA, MODEL, OTHER, SAVING, Settings, nested, setting
from modeling.config import BertConfig
from training.settings import HardwareSettings, InitialModelSettings

POOLING = ("none", "pooler", "cls", "mean")


def layers_of(text: str) -> tuple[int, ...]:
    """Layers as they are written on the command line, `-1,-2`. Raises ValueError."""
    try:
        return tuple(int(each) for each in text.split(","))
    except ValueError:
        raise ValueError("not whole numbers separated by commas, such as -1,-2") from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractionSettings(Settings):
    """One `extract_features.py` command."""

    input_file: str = setting(
        group=DATA, released=True,
        help="UTF-8 text with a sequence in each line: `first` or `first ||| second`.")
    output_file: str = setting(group=SAVING, released=True, help="File to write.")
    initial_model: InitialModelSettings = nested(InitialModelSettings, init_checkpoint=dataclasses.MISSING)
    layers: tuple[int, ...] = setting(
        (-1, -2, -3, -4), parse=layers_of, default_text="-1,-2,-3,-4", group=MODEL, released=True,
        help="Layers, separated by commas: 0 is the first, -1 the last.")
    pooling: str = setting(
        "none", choices=POOLING, group=MODEL,
        help="Write one vector for each line instead of one for each token: the model's own (pooler: a tanh layer on "
             "the last layer's [CLS]); or, for each of --layers, that of [CLS] (cls) or the mean over the tokens, "
             "[CLS] and [SEP] included (mean).")
    max_seq_length: int = setting(
        128, at_least=3, group=DATA, released=True,
        help="Maximum word pieces of a sequence, including [CLS] and [SEP]; longer ones are cut.")
    batch_size: int = setting(
        32, at_least=1, group=DATA, released=True, help="Sequences of a batch, over all devices.")
    # The vectors are the result: by default they are as exact as the release's.
    hardware: HardwareSettings = nested(HardwareSettings, precision="float32")
    output_format: str = setting(
        "auto", choices=("auto", *vector_files.FORMATS), group=SAVING,
        help="auto: by the ending of --output_file, jsonl for an unknown one.")
    output_dtype: str = setting(
        "float32", choices=("float32", "float16"), group=SAVING, help="Number format in npz and arrow files.")
    use_one_hot_embeddings: bool = setting(
        False, group=OTHER, released=True,
        help="Accepted for the release's commands, without effect: embeddings are gathered.")

    @property
    def by_token(self) -> bool:
        """Whether each token has a vector of its own; else each line has one."""
        return self.pooling == "none"

    @property
    def different_layers(self) -> tuple[int, ...]:
        """`layers`, each once."""
        return tuple(dict.fromkeys(self.layers))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the vectors: `layer_-1` and so on, or `pooled_output`."""
        if self.pooling == "pooler":
            return ("pooled_output",)
        return tuple(f"layer_{layer}" for layer in self.different_layers)

    def check_layers(self, config: BertConfig) -> None:
        """Raises BertError where a model does not have one of the layers."""
        count = config.num_hidden_layers
        for layer in () if self.pooling == "pooler" else self.layers:
            if not -count <= layer < count:
                valid = f"0 to {count - 1}, or -1 (the last) to -{count}" if count else "none"
                raise BertError(f"--layers: there is no layer {layer}. The model has {count} layers: {valid}.")

"""A model's configuration, its JSON file, and the published sizes."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, get_args

from foundation import files
from foundation.errors import BertError

ACTIVATIONS = ("gelu", "gelu_erf", "relu", "tanh", "linear")

# Hugging Face's names of the same curves. Its plain "gelu" is the erf form, the release's is the tanh form.
HUGGING_FACE_ACTIVATIONS = {
    "gelu": "gelu_erf", "gelu_python": "gelu_erf", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu",
    "gelu_python_tanh": "gelu", "gelu_accurate": "gelu", "gelu_fast": "gelu", "relu": "relu", "tanh": "tanh",
    "linear": "linear",
}
# Keys that only Hugging Face's config.json has.
_HUGGING_FACE_KEYS = ("model_type", "architectures", "transformers_version")

# Sizes fit a 32-bit integer.
_LARGEST = 2**31 - 1

# Fields that the release's JSON does not have: written only where they differ from the default.
_ADDED_FIELDS = ("layer_norm_eps", "causal", "do_lower_case")


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Sizes and dropout rates of one model, under the release's names.

    Attributes:
        vocab_size: rows of the word embedding table.
        hidden_size: width of every token's vector.
        num_hidden_layers: encoder layers.
        num_attention_heads: heads per layer; divides `hidden_size`.
        intermediate_size: inner width of the feed-forward half.
        hidden_act: "gelu" (the tanh form, as the release computes it), "gelu_erf", "relu", "tanh" or "linear" (none).
        hidden_dropout_prob: dropout of embeddings and of each residual branch.
        attention_probs_dropout_prob: dropout of attention probabilities.
        max_position_embeddings: the longest sequence.
        type_vocab_size: number of segment ids.
        initializer_range: standard deviation of the truncated normal initialiser.
        layer_norm_eps: added to the variance.
        causal: a token attends only to itself and earlier tokens (the left-to-right model of the paper's table 5).
        do_lower_case: whether the vocabulary is lower-cased; None where that is not known.

    Raises:
        BertError: a value is out of range or of the wrong type.
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    causal: bool = False
    do_lower_case: bool | None = None

    def __post_init__(self) -> None:
        problem = _first_problem(self)
        if problem:
            raise BertError(f"BERT configuration: {problem}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "BERT configuration") -> "BertConfig":
        """Reads the release's or Hugging Face's keys; unknown keys are ignored.

        Args:
            values: the JSON object.
            source: the file, for messages.

        Raises:
            BertError: `vocab_size` is missing, or a value is wrong; names the source and the key.
        """
        if not isinstance(values, dict):
            raise BertError(f"{source}: holds {_kind(values)} where a JSON object is expected.")
        if "vocab_size" not in values:
            raise BertError(f"{source}: the key vocab_size is missing.")
        if any(key in values for key in _HUGGING_FACE_KEYS):
            values = _from_hugging_face(values, source)
        elif "hidden_act" in values:
            values = {**values, "hidden_act": _activation_of_release(values["hidden_act"])}
        fields = {field.name: field for field in dataclasses.fields(cls)}
        known = {key: _coerced(fields[key], value) for key, value in values.items() if key in fields}
        try:
            return cls(**known)
        except BertError as error:
            raise BertError(str(error).replace("BERT configuration", source, 1)) from None

    @classmethod
    def from_json_file(cls, path: str) -> "BertConfig":
        """Reads `bert_config.json`. Raises BertError naming file and key of a mistake."""
        return cls.from_dict(files.read_json(path), source=path)

    def to_dict(self) -> dict[str, Any]:
        """The release's keys; keys of this project only where their value is not the default."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        values = dataclasses.asdict(self)
        return {k: v for k, v in values.items() if k not in _ADDED_FIELDS or v != defaults[k]}

    def to_json_file(self, path: str) -> None:
        """Writes `bert_config.json`, atomically."""
        files.write_json(path, self.to_dict())

    def replace(self, **changes: Any) -> "BertConfig":
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads


def _from_hugging_face(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Hugging Face's config.json under the release's keys. Raises BertError for a model that is not a BERT."""
    if (kind := values.get("model_type", "bert")) != "bert":
        raise BertError(f"{source}: the model is a {kind}, not a BERT.")
    if (kind := values.get("position_embedding_type", "absolute")) != "absolute":
        raise BertError(f"{source}: position_embedding_type is {kind!r}; BERT's is 'absolute'.")
    if values.get("add_cross_attention"):
        raise BertError(f"{source}: the model has cross attention (add_cross_attention), BERT has none.")
    act = values.get("hidden_act", "gelu")
    act = HUGGING_FACE_ACTIVATIONS.get(act, act) if isinstance(act, str) else act
    return {"causal": bool(values.get("is_decoder", False)), **values, "hidden_act": act}


def _activation_of_release(act: Any) -> Any:
    """As the release reads it: in any case; null and an empty string are no activation."""
    if act is None or act == "":
        return "linear"
    return act.lower() if isinstance(act, str) else act


def _kind(value: Any) -> str:
    return {list: "a list", str: "a string", type(None): "null"}.get(type(value), "a number")


def _coerced(field: dataclasses.Field, value: Any) -> Any:
    """A whole number as a float where the field is one: JSON writers differ in 0 and 0.0."""
    if field.type is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST:
        return float(value)
    return value


def _first_problem(config: BertConfig) -> str | None:
    """The first problem of a configuration, as one sentence, or None."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name == "do_lower_case" and value is None:
            continue
        # type() and not isinstance: JSON's true is an int in Python.
        if type(value) not in (field.type, *get_args(field.type)):
            return f"{field.name} is {repr(value)[:40]}, not {_TYPE_NAMES.get(field.type, 'true or false')}."
        if field.type is int and value < (0 if field.name == "num_hidden_layers" else 1):
            return f"{field.name} is {str(value)[:40]}; it must be at least 1."
        if field.type is int and value > _LARGEST:
            return f"{field.name} is {str(value)[:40]}; it must be at most {_LARGEST}."
        if field.type is float and not math.isfinite(value):
            return f"{field.name} is {value}; it must be a finite number."
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        if not 0.0 <= getattr(config, name) < 1.0:
            return f"{name} is {getattr(config, name)}; it must be in [0, 1)."
    for name in ("initializer_range", "layer_norm_eps"):
        if not getattr(config, name) > 0.0:
            return f"{name} is {getattr(config, name)}; it must be positive."
    if config.hidden_size % config.num_attention_heads:
        return (
            f"hidden_size {config.hidden_size} is not a multiple of num_attention_heads {config.num_attention_heads}."
        )
    if config.hidden_act not in ACTIVATIONS:
        return f"hidden_act is {config.hidden_act[:40]!r}; supported are {', '.join(ACTIVATIONS)}."
    return None


_TYPE_NAMES: dict[Any, str] = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}


def _sized(layers: int, hidden: int, heads: int) -> BertConfig:
    return BertConfig(
        vocab_size=30522,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
    )


# Named sizes, with the uncased vocabulary: `PRESETS["mini"].replace(vocab_size=16000)`.
PRESETS = {
    # The released miniatures (Turc et al. 2019).
    "tiny": _sized(2, 128, 2),
    "mini": _sized(4, 256, 4),
    "small": _sized(4, 512, 8),
    "medium": _sized(8, 512, 8),
    # The paper's models.
    "base": _sized(12, 768, 12),
    "large": _sized(24, 1024, 16),
    # The further sizes of the paper's table 6.
    "table6_3_768_12": _sized(3, 768, 12),
    "table6_6_768_3": _sized(6, 768, 3),
    "table6_6_768_12": _sized(6, 768, 12),
    "table6_12_1024_16": _sized(12, 1024, 16),
}

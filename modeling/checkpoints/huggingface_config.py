"""Hugging Face's `config.json`: a model's configuration and the names of its classes."""

import os
from typing import Any

from foundation.errors import BertError
from modeling.checkpoints import tokenizer_files
from modeling.config import BertConfig

CONFIG = "config.json"

_TO_THEIR_ACTIVATION = {"gelu": "gelu_new", "gelu_erf": "gelu"}


def values_in(folder: str) -> dict[str, Any]:
    """The values in a folder's `config.json`; empty where there is none."""
    return tokenizer_files.json_object(os.path.join(folder, CONFIG)) or {}


def values_of(config: BertConfig, architecture: str, labels: list[str] | None = None) -> dict[str, Any]:
    """The values of a `config.json`.

    Args:
        config: BertConfig.
        architecture: name of the class that loads the folder.
        labels: names of the classes in the order of their numbers, or None.
    """
    values = config.to_dict() | {
        "architectures": [architecture],
        "dtype": "float32",
        "hidden_act": _TO_THEIR_ACTIVATION.get(config.hidden_act, config.hidden_act),
        "is_decoder": config.causal,
        "layer_norm_eps": config.layer_norm_eps,
        "model_type": "bert",
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
    }
    values.pop("causal", None)
    if labels is not None:
        values["id2label"] = {str(index): label for index, label in enumerate(labels)}
        values["label2id"] = {label: index for index, label in enumerate(labels)}
    return values


def architecture_of(values: dict[str, Any], folder: str) -> str | None:
    """The class that wrote a folder, by the values of its `config.json`; None where it has no name.

    Raises:
        BertError: `architectures` is not a list of names.
    """
    found = values.get("architectures") or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise BertError(f"{os.path.join(folder, CONFIG)}: architectures is not a list of names.")
    return found[0] if found else None


def labels_of(values: dict[str, Any]) -> list[str] | None:
    """Names of the classes in the order of their numbers, from the values of a `config.json`; None where unnamed."""
    named = values.get("id2label")
    if not isinstance(named, dict) or sorted(named) != sorted(map(str, range(len(named)))):
        return None
    return [str(named[str(index)]) for index in range(len(named))]

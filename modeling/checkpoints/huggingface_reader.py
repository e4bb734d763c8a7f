"""Reads a Hugging Face checkpoint under the release's names and in its layout."""

import collections
import os
import re
from typing import Any

import numpy as np
import safetensors

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import huggingface_config, huggingface_shards
from modeling.checkpoints import huggingface_names as names

_FLOATS = ("F64", "F32", "F16", "BF16")
_LAYER = re.compile(r"encoder\.layer\.(\d{1,4})\.")


class Reader:
    """An open checkpoint; see `format.CheckpointReader`. A tensor is read on request.

    Args:
        path: for messages.
        shards: path to open safetensors file.
        architecture: name of the class that wrote the checkpoint, or None.

    Raises:
        BertError: no BERT, two values for one variable, or quantized weights.
    """

    def __init__(self, path: str, shards: dict[str, Any], architecture: str | None) -> None:
        self.path = path
        self._tensors, unknown = _by_release_name(path, _located(shards), architecture)
        self.unknown = tuple(sorted(unknown))
        self.shapes = {name: tensor.shape[::-1] if pair.transposed else tensor.shape
                       for name, (pair, tensor) in self._tensors.items()}

    @property
    def names(self) -> list[str]:
        """Sorted names."""
        return sorted(self.shapes)

    def get(self, name: str) -> np.ndarray:
        """The value of a variable, float32. Raises BertError when the name is unknown or the file is damaged."""
        if name not in self._tensors:
            raise BertError(f"{self.path}: holds no variable {name}.")
        pair, tensor = self._tensors[name]
        value = tensor.read().astype(np.float32, copy=False)
        return value.T if pair.transposed else value


def read(path: str, config: dict[str, Any] | None = None) -> Reader:
    """Opens a checkpoint.

    Args:
        path: a folder, a `.safetensors` file or an index of shards; local or remote.
        config: values of its `config.json`; None reads the file in the same folder, if there is one.

    Raises:
        BertError: no weights, pickled or damaged ones, shards that do not belong together, or not a BERT.
    """
    folder = path if files.is_folder(path) else os.path.dirname(path)
    config = huggingface_config.values_in(folder) if config is None else config
    if (kind := config.get("model_type", "bert")) != "bert":
        raise BertError(f"{path}: the model is a {kind}, not a BERT.")
    return Reader(path, huggingface_shards.open_all(path), huggingface_config.architecture_of(config, folder))


class _Tensor:
    """One tensor of an open safetensors file."""

    def __init__(self, path: str, file: Any, name: str) -> None:
        self.path, self.name, self._file = path, name, file
        part = file.get_slice(name)
        self.shape, self.dtype = list(part.get_shape()), part.get_dtype()

    def read(self) -> np.ndarray:
        try:
            return self._file.get_tensor(self.name)
        except (safetensors.SafetensorError, OSError) as error:
            raise BertError(f"{self.path}: {self.name} cannot be read ({error}).") from None

    def equals(self, other: "_Tensor", rows: int = 4096) -> bool:
        """Whether two tensors are the same, bit for bit, compared some rows at a time."""
        if (self.shape, self.dtype) != (other.shape, other.dtype) or not self.shape:
            return False
        here, there = (tensor._file.get_slice(tensor.name) for tensor in (self, other))
        ends = ((row, min(row + rows, self.shape[0])) for row in range(0, self.shape[0], rows))
        return all(here[start:end].tobytes() == there[start:end].tobytes() for start, end in ends)


def _located(shards: dict[str, Any]) -> dict[str, _Tensor]:
    """The tensors of all shards by their names in the files."""
    return {name: _Tensor(path, file, name) for path, file in shards.items() for name in file.keys()}  # noqa: SIM118


def _by_release_name(path: str, tensors: dict[str, _Tensor], architecture: str | None
                     ) -> tuple[dict[str, tuple[names.Pair, _Tensor]], list[str]]:
    """The tensors that the release has variables for, by its names; the names in the file of the rest."""
    layers = sorted({int(found[1]) for name in tensors if (found := _LAYER.search(name))})
    table = {pair.theirs: pair for pair in names.readable(layers, architecture)}
    unknown, copies = [], collections.defaultdict(list)
    for name, tensor in tensors.items():
        plain = names.TIED.get(_current(name), _current(name))
        if plain in table:
            copies[plain].append(tensor)
        else:
            unknown.append(name)
    if not copies:
        raise BertError(f"{path}: holds none of BERT's tensors (it holds {_some(sorted(tensors))}).")
    return {table[plain].ours: (table[plain], _only(path, table[plain].ours, found))
            for plain, found in copies.items()}, unknown


def _only(path: str, ours: str, found: list[_Tensor]) -> _Tensor:
    """The first of a file's tensors for one variable; further ones must be equal, and all of them plain floats."""
    for other in found[1:]:
        if not found[0].equals(other):
            raise BertError(f"{path}: {found[0].name} and {other.name} differ, but are one variable of a BERT "
                            f"({ours}).")
    if found[0].dtype not in _FLOATS:
        raise BertError(f"{path}: {found[0].name} holds {found[0].dtype}: the model is quantized. Give its weights in "
                        "float32 or float16.")
    return found[0]


def _current(name: str) -> str:
    """A tensor's name as today's classes write it: LayerNorm's weight and bias, the encoder under `bert.`."""
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    return f"bert.{name}" if name.startswith(("embeddings.", "encoder.", "pooler.")) else name


def _some(found: list[str], limit: int = 3) -> str:
    return ", ".join(found[:limit]) + (" …" if len(found) > limit else "") if found else "nothing"

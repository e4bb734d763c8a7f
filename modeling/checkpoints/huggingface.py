"""Checkpoints in Hugging Face's layout: a folder with `config.json` and `model.safetensors`, whole or in shards.

Tensors are given and taken under the release's names and in its layout; `huggingface_names` holds the table.
"""

import collections
import dataclasses
import json
import os
import re
import tempfile

import keras
import numpy as np
import safetensors

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import huggingface_names as names
from modeling.checkpoints.huggingface_folder import (
    CONFIG,
    config_from_json,
    config_to_json,
    config_values,
    labels_of,
    lower_case_of,
    vocabulary_of,
    write_tokenizer,
)
from modeling.checkpoints.sizes import check_sizes

__all__ = ["Reader", "Written", "config_from_json", "config_to_json", "config_values", "labels_of", "lower_case_of",
           "read", "vocabulary_of", "write"]

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"

_FLOATS = ("F64", "F32", "F16", "BF16")
_PICKLES = (".bin", ".pt", ".pth", ".pkl")
_OTHER_WEIGHTS = (".h5", ".msgpack", ".onnx", ".ot")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.safetensors$")
_LAYER = re.compile(r"encoder\.layer\.(\d{1,4})\.")


class Reader:
    """An open checkpoint; a tensor is read when it is asked for.

    Attributes:
        shapes: dict, the release's names to lists of int.
        unknown: tuple of the file's own names of tensors that the release has no variable for.
    """

    def __init__(self, path, shards, architecture):
        self.path = path
        self._tensors, unknown = _by_release_name(path, _located(shards), architecture)
        self.unknown = tuple(sorted(unknown))
        self.shapes = {name: tensor.shape[::-1] if pair.transposed else tensor.shape
                       for name, (pair, tensor) in self._tensors.items()}

    @property
    def names(self):
        """Sorted names."""
        return sorted(self.shapes)

    def get(self, name):
        """A variable's value, float32. Raises BertError where the file has no such name, or is damaged."""
        if name not in self._tensors:
            raise BertError(f"{self.path}: holds no variable {name}.")
        pair, tensor = self._tensors[name]
        value = tensor.read().astype(np.float32, copy=False)
        return value.T if pair.transposed else value


def read(path, config=None):
    """Opens a checkpoint.

    Args:
        path: a folder, or a `.safetensors` file; local or remote.
        config: values of its `config.json`; None reads the file beside the weights, if there is one.

    Returns:
        Reader.

    Raises:
        BertError: no weights there, pickled or damaged ones, shards that do not belong together, or no BERT.
    """
    folder = path if files.is_folder(path) else os.path.dirname(path)
    config = (config_values(folder) or {}) if config is None else config
    if (kind := config.get("model_type", "bert")) != "bert":
        raise BertError(f"{path}: the model is a {kind}, not a BERT.")
    return Reader(path, _shards(path), next(iter(config.get("architectures") or ()), None))


@dataclasses.dataclass(frozen=True)
class Written:
    """What `write` wrote.

    Attributes:
        architecture: the class of `transformers` that loads it.
        left_out: names that this class has no tensor for, as the pooler or an optimizer's slots.
    """

    architecture: str
    left_out: tuple


def write(folder, values, config, tokens=None, do_lower_case=None, labels=None):
    """Writes a folder that `from_pretrained` of one class loads with no key missing and none too many.

    Args:
        folder: made where it does not exist.
        values: the release's names to arrays or variables: a dict, or a reader (`names`, `get`), of which only one
            tensor is in memory at a time.
        config: BertConfig.
        tokens: list of str, word pieces in the order of their ids; None writes no vocabulary.
        do_lower_case: whether the vocabulary is of lower-cased text; None takes the configuration's word.
        labels: names of the classes, in the order of their numbers; None numbers them.

    Returns:
        Written.

    Raises:
        BertError: a tensor that the class needs is missing, sizes are not the configuration's or the labels', or the
            disk is full.
    """
    get, known = (values.get, values.names) if hasattr(values, "shapes") else (values.__getitem__, list(values))
    held = set(known)
    architecture = names.architecture_of(held, config.causal)
    pairs = names.pairs(range(config.num_hidden_layers), architecture)
    if architecture == "BertModel":
        # The class alone has no prefix, and may be without a pooler.
        pairs = [pair._replace(theirs=pair.theirs.removeprefix("bert.")) for pair in pairs
                 if pair.ours in held or "/pooler/" not in pair.ours]
    missing = [pair.ours for pair in pairs if pair.ours not in held]
    if missing:
        raise BertError(f"{folder}: {architecture} needs {missing[0]}, which the checkpoint does not hold"
                        f"{f' ({len(missing)} are missing)' if len(missing) > 1 else ''}.")
    check_sizes(folder, {name: _shape(values, names.Pair("", name)) for name in held}, config)
    labels = _labels(folder, architecture, values, labels)
    files.make_folder(folder)
    _write_tensors(os.path.join(folder, WEIGHTS), {pair.theirs: (pair, _shape(values, pair)) for pair in pairs}, get)
    lower_case = config.do_lower_case if do_lower_case is None else do_lower_case
    write_tokenizer(folder, config, tokens, lower_case)
    files.write_json(os.path.join(folder, CONFIG), config_to_json(config, architecture, labels))
    written = {pair.ours for pair in pairs}
    return Written(architecture, tuple(name for name in known if name not in written))


def _labels(folder, architecture, values, labels):
    """The classes' names for the classes that have them, None for the others."""
    if architecture not in ("BertForSequenceClassification", "BertForTokenClassification"):
        return None
    name = names.head_of(architecture)
    count = _shape(values, names.Pair("", name))[0]
    if labels is not None and len(labels) != count:
        raise BertError(f"{folder}: {name} has {count} rows for {len(labels)} labels.")
    return [f"LABEL_{index}" for index in range(count)] if labels is None else list(labels)


def _shape(values, pair):
    """A tensor's shape as it is written."""
    shape = list(values.shapes[pair.ours] if hasattr(values, "shapes") else values[pair.ours].shape)
    return shape[::-1] if pair.transposed else shape


def _write_tensors(path, tensors, get):
    """Writes a safetensors file a tensor at a time: length of the header, header (JSON), values.

    Args:
        tensors: dict, name in the file to (Pair, shape).
        get: function of the release's name to an array or variable.
    """
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, (_, shape) in tensors.items():
        start, end = end, end + 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": [int(size) for size in shape], "data_offsets": [start, end]}
    header = json.dumps(header, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with files.atomic(path) as temporary, files.open_file(temporary, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for pair, _ in tensors.values():
            value = keras.ops.convert_to_numpy(get(pair.ours)).astype("<f4", copy=False)
            file.write((value.T if pair.transposed else value).tobytes())


class _Tensor:
    """One tensor of an open safetensors file."""

    def __init__(self, path, file, name):
        self.path, self.name, self._file = path, name, file
        part = file.get_slice(name)
        self.shape, self.dtype = list(part.get_shape()), part.get_dtype()

    def read(self):
        try:
            return self._file.get_tensor(self.name)
        except (safetensors.SafetensorError, OSError) as error:
            raise BertError(f"{self.path}: {self.name} cannot be read ({error}).") from None

    def equals(self, other, rows=4096):
        """Whether two tensors are the same, bit for bit, compared some rows at a time."""
        if (self.shape, self.dtype) != (other.shape, other.dtype) or not self.shape:
            return False
        here, there = (tensor._file.get_slice(tensor.name) for tensor in (self, other))
        ends = ((row, min(row + rows, self.shape[0])) for row in range(0, self.shape[0], rows))
        return all(here[start:end].tobytes() == there[start:end].tobytes() for start, end in ends)


def _located(shards):
    """dict, a tensor's name in the file to _Tensor, of all shards."""
    return {name: _Tensor(path, file, name) for path, file in shards.items() for name in file.keys()}  # noqa: SIM118


def _by_release_name(path, tensors, architecture):
    """What of a file the release has variables for.

    Args:
        tensors: dict, name in the file to _Tensor.
        architecture: name of the class that wrote the file, or None.

    Returns:
        dict of the release's name to (Pair, _Tensor); list of the names in the file that it has none for.
    """
    layers = sorted({int(found[1]) for name in tensors if (found := _LAYER.search(name))})
    table = {pair.theirs: pair for pair in names.readable(layers, architecture)}
    known, unknown, copies = {}, [], collections.defaultdict(list)
    for name, tensor in tensors.items():
        plain = names.TIED.get(_current(name), _current(name))
        if plain in table:
            copies[plain].append(tensor)
        else:
            unknown.append(name)
    for plain, found in copies.items():
        for other in found[1:]:
            if not found[0].equals(other):
                raise BertError(f"{path}: {found[0].name} and {other.name} differ, and are one variable of a BERT "
                                f"({table[plain].ours}).")
        if found[0].dtype not in _FLOATS:
            raise BertError(f"{path}: {found[0].name} holds {found[0].dtype}: the model is quantized. Give its weights "
                            f"in float32 or float16.")
        known[table[plain].ours] = table[plain], found[0]
    if not known:
        raise BertError(f"{path}: holds none of BERT's tensors (it holds {_some(sorted(tensors))}).")
    return known, unknown


def _current(name):
    """A tensor's name as classes of today write it: LayerNorm's weight and bias, the encoder under `bert.`."""
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    return f"bert.{name}" if name.startswith(("embeddings.", "encoder.", "pooler.")) else name


def _shards(path):
    """Opens all files of a checkpoint: dict, path to open safetensors file."""
    if not files.is_folder(path):
        if (part := _SHARD.search(path)) and int(part[2]) > 1:
            raise BertError(f"{path}: one of {int(part[2])} parts. Give their folder.")
        return _indexed(path) if path.endswith(".index.json") else {path: _open(path)}
    if files.exists(whole := os.path.join(path, WEIGHTS)):
        return {whole: _open(whole)}
    if files.exists(index := os.path.join(path, INDEX)):
        return _indexed(index)
    raise BertError(_nothing_in(path))


def _nothing_in(folder):
    """What a folder holds instead of weights that can be read, as one line."""
    found = sorted(files.names_in(folder))
    if shards := [name for name in found if _SHARD.search(name)]:
        return f"{folder}: {shards[0]} is one of several parts; their index, {INDEX}, is missing. Copy it too."
    if pickles := [name for name in found if name.endswith(_PICKLES)]:
        return _pickled(os.path.join(folder, min(pickles, key=lambda name: not name.startswith("pytorch_model"))))
    if others := [name for name in found if name.endswith(_OTHER_WEIGHTS)]:
        return f"{folder}: holds {others[0]} and no {WEIGHTS}. {_HOW_TO_CONVERT}"
    single = [name for name in found if name.endswith(".safetensors")]
    advice = f" Give the path of {single[0]} itself." if single else ""
    return f"{folder}: no checkpoint there ({WEIGHTS} or bert_model.ckpt.index).{advice}"


_HOW_TO_CONVERT = "With transformers, from_pretrained(folder).save_pretrained(folder) writes model.safetensors."


def _pickled(path):
    return (f"{path}: a pickled PyTorch file, which may run any code when it is opened, is not read. Where you trust "
            f"it, load it with transformers and write safetensors: save_pretrained(folder, safe_serialization=True).")


def _indexed(index):
    """Opens the shards that an index names, and no others; each must hold what the index says."""
    values = files.read_json(index)
    places = values.get("weight_map") if isinstance(values, dict) else None
    if not isinstance(places, dict) or not places or not all(isinstance(place, str) for place in places.values()):
        raise BertError(f"{index}: names no shard of any tensor (weight_map).")
    folder, expected = os.path.dirname(index), collections.defaultdict(set)
    for name, shard in places.items():
        if os.path.basename(shard) != shard:
            raise BertError(f"{index}: the shard {shard!r} is not in its folder.")
        expected[shard].add(name)
    missing = [shard for shard in sorted(expected) if not files.exists(os.path.join(folder, shard))]
    if missing:
        raise BertError(f"{index}: {len(missing)} of {len(expected)} shards are not there, the first is {missing[0]}.")
    said = {int(found[2]) for shard in expected if (found := _SHARD.search(shard))}
    if said and said != {len(expected)}:
        raise BertError(f"{index}: names {len(expected)} shards, and the shards' names say {max(said)}.")
    shards = {}
    for shard, tensors in sorted(expected.items()):
        path = os.path.join(folder, shard)
        shards[path] = _open(path)
        held = set(shards[path].keys())
        lacking, more = sorted(tensors - held), sorted(held - tensors)
        if lacking or more:
            what = (f"lacks {lacking[0]}, which the index names" if lacking else
                    f"holds {more[0]}, which the index does not name")
            raise BertError(f"{path}: {what}. The shards are of different checkpoints.")
    return shards


def _open(path):
    """An open safetensors file. A remote one is copied for as long as it is open."""
    _refuse_other_formats(path)
    try:
        if not files.is_remote(path):
            # Read and not mapped: pages of a mapped file would count as memory of the process.
            return safetensors.safe_open(path, "np", backend="pread")
        with tempfile.TemporaryDirectory() as folder:
            files.copy(path, copy := os.path.join(folder, WEIGHTS))
            return safetensors.safe_open(copy, "np", backend="pread")
    except (safetensors.SafetensorError, OSError) as error:
        raise BertError(f"{path}: not a whole safetensors file ({error}).") from None


def _refuse_other_formats(path):
    if not files.exists(path):
        raise BertError(f"{path}: no such file.")
    with files.open_file(path, "rb") as file:
        start = file.read(16)
    if start[8:9] == b"{":
        return
    if start[:4] == b"PK\x03\x04" or (start[:1] == b"\x80" and start[1:2] <= b"\x05") or path.endswith(_PICKLES):
        raise BertError(_pickled(path))
    if start[:4] == b"\x89HDF" or path.endswith(_OTHER_WEIGHTS):
        raise BertError(f"{path}: not a safetensors file. {_HOW_TO_CONVERT}")


def _some(found, limit=3):
    return ", ".join(found[:limit]) + (" …" if len(found) > limit else "") if found else "nothing"

"""Opens the safetensors files of a Hugging Face checkpoint, one or several shards, and refuses everything else."""

import collections
import os
import re
import tempfile
from typing import Any

import safetensors

from foundation import files
from foundation.errors import BertError

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"

_PICKLES = (".bin", ".pt", ".pth", ".pkl")
_OTHER_WEIGHTS = (".h5", ".msgpack", ".onnx", ".ot")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.safetensors$")
_HOW_TO_CONVERT = "With transformers, from_pretrained(folder).save_pretrained(folder) writes model.safetensors."


def find(path: str) -> str | None:
    """The safetensors file or the index of shards that a path, or the folder that it names, has; None without one."""
    if files.is_folder(path):
        return next((file for name in (WEIGHTS, INDEX) if files.exists(file := os.path.join(path, name))), None)
    if not files.exists(path):
        return None
    return path if path.endswith((".safetensors", ".safetensors.index.json")) or _is_safetensors(path) else None


def refusal(path: str) -> str | None:
    """Why the weights at a path are not read, such as pickled ones; None without an explanation."""
    if files.is_folder(path):
        return _refusal_of_folder(path)
    return _refusal_of_file(path) if files.exists(path) else None


def open_all(path: str) -> dict[str, Any]:
    """Opens all files of a checkpoint.

    Args:
        path: a folder, a `.safetensors` file or an index of shards.

    Returns:
        dict, path to open safetensors file.

    Raises:
        BertError: no weights, pickled or damaged ones, or shards that do not belong together.
    """
    if files.is_folder(path):
        if not (found := find(path)):
            raise BertError(_refusal_of_folder(path) or f"{path}: holds no {WEIGHTS}.")
        path = found
    if (part := _SHARD.search(path)) and int(part[2]) > 1:
        raise BertError(f"{path}: one of {int(part[2])} shards. Give their folder.")
    return _indexed(path) if path.endswith(".index.json") else {path: _open(path)}


def _indexed(index: str) -> dict[str, Any]:
    """Opens the shards that an index names; each must hold exactly the tensors that the index lists for it."""
    expected = _tensors_of_shards(index)
    folder = os.path.dirname(index)
    missing = [shard for shard in sorted(expected) if not files.exists(os.path.join(folder, shard))]
    if missing:
        raise BertError(f"{index}: {len(missing)} of {len(expected)} shards are missing, the first is {missing[0]}.")
    counts = {int(found[2]) for shard in expected if (found := _SHARD.search(shard))}
    if counts and counts != {len(expected)}:
        raise BertError(f"{index}: lists {len(expected)} shards, but their names count {max(counts)}.")
    shards = {}
    for shard, tensors in sorted(expected.items()):
        path = os.path.join(folder, shard)
        shards[path] = _open(path)
        held = set(shards[path].keys())
        lacking, more = sorted(tensors - held), sorted(held - tensors)
        if lacking or more:
            problem = (f"lacks {lacking[0]}, which the index lists" if lacking else
                       f"holds {more[0]}, which the index does not list")
            raise BertError(f"{path}: {problem}. The shards are of different checkpoints.")
    return shards


def _tensors_of_shards(index: str) -> dict[str, set[str]]:
    """Which tensors an index lists for each shard."""
    values = files.read_json(index)
    places = values.get("weight_map") if isinstance(values, dict) else None
    if not isinstance(places, dict) or not places or not all(isinstance(place, str) for place in places.values()):
        raise BertError(f"{index}: lists no shard of any tensor (weight_map).")
    expected = collections.defaultdict(set)
    for name, shard in places.items():
        if os.path.basename(shard) != shard:
            raise BertError(f"{index}: the shard {shard!r} is not in its folder.")
        expected[shard].add(name)
    return expected


def _open(path: str) -> Any:
    """An open safetensors file. A remote one is copied for as long as it is open."""
    if not files.exists(path):
        raise BertError(f"{path}: no such file.")
    if reason := _refusal_of_file(path):
        raise BertError(reason)
    try:
        if not files.is_remote(path):
            # Read and not mapped: pages of a mapped file would count as memory of the process.
            return safetensors.safe_open(path, "np", backend="pread")
        with tempfile.TemporaryDirectory() as folder:
            files.copy(path, copy := os.path.join(folder, WEIGHTS))
            return safetensors.safe_open(copy, "np", backend="pread")
    except (safetensors.SafetensorError, OSError) as error:
        raise BertError(f"{path}: damaged, or not a safetensors file ({error}).") from None


def _refusal_of_folder(folder: str) -> str | None:
    found = files.names_in(folder)
    if shards := [name for name in found if _SHARD.search(name)]:
        return f"{folder}: {shards[0]} is one of several shards, but their index, {INDEX}, is missing. Copy it too."
    if pickles := [name for name in found if name.endswith(_PICKLES)]:
        return _pickled(os.path.join(folder, min(pickles, key=lambda name: not name.startswith("pytorch_model"))))
    if others := [name for name in found if name.endswith(_OTHER_WEIGHTS)]:
        return f"{folder}: holds {others[0]} and no {WEIGHTS}. {_HOW_TO_CONVERT}"
    if single := [name for name in found if name.endswith(".safetensors")]:
        return f"{folder}: holds no {WEIGHTS}. Give the path of {single[0]} itself."
    return None


def _refusal_of_file(path: str) -> str | None:
    start = _start_of(path)
    if _is_header(start):
        return None
    if start[:4] == b"PK\x03\x04" or (start[:1] == b"\x80" and start[1:2] <= b"\x05") or path.endswith(_PICKLES):
        return _pickled(path)
    if start[:4] == b"\x89HDF" or path.endswith(_OTHER_WEIGHTS):
        return f"{path}: not a safetensors file. {_HOW_TO_CONVERT}"
    return None


def _is_safetensors(path: str) -> bool:
    return _is_header(_start_of(path))


def _is_header(start: bytes) -> bool:
    """Whether a file's first bytes are safetensors': eight of length, then a JSON object."""
    return start[8:9] == b"{"


def _start_of(path: str) -> bytes:
    with files.open_file(path, "rb") as file:
        return file.read(16)


def _pickled(path: str) -> str:
    return (f"{path}: a pickled PyTorch file, which can run any code when it is opened, is not read. If you trust it, "
            "load it with transformers and write safetensors: save_pretrained(folder, safe_serialization=True).")

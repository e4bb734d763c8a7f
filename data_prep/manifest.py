"""What a set of record files was made of, and whether files that are already there are these."""

import dataclasses
import os
import re

from foundation import files
from foundation.errors import BertError

_SHARDED = re.compile(r"(.+)@(\d+)")
# What must be the same for records to be the same.
_DEFINING = ("format", "settings", "vocabulary", "inputs")
FORMAT = 1


def output_files(names):
    """Expands --output_file.

    Args:
        names: "a.tfrecord,b.tfrecord", or "a.tfrecord@4" for a.tfrecord-00000-of-00004 and so on, or both.

    Returns:
        files: list of str.
        manifest: path of the manifest, beside the first file.

    Raises:
        BertError: no name, a name twice, or no shards.
    """
    outputs, first = [], None
    for name in filter(None, (name.strip() for name in names.split(","))):
        stem, shards = name, None
        if match := _SHARDED.fullmatch(name):
            stem, shards = match[1], int(match[2])
        first = first or stem
        if shards is None:
            outputs.append(stem)
        elif 1 <= shards <= 99_999:
            outputs += [f"{stem}-{shard:05d}-of-{shards:05d}" for shard in range(shards)]
        else:
            raise BertError(f"--output_file={name}: the number after @ must be from 1 to 99999.")
    if not outputs:
        raise BertError("--output_file names no file.")
    if len(set(outputs)) < len(outputs):
        raise BertError(f"--output_file={names} names a file twice.")
    return outputs, f"{first}.manifest.json"


def describe(corpus, instances, vocabulary, inputs):
    """The part of the manifest that is known before the work begins, and that defines the records.

    Args:
        corpus: `CorpusSettings`.
        instances: `InstanceSettings`.
        vocabulary: `Vocabulary`.
        inputs: list of input files.

    Returns:
        dict for JSON.
    """
    settings = {**dataclasses.asdict(corpus), **dataclasses.asdict(instances)}
    settings["masking_mix"] = list(instances.masking_mix)
    vocab_file = settings.pop("vocab_file")
    return {
        "format": FORMAT,
        "settings": settings,
        "vocabulary": {"path": vocab_file, "size": vocabulary.size, "sha256": vocabulary.sha256},
        "inputs": [{"path": path, "bytes": files.size(path)} for path in inputs],
    }


def already_made(path, outputs, description, overwrite):
    """Whether the outputs are there already, made of the same things.

    Args:
        path: of the manifest.
        outputs: list of output files.
        description: from `describe`.
        overwrite: files that are there may be replaced.

    Returns:
        the manifest's content if all is there and the same, None if the outputs are to be made.

    Raises:
        BertError: there are files of other settings, or of unknown origin, and `overwrite` is false.
    """
    if overwrite:
        return None
    if files.exists(path):
        found = files.read_json(path)
        if difference := _difference(found, description):
            raise BertError(
                f"{path}: the records there were made with {difference}. Give another --output_file, or pass "
                f"--overwrite."
            )
        made = {os.path.join(os.path.dirname(path), output["name"]): output["bytes"] for output in found["outputs"]}
        if set(made) == set(outputs) and all(_size(output) == made[output] for output in outputs):
            return found
        return None
    for output in outputs:
        if files.exists(output):
            raise BertError(
                f"{output}: exists, and {path} does not say what it is made of. Give another --output_file, or pass "
                f"--overwrite."
            )
    return None


def _difference(found, wanted):
    """The first defining value that differs, in words; None where all are the same."""
    for name in _DEFINING:
        old, new = found.get(name), wanted[name]
        if name == "settings" and old is not None:
            for flag in new:
                if old.get(flag) != new[flag]:
                    return f"--{flag}={_as_flag(old.get(flag))}, not {_as_flag(new[flag])}"
        elif name == "vocabulary" and old is not None:
            if old["sha256"] != new["sha256"]:
                return f"another vocabulary ({old['path']}, {old['size']} pieces)"
        elif old != new:
            return f"other {name}"
    return None


def _as_flag(value):
    if isinstance(value, list):
        return ",".join(f"{100 * share:g}" for share in value)
    return str(value).lower() if isinstance(value, bool) else value


def _size(path):
    return files.size(path) if files.exists(path) else None

"""What a set of record files was made from, and whether files that exist were made from the same."""

import dataclasses
import os
import re
from typing import Any

from data_prep.records import MANIFEST_SUFFIX
from data_prep.settings import CorpusSettings, InstanceSettings, masking_mix_text
from foundation import files
from foundation.errors import BertError
from tokenization.vocabulary import Vocabulary

FORMAT = 1
_NUMBERED = re.compile(r"(.+)@(\d+)")
# What must be the same for records to be the same.
_DEFINING = ("format", "settings", "vocabulary", "inputs")


def output_files(names: str) -> tuple[list[str], str]:
    """Expands --output_file.

    Args:
        names: "a.tfrecord,b.tfrecord", or "a.tfrecord@4" for a.tfrecord-00000-of-00004 and so on, or both.

    Returns:
        The files, and the path of the manifest, which is next to the first file.

    Raises:
        BertError: no name, a name twice, or a number of files that cannot be.
    """
    outputs: list[str] = []
    first = ""
    for name in filter(None, (name.strip() for name in names.split(","))):
        match = _NUMBERED.fullmatch(name)
        stem = match[1] if match else name
        first = first or stem
        if not match:
            outputs.append(name)
        elif 1 <= (total := int(match[2])) <= 99_999:
            outputs += [f"{stem}-{number:05d}-of-{total:05d}" for number in range(total)]
        else:
            raise BertError(f"--output_file={name}: the number after @ must be from 1 to 99999.")
    if not outputs:
        raise BertError("--output_file names no file.")
    if len(set(outputs)) < len(outputs):
        raise BertError(f"--output_file={names} names a file twice.")
    return outputs, first + MANIFEST_SUFFIX


def describe(corpus: CorpusSettings, instances: InstanceSettings, vocabulary: Vocabulary, inputs: list[str]
             ) -> dict[str, Any]:
    """The part of the manifest that is known before the work begins, and that defines the records.

    Args:
        corpus: CorpusSettings.
        instances: InstanceSettings.
        vocabulary: Vocabulary.
        inputs: input files.

    Returns:
        A dict that JSON can hold.
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


def already_made(path: str, outputs: list[str], description: dict[str, Any], overwrite: bool) -> dict[str, Any] | None:
    """Whether the outputs exist already, made from the same things.

    Args:
        path: of the manifest.
        outputs: output files.
        description: from `describe`.
        overwrite: whether files that exist may be replaced.

    Returns:
        The manifest's content if everything exists and is the same, None if the outputs are to be made.

    Raises:
        BertError: files of other settings or of unknown origin exist, and `overwrite` is false.
    """
    if overwrite:
        return None
    if files.exists(path):
        found = files.read_json(path)
        if difference := _difference(found, description):
            raise BertError(
                f"{path}: these records were made with {difference}. Give another --output_file, or pass --overwrite.")
        made = {os.path.join(os.path.dirname(path), output["name"]): output["bytes"] for output in found["outputs"]}
        if set(made) == set(outputs) and all(_size(output) == made[output] for output in outputs):
            return found
        return None
    for output in outputs:
        if files.exists(output):
            raise BertError(
                f"{output}: exists, and no {path} describes it. Give another --output_file, or pass --overwrite.")
    return None


def _difference(found: dict[str, Any], wanted: dict[str, Any]) -> str | None:
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


def _as_flag(value: Any) -> Any:
    if isinstance(value, list):
        return masking_mix_text(tuple(value))
    return str(value).lower() if isinstance(value, bool) else value


def _size(path: str) -> int | None:
    return files.size(path) if files.exists(path) else None

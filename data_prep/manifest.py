"""What a set of record files was made from, and whether files that exist were made from the same."""

import concurrent.futures
import dataclasses
import os
import re
from typing import Any

from data_prep import output_paths, records
from data_prep.records import MANIFEST_SUFFIX
from data_prep.settings import CorpusSettings, InstanceSettings, masking_mix_text
from foundation import files, state
from foundation.counting import counted
from foundation.errors import BertError
from tokenization.vocabulary import Vocabulary

FORMAT = 2
_NUMBERED = re.compile(r"(.+)@(\d+)")
# What a job counts.
COUNTS = ("corpus_documents", "corpus_sentences", "corpus_tokens", "corpus_bad_lines", "instances", "tokens",
          "predictions", "random", "full")


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
    if len(set(map(output_paths.canonical, outputs))) < len(outputs):
        raise BertError(f"--output_file={names} names a file twice.")
    return outputs, first + MANIFEST_SUFFIX


def describe(corpus: CorpusSettings, instances: InstanceSettings, vocabulary: Vocabulary, inputs: list[str],
             num_threads: int = 1) -> dict[str, Any]:
    """The part of the manifest that is known before the work begins, and that defines the records.

    Args:
        corpus: CorpusSettings.
        instances: InstanceSettings.
        vocabulary: Vocabulary.
        inputs: input files. They are read to the end: only their content tells whether a text is the same.
        num_threads: that read them.

    Returns:
        A dict that JSON can hold.

    Raises:
        BertError: an input cannot be read.
    """
    settings = {**dataclasses.asdict(corpus), **dataclasses.asdict(instances)}
    settings["masking_mix"] = list(instances.masking_mix)
    vocab_file = settings.pop("vocab_file")
    return {
        "format": FORMAT,
        "settings": settings,
        "vocabulary": {"path": vocab_file, "size": vocabulary.size, "sha256": vocabulary.sha256},
        "inputs": _describe_inputs(inputs, num_threads),
    }


def _describe_inputs(paths: list[str], num_threads: int) -> list[dict[str, Any]]:
    def describe_one(path: str) -> dict[str, Any]:
        try:
            return {"path": path, "bytes": files.size(path), "sha256": files.sha256(path)}
        except files.errors() as error:
            raise files.unreadable(path, error) from None

    with concurrent.futures.ThreadPoolExecutor(num_threads) as pool:
        return list(pool.map(describe_one, paths))


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
        found = records.read_manifest(path)
        if difference := _difference(found, description):
            raise BertError(
                f"{path}: these records were made with {difference}. Give another --output_file, or pass --overwrite.")
        made = {os.path.join(os.path.dirname(path), output["name"]): output["bytes"] for output in found["outputs"]}
        if set(made) == set(outputs) and all(_size(output) == made[output] for output in outputs):
            state.read(path, {"counts": dict.fromkeys(COUNTS, int)}, "Pass --overwrite to make the records again.")
            return found
        return None
    for output in outputs:
        if files.exists(output):
            raise BertError(
                f"{output}: exists, and no {path} describes it. Give another --output_file, or pass --overwrite.")
    return None


def _difference(found: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """The first thing that differs and defines the records, in words; None where all are the same."""
    if found.get("format") != FORMAT:
        return "another version of this program"
    for flag, new in wanted["settings"].items():
        old = found["settings"].get(flag)
        if old != new:
            return f"--{flag}={_as_flag(old)}, not {_as_flag(new)}"
    if found["vocabulary"]["sha256"] != wanted["vocabulary"]["sha256"]:
        return f"another vocabulary ({found['vocabulary']['path']}, {found['vocabulary']['size']} pieces)"
    old, new = found["inputs"], wanted["inputs"]
    if len(old) != len(new):
        return f"{counted(len(old), 'input file')}, not {len(new)}"
    # Where the files are does not matter.
    for before, now in zip(old, new):
        if before.get("sha256") != now["sha256"]:
            return f"another content of {now['path']}"
    return None


def _as_flag(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(share, int | float) for share in value):
        return masking_mix_text(tuple(value))
    return str(value).lower() if isinstance(value, bool) else value


def _size(path: str) -> int | None:
    return files.size(path) if files.exists(path) else None

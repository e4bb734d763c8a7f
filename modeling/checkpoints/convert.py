"""A checkpoint of any format into a folder of any format, every tensor bit for bit."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from foundation import files, run_files, vocab_file
from foundation.errors import BertError
from foundation.settings import DATA, MODEL, Settings, setting
from modeling.checkpoints import load, tokenizer_files
from modeling.checkpoints.format import CheckpointReader, Contents
from modeling.checkpoints.formats import FORMATS
from modeling.checkpoints.sizes import check_sizes
from modeling.checkpoints.training_state import lines_of, slots_in
from modeling.config import BertConfig

_MARK = "A conversion was cut short. The same command empties this folder and makes it anew.\n"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConversionSettings(Settings):
    """Settings of `convert_checkpoint.py`."""

    input: str = setting(help="The checkpoint: a prefix, a file or a folder.", group=DATA)
    output: str = setting(
        help="The folder to write. It must not exist, or be empty, or hold this very conversion.", group=DATA)
    format: str = setting(
        help="The format to write. " + " ".join(f"{name}: {FORMATS[name].description}." for name in sorted(FORMATS)),
        group=DATA, choices=tuple(sorted(FORMATS)))
    bert_config_file: str | None = setting(
        None, help="The configuration, where it is not in the checkpoint's folder.", group=MODEL)
    vocab_file: str | None = setting(
        None, help="The vocabulary, where it is not in the checkpoint's folder.", group=MODEL)
    do_lower_case: bool | None = setting(
        None, help="Whether the vocabulary is lower-cased, where the checkpoint does not specify it.", group=MODEL)


@dataclasses.dataclass(frozen=True)
class Conversion:
    """Report of a conversion.

    Attributes:
        source: path of the checkpoint that was read.
        source_format, format: names of the formats before and after.
        folder: the folder that was written.
        written: number of tensors.
        left_out: names in the source that the target has no place for.
        slots: those of them that are optimizer slots.
        notes: what else the user should know, a line each.
        existed: whether the folder held all of it before.
    """

    source: str
    source_format: str
    format: str
    folder: str
    written: int
    left_out: tuple[str, ...]
    slots: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    existed: bool = False

    def summary(self) -> str:
        """A few lines for the console."""
        return "\n".join([
            f"{self.source} ({self.source_format}): {self.written} tensors "
            f"{'are already in' if self.existed else 'written to'} {self.folder} ({self.format}).",
            *lines_of("left out", self.left_out, set(self.slots)),
            *(f"  {note}" for note in self.notes)])


def convert(source: str, folder: str, target_format: str, config_file: str | None = None,
            vocab_file: str | None = None, do_lower_case: bool | None = None) -> Conversion:
    """Converts a checkpoint.

    Args:
        source: a path as `--init_checkpoint` takes it.
        folder: made where it does not exist; gets weights, configuration and, where known, vocabulary and task. One
            that holds all of this already is left as it is.
        target_format: a key of FORMATS.
        config_file: the configuration; None for the one in the source's folder.
        vocab_file: the vocabulary; None for the one in the source's folder.
        do_lower_case: casing of the vocabulary; None for what the source specifies.

    Raises:
        BertError: no such source, no configuration, another model's, or a format that cannot hold it.
    """
    if target_format not in FORMATS:
        raise BertError(f"--format={target_format}: not one of {', '.join(sorted(FORMATS))}.")
    checkpoint = load.find(source)
    config = BertConfig.from_json_file(config_file) if config_file else checkpoint.config()
    if do_lower_case is None:
        do_lower_case = checkpoint.lower_case() if config.do_lower_case is None else config.do_lower_case
    reader = checkpoint.reader
    check_sizes(checkpoint.path, reader.shapes, config)
    contents = Contents(
        reader=reader,
        config=config.replace(do_lower_case=do_lower_case),
        tokens=_vocabulary(checkpoint, vocab_file, config),
        task=_task(checkpoint),
        labels=checkpoint.labels())
    existing = _converted(folder, target_format, contents)
    if existing:
        files.sync(folder)
        left_out = [*reader.unknown, *(name for name in reader.names if name not in existing.shapes)]
    else:
        with _new_folder(folder):
            left_out = [*reader.unknown, *FORMATS[target_format].write(folder, contents)]
    written = len(reader.names) + len(reader.unknown) - len(left_out)
    return Conversion(checkpoint.path, checkpoint.format.name, target_format, folder, written, tuple(left_out),
                      frozenset(slots_in(reader.names).intersection(left_out)), _notes(config, target_format),
                      existed=bool(existing))


def _converted(folder: str, target_format: str, contents: Contents) -> CheckpointReader | None:
    """The checkpoint in a folder where that is this conversion, complete: one that was killed before it could say so.

    Configuration, vocabulary and labels are compared first, then every tensor.
    """
    try:
        found = load.find(folder)
        if found.folder != folder.rstrip("/") or found.format.name != target_format:
            return None
        same = (found.config() == contents.config and tokenizer_files.vocabulary_of(folder) == contents.tokens
                and contents.labels in (None, found.labels()))
        read, source = found.reader, contents.reader
        if same and not read.unknown and all(
                name in source.shapes and np.array_equal(read.get(name), source.get(name)) for name in read.names):
            return read
    except BertError:
        pass
    return None


@contextlib.contextmanager
def _new_folder(folder: str) -> Iterator[None]:
    """Holds a folder that a conversion fills: whole when the block succeeds, without a file of it where it fails.

    A file marks the folder of a conversion that was killed: the next one starts there anew.

    Raises:
        BertError: the folder is not empty: files of two models in one folder would be taken for one model. Or another
            process is writing there.
    """
    existed = files.exists(folder)
    if existed and not (files.is_folder(folder) and _is_empty_or_unfinished(files.names_in(folder))):
        raise BertError(f"{folder}: exists and is not empty. Name a new folder (--output).")
    mark = os.path.join(folder, run_files.UNFINISHED)
    with files.lock(folder):
        try:
            _empty(folder, but=run_files.UNFINISHED)
            files.write_text(mark, _MARK)
            yield
            files.remove(mark)
            files.sync(folder)
        except BaseException:
            with contextlib.suppress(*files.errors()):
                _empty(folder)
                if not existed:
                    files.remove_folder(folder)
            raise


def _is_empty_or_unfinished(names: list[str]) -> bool:
    """Whether a folder is empty, or holds what a conversion that was killed left: the mark is its first file."""
    return run_files.UNFINISHED in names or all(name.startswith(f"{run_files.UNFINISHED}.tmp-") for name in names)


def _empty(folder: str, but: str | None = None) -> None:
    for name in files.names_in(folder):
        if name != but:
            files.remove(os.path.join(folder, name))


def _notes(config: BertConfig, target_format: str) -> tuple[str, ...]:
    if target_format != FORMATS["google"].name or config.hidden_act != "gelu_erf":
        return ()
    return ("hidden_act is gelu_erf: this project reads the folder; the original release does not, because it has only "
            "the tanh form of GELU (docs/checkpoints.md, GELU).",)


def _vocabulary(checkpoint: load.Checkpoint, path: str | None, config: BertConfig) -> list[str] | None:
    """Word pieces in the order of their ids, or None where there is no vocabulary."""
    tokens = vocab_file.read(path) if path else tokenizer_files.vocabulary_of(checkpoint.folder)
    if tokens and len(tokens) > config.vocab_size:
        raise BertError(f"{path or checkpoint.folder}: the vocabulary has {len(tokens)} word pieces, the "
                        f"configuration {config.vocab_size} (vocab_size). Is it another model's?")
    return tokens


def _task(checkpoint: load.Checkpoint) -> dict[str, Any] | None:
    """The description of a fine-tuned model's task: the file in the source's folder, or else the classes' names."""
    if checkpoint.task_file:
        return tokenizer_files.json_object(checkpoint.task_file)
    labels = checkpoint.labels()
    return {"labels": labels} if labels else None

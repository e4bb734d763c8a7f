"""A checkpoint of any format into a folder of any format, every tensor bit for bit."""

import dataclasses
from typing import Any

from foundation import files, vocab_file
from foundation.errors import BertError
from foundation.settings import DATA, MODEL, Settings, setting
from modeling.checkpoints import load, tokenizer_files
from modeling.checkpoints.format import Contents
from modeling.checkpoints.formats import FORMATS
from modeling.checkpoints.sizes import check_sizes
from modeling.checkpoints.training_state import lines_of, slots_in
from modeling.config import BertConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConversionSettings(Settings):
    """Settings of `convert_checkpoint.py`."""

    input: str = setting(help="The checkpoint: a prefix, a file or a folder.", group=DATA)
    output: str = setting(help="The folder to write; it must not exist or be empty.", group=DATA)
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
    """

    source: str
    source_format: str
    format: str
    folder: str
    written: int
    left_out: tuple[str, ...]
    slots: frozenset[str] = frozenset()

    def summary(self) -> str:
        """A few lines for the console."""
        return "\n".join([
            f"{self.source} ({self.source_format}): {self.written} tensors written to {self.folder} ({self.format}).",
            *lines_of("left out", self.left_out, set(self.slots))])


def convert(source: str, folder: str, target_format: str, config_file: str | None = None,
            vocab_file: str | None = None, do_lower_case: bool | None = None) -> Conversion:
    """Converts a checkpoint.

    Args:
        source: a path as `--init_checkpoint` takes it.
        folder: made where it does not exist; gets weights, configuration and, where known, vocabulary and task.
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
    _check_folder(folder)
    left_out = [*reader.unknown, *FORMATS[target_format].write(folder, Contents(
        reader=reader,
        config=config.replace(do_lower_case=do_lower_case),
        tokens=_vocabulary(checkpoint, vocab_file, config),
        task=_task(checkpoint),
        labels=checkpoint.labels()))]
    written = len(reader.names) + len(reader.unknown) - len(left_out)
    return Conversion(checkpoint.path, checkpoint.format.name, target_format, folder, written, tuple(left_out),
                      frozenset(slots_in(reader.names).intersection(left_out)))


def _check_folder(folder: str) -> None:
    """Refuses a folder that is not empty: files of two models in one folder would be taken for one model."""
    if files.exists(folder) and (not files.is_folder(folder) or files.names_in(folder)):
        raise BertError(f"{folder}: exists and is not empty. Name a new folder (--output).")


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

"""What a checkpoint format is: the protocols that each format's module implements."""

import dataclasses
from typing import TYPE_CHECKING, Any, Protocol

from modeling.config import BertConfig

if TYPE_CHECKING:
    import numpy as np


class CheckpointReader(Protocol):
    """An open checkpoint, by the release's variable names.

    Attributes:
        shapes: name to shape.
        unknown: the file's own names of tensors that the release has no variable for.
    """

    shapes: dict[str, list[int]]
    unknown: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Sorted names."""
        ...

    def get(self, name: str) -> "np.ndarray":
        """The value of a variable. Raises BertError when the name is unknown or the file is damaged."""
        ...


@dataclasses.dataclass(frozen=True)
class Contents:
    """A whole checkpoint, to be written in some format.

    Attributes:
        reader: the tensors, training state included.
        config: with casing, where known.
        tokens: word pieces in the order of their ids, or None.
        task: description of a fine-tuned model's task (`run_files.TASK`), or None.
        labels: names of a fine-tuned model's classes in the order of their numbers, or None.
    """

    reader: CheckpointReader
    config: BertConfig
    tokens: list[str] | None = None
    task: dict[str, Any] | None = None
    labels: list[str] | None = None


class CheckpointFormat(Protocol):
    """A checkpoint format; `formats.FORMATS` lists them.

    Attributes:
        name: as in `convert_checkpoint.py --format`.
        description: files of a folder in this format, for `--help`.
        example: a typical path, for messages.
        config_files: names of the configuration in the weights' folder; the first that exists counts.
    """

    name: str
    description: str
    example: str
    config_files: tuple[str, ...]

    def find(self, path: str) -> str | None:
        """The checkpoint that a path means, by file names alone where they suffice.

        Args:
            path: a file, a prefix of files or a folder, which may not exist.

        Returns:
            its file, or the prefix of its files, for `open`; None where there is no checkpoint of this format.

        Raises:
            BertError: there are several to choose from.
        """
        ...

    def refusal(self, path: str) -> str | None:
        """Why `find` found nothing at a path that looks like this format; None where it does not look like it."""
        ...

    def open(self, path: str) -> CheckpointReader:
        """Opens a checkpoint that `find` returned. Raises BertError when it is damaged or of another model."""
        ...

    def labels(self, folder: str) -> list[str] | None:
        """Names of the classes of a fine-tuned model, in the order of their numbers, or None."""
        ...

    def lower_case(self, folder: str) -> bool | None:
        """Whether the vocabulary is lower-cased, where the configuration does not specify it; None if unknown."""
        ...

    def write(self, folder: str, contents: Contents) -> list[str]:
        """Writes a folder with weights, configuration, vocabulary and task.

        Returns:
            names of `contents.reader` that this format has no place for.

        Raises:
            BertError: a tensor that the format needs is missing, or the folder cannot be written.
        """
        ...

"""The files of a data set, of any family: their flags, and the path of a split's file."""

import dataclasses
import os
from collections.abc import Sequence
from typing import ClassVar

from foundation import files
from foundation.errors import BertError
from foundation.settings import DATA, Settings, setting

CUSTOM = "custom"  # the task of the user's own files


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskSettings(Settings):
    """Base of a family's settings.

    Attributes:
        described: names of the settings that describe a trained model, and nothing of the user's machine: only these
            are written to its task.json and taken from there.
    """

    described: ClassVar[tuple[str, ...]] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileSettings(TaskSettings):
    """The files of a data set, by folder or one by one."""

    data_dir: str | None = setting(None, group=DATA, released=True, help="Folder of the data set's files.")
    train_file: str | None = setting(
        None, group=DATA, help="Training set, in place of the one in --data_dir.")
    dev_file: str | None = setting(
        None, group=DATA, help="Dev set, in place of the one in --data_dir.")
    test_file: str | None = setting(
        None, group=DATA, help="File to predict, in place of the test set in --data_dir.")


def find(settings: FileSettings, kind: str, names: Sequence[str] = ()) -> str:
    """The path of a split's file: that of its flag, or else the first of some names that --data_dir holds.

    Args:
        settings: a family's.
        kind: train, dev or test.
        names: paths in --data_dir; none where the files are the user's own.

    Raises:
        BertError: no file is given, or there is none of the name, with the flag to give.
    """
    flag = f"{kind}_file"
    given = getattr(settings, flag)
    if given:
        return existing(given, flag)
    if not names:
        raise BertError(f"No {kind} file given. Pass --{flag}.")
    if not settings.data_dir:
        raise BertError(f"No {kind} file given. Pass --{flag}, or --data_dir, a folder with {_or(names)}.")
    path = found_in(settings.data_dir, names)
    if not path:
        raise BertError(f"{settings.data_dir}: holds no {_or(names)} (--data_dir). Name the file by --{flag}.")
    return path


def found_in(folder: str, names: Sequence[str]) -> str | None:
    """The path of the first of some names that a folder holds, or None."""
    paths = (os.path.join(folder, name) for name in names)
    return next((path for path in paths if files.exists(path)), None)


def existing(path: str, flag: str) -> str:
    """The path. Raises BertError where there is no such file, naming its flag."""
    if not files.exists(path):
        raise BertError(f"{path}: no such file (--{flag}).")
    return path


def _or(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))

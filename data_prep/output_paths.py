"""Outputs are refused before any work where they would replace an input or cannot be written."""

import contextlib
import os
import posixpath
from collections.abc import Iterable, Sequence

from foundation import files
from foundation.errors import BertError

_LOCAL_SCHEME = "file://"


class _Written(Exception):
    """The temporary file could be written; it is given up."""


def check(outputs: Sequence[str], inputs: Iterable[str]) -> None:
    """Checks the files that a job writes, and makes their folders.

    Args:
        outputs: the files.
        inputs: the files that the job reads.

    Raises:
        BertError: an output is also an input, by whatever name or link; or an output cannot be written.
    """
    by_identity = {each: path for path in inputs for each in _identities(path)}
    for output in outputs:
        same = next((by_identity[each] for each in _identities(output) if each in by_identity), None)
        if same is not None:
            other = "" if same == output else f", the same file as {same},"
            raise BertError(f"{output}{other} is an input and would be replaced. Give another --output_file.")
    # One file of a folder tells whether others can be written there, and each costs time where it is remote.
    for output in {os.path.dirname(output): output for output in outputs}.values():
        _check_writable(output)
    for output in outputs:
        if not os.path.basename(output) or (not files.is_remote(output) and files.is_folder(output)):
            raise BertError(f"{output}: is a folder. --output_file needs the name of a file.")


def canonical(path: str) -> str:
    """The same string for the same file, however a path is written; links are followed."""
    path = path.removeprefix(_LOCAL_SCHEME)
    if not files.is_remote(path):
        return os.path.realpath(path)
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{posixpath.normpath(rest)}"


def _identities(path: str) -> list[str | tuple[int, int]]:
    """What a file is recognised by: its canonical path, and where it exists its number, which hard links share."""
    identities: list[str | tuple[int, int]] = [canonical(path)]
    with contextlib.suppress(OSError):
        found = os.stat(path.removeprefix(_LOCAL_SCHEME))
        identities.append((found.st_dev, found.st_ino))
    return identities


def _check_writable(path: str) -> None:
    """Writes an empty temporary file in the place of the file to come."""
    try:
        with contextlib.suppress(_Written), files.atomic(path) as temporary:
            with files.open_file(temporary, "wb") as file:
                file.write(b"")  # a remote file is not made before
            raise _Written
    except files.errors() as error:
        raise BertError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}).") from None

"""Intermediate files of a job: written whole, with a checksum that tells whether a file is still what was written.

A job that resumes takes over what a killed one left. A file that was damaged in between (a bad disk, a copy cut short)
is made again, so it can never change a record.
"""

import contextlib
import os
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from foundation import files

# How a file is described in the result of a unit of work (`data_prep.workers`).
SCHEMA = {"bytes": int, "crc32": int}
_READ_BYTES = 1 << 22


class Writer:
    """A file being written.

    Args:
        file: open for writing, empty.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._bytes = self._crc32 = 0

    def write(self, data: bytes | memoryview) -> None:
        """Appends bytes."""
        self._file.write(data)
        self._bytes += len(data)
        self._crc32 = zlib.crc32(data, self._crc32)

    def write_array(self, array: np.ndarray) -> None:
        """Appends an array's bytes; unlike `tofile` it reports why when the disk is full."""
        self.write(np.ascontiguousarray(array).data.cast("B"))

    def append(self, path: str) -> None:
        """Appends a local file."""
        with open(path, "rb") as source:
            while data := source.read(_READ_BYTES):
                self.write(data)

    def description(self) -> dict[str, int]:
        """Size and checksum of what was written, of the form SCHEMA."""
        return {"bytes": self._bytes, "crc32": self._crc32}


@contextlib.contextmanager
def writing(path: str) -> Iterator[Writer]:
    """Yields a Writer; the local file appears when the block succeeds."""
    with files.atomic(path) as temporary, open(temporary, "wb") as file:
        yield Writer(file)


def is_intact(path: str, description: dict[str, Any]) -> bool:
    """Whether a local file is as it was written; if not, that is reported.

    Args:
        path: the file.
        description: from `Writer.description`.
    """
    if not os.path.exists(path):
        problem = "missing"
    elif os.path.getsize(path) != description["bytes"] or _crc32(path) != description["crc32"]:
        problem = "damaged"
    else:
        return True
    report(path, problem)
    return False


def report(path: str, problem: str) -> None:
    """Prints that a file is made again."""
    print(f"warning: {path}: {problem} since the job was interrupted. It is made again.", file=sys.stderr, flush=True)


def _crc32(path: str) -> int:
    crc32 = 0
    with open(path, "rb") as file:
        while data := file.read(_READ_BYTES):
            crc32 = zlib.crc32(data, crc32)
    return crc32

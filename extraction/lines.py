"""Lines of text, read a block at a time, and the one or two sentences in each."""

import codecs
import os
from collections.abc import Iterator

import numpy as np

from foundation import files
from foundation.errors import BertError

# Between the two sentences of a line, as in the release.
SEPARATOR = " ||| "
_CHUNK_BYTES = 1 << 24


def check(path: str) -> None:
    """Refuses a file that cannot be read, is empty, or is not UTF-8.

    The text of a pipe, which can be read only once, and of remote files is checked by `blocks` alone.

    Raises:
        BertError: naming the line of the first byte that is not UTF-8.
    """
    if not files.exists(path) or files.is_folder(path):
        raise BertError(f"{path}: no such file (--input_file).")
    if not os.path.isfile(path):
        return
    if not files.size(path):
        raise empty(path)
    if not _is_utf8(path):
        for _ in blocks(path, 1 << 16):
            pass


def blocks(path: str, size: int) -> Iterator[tuple[list[str], np.ndarray]]:
    """Reads lines.

    Args:
        path: a text file.
        size: lines of a block.

    Yields:
        Lines, and the bytes of each, int64 [lines].

    Raises:
        BertError: naming the line of the first byte that is not UTF-8.
    """
    lines: list[str] = []
    sizes: list[int] = []
    offset = 0
    with files.open_file(path, "rb") as file:
        for number, data in enumerate(iter(file.readline, b""), 1):
            lines.append(files.decode(data, path, offset, place=f", line {number}"))
            sizes.append(len(data))
            offset += len(data)
            if len(lines) == size:
                yield lines, np.array(sizes)
                lines, sizes = [], []
    if lines:
        yield lines, np.array(sizes)


def split_pair(line: str) -> tuple[str, str]:
    """The two sentences of a line, split at the last separator as in the release; the second empty where it has one."""
    first, separator, second = line.strip().rpartition(SEPARATOR)
    return (first, second) if separator else (second, "")


def empty(path: str) -> BertError:
    """The error of a file without lines."""
    return BertError(f"{path}: empty. Write a sequence in each line.")


def _is_utf8(path: str) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with files.open_file(path, "rb") as file:
        try:
            while chunk := file.read(_CHUNK_BYTES):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True

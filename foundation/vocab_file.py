"""vocab.txt: a word piece per line; its id is the number of the line, from 0."""

from collections.abc import Iterable

from foundation import files
from foundation.errors import BertError


def read(path: str) -> list[str]:
    """Reads a vocabulary as the release does: UTF-8, only a line feed ends a line, white space around it is stripped.

    Nothing else is checked: an empty line is an empty word piece, and one may come twice.

    Args:
        path: local or remote.

    Returns:
        word pieces in the order of their ids; empty for an empty file.

    Raises:
        BertError: no such file, or not UTF-8; names line and byte.
    """
    data = files.read_bytes(path)
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BertError(f"{path}, line {line}: byte {error.start} is not UTF-8 (0x{data[error.start]:02x}). "
                        "Re-encode the file.") from None
    if not lines[-1]:
        lines.pop()
    return [line.strip() for line in lines]


def write(path: str, tokens: Iterable[str]) -> None:
    """Writes word pieces in the order of their ids, atomically."""
    files.write_text(path, "".join(f"{token}\n" for token in tokens))

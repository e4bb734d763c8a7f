"""Text files in blocks: read as valid UTF-8, cut only where a cut does no harm.

No more than a few blocks are held, whatever the size of a file.
"""

import codecs
import io
import re
from collections.abc import Iterator, Sequence

from data_prep.settings import SKIP
from foundation import files

BLOCK_BYTES = 4 << 20
# A line as long as this many blocks is cut, so that memory stays bounded.
_LONGEST_LINE = 4

# What a byte that is not UTF-8 is decoded to: a lone surrogate, which no UTF-8 text can hold.
_UNDECODED = re.compile("[\udc80-\udcff]+")


class TextReader:
    """Reads files as UTF-8 text in blocks.

    Args:
        on_bad_utf8: "error" raises at the first byte that is not UTF-8; "skip" leaves such bytes out and counts them.
        block_bytes: about how much is read at once.

    Attributes:
        bytes_read: how many bytes were read so far, of all files.
        bad_bytes: how many bytes were left out so far.
    """

    def __init__(self, on_bad_utf8: str, block_bytes: int = BLOCK_BYTES) -> None:
        self.bytes_read = 0
        self.bad_bytes = 0
        self._skip = on_bad_utf8 == SKIP
        self._block_bytes = block_bytes

    def blocks(self, path: str, cuts: Sequence[str] = ("\n",)) -> Iterator[str]:
        """Yields a file's text in order, cut after separators; the line end of the separator is left out.

        Line ends become "\\n" and a byte order mark is dropped. Reading continues until a separator is found; a line
        of many blocks is cut after a space.

        Args:
            path: a local or remote path.
            cuts: separators that end in "\\n", best first; the first one that a block holds is used.

        Yields:
            Non-empty blocks; a file smaller than a block is one.

        Raises:
            BertError: the file cannot be read or is not UTF-8; the message names the byte.
        """
        rest = ""
        for text in self._decoded(path):
            rest += text
            if len(rest) < self._block_bytes:
                continue
            end = _cut(rest, cuts if len(rest) < _LONGEST_LINE * self._block_bytes else (*cuts, " "))
            if end:
                yield rest[: end - 1]
                rest = rest[end:]
        if rest:
            yield rest

    def _decoded(self, path: str) -> Iterator[str]:
        """Yields the file's text as it is read, line ends unified."""
        line_ends = io.IncrementalNewlineDecoder(None, translate=True)
        position, rest = 0, b""
        for data in _read(path, self._block_bytes):
            self.bytes_read += len(data)
            pending = rest + data
            # The first bytes of a character that is cut in two wait for the others.
            text, used = codecs.utf_8_decode(pending, "surrogateescape", not data)
            if not text.isascii() and _UNDECODED.search(text):
                text = self._without_bad(text, pending[:used], path, position)
            if position == 0 and used:
                text = text.removeprefix("\ufeff")
            position, rest = position + used, pending[used:]
            yield line_ends.decode(text, final=not data)

    def _without_bad(self, text: str, data: bytes, path: str, position: int) -> str:
        if not self._skip:
            files.decode(data, path, position, "Re-encode the file, or pass --on_bad_utf8=skip.")
        self.bad_bytes += sum(map(len, _UNDECODED.findall(text)))
        return _UNDECODED.sub("", text)


def _read(path: str, size: int) -> Iterator[bytes]:
    """Yields a file's bytes in order, an empty run last."""
    try:
        with files.open_file(path, "rb") as file:
            while data := file.read(size):
                yield data
    except files.errors() as error:
        raise files.unreadable(path, error) from None
    yield b""


def _cut(text: str, separators: Sequence[str]) -> int:
    """The place after the last of the best separator in the text; 0 where there is none."""
    for separator in separators:
        at = text.rfind(separator)
        if at > 0:
            return at + len(separator)
    return 0

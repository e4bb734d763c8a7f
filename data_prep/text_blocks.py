"""Text files in blocks: read as valid UTF-8, cut only where a cut does no harm.

No more than a few blocks are held, whatever the size of a file.
"""

import codecs
import io
import re

from foundation import files
from foundation.errors import BertError

BLOCK_BYTES = 4 << 20
# A line of so many blocks is cut, so that memory stays bounded.
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

    def __init__(self, on_bad_utf8="error", block_bytes=BLOCK_BYTES):
        self.bytes_read = 0
        self.bad_bytes = 0
        self._skip = on_bad_utf8 == "skip"
        self._block_bytes = block_bytes

    def blocks(self, path, cuts=("\n",)):
        """Yields a file's text in order, cut behind separators; the line end of the separator is left out.

        Line ends become "\\n" and a byte order mark is dropped. What holds no separator is read on; a line of many
        blocks is cut behind a space.

        Args:
            path: a local or remote path.
            cuts: separators that end in "\\n", best first; the first that a block holds decides.

        Yields:
            str: non-empty blocks; a file smaller than a block is one.

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

    def _decoded(self, path):
        """Yields the file's text as it comes, line ends unified."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        line_ends = io.IncrementalNewlineDecoder(None, translate=True)
        position = 0
        for data in _read(path, self._block_bytes):
            # The bytes of a character cut in two wait in the decoder.
            begin = position - len(decoder.getstate()[0])
            text = decoder.decode(data, final=not data)
            if not text.isascii() and (bad := _UNDECODED.search(text)):
                text = self._without_bad(text, bad, path, begin)
            if begin == 0:
                text = text.removeprefix("\ufeff")
            position += len(data)
            self.bytes_read += len(data)
            yield line_ends.decode(text, final=not data)

    def _without_bad(self, text, bad, path, begin):
        if not self._skip:
            byte = begin + len(text[: bad.start()].encode("utf-8"))
            raise BertError(
                f"{path}: byte {byte} is not UTF-8 (0x{ord(bad.group()[0]) - 0xDC00:02x}). "
                "Re-encode the file, or pass --on_bad_utf8=skip."
            )
        self.bad_bytes += sum(len(run) for run in _UNDECODED.findall(text))
        return _UNDECODED.sub("", text)


def _read(path, size):
    """Yields a file's bytes in pieces, an empty one last."""
    try:
        with files.open_file(path, "rb") as file:
            while data := file.read(size):
                yield data
    except files.errors() as error:
        raise files.unreadable(path, error) from None
    yield b""


def _cut(text, separators):
    """The place behind the last of the best separator in the text; 0 where there is none."""
    for separator in separators:
        at = text.rfind(separator)
        if at > 0:
            return at + len(separator)
    return 0

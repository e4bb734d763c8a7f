"""The framing of TFRecord files, without TensorFlow: records are framed, and found by their lengths.

A record is its length (uint64), the checksum of the length, the bytes, and the checksum of the bytes (each uint32,
`data_prep.checksums`). When reading, the checksum of each length is verified and no length is believed that exceeds the
file, so that damage is found where it is and costs neither time nor memory. The bytes' own checksum is TensorFlow's to
verify.
"""

import base64
import collections
import dataclasses
import functools
import mmap
import struct
import zlib
from collections.abc import Iterator
from typing import IO, Self

import numpy as np

from data_prep.checksums import masked_crc32c
from foundation import files
from foundation.errors import BertError

# Records between two that an index has.
INDEX_EVERY = 32

_HEADER = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")
_FOOTER_BYTES = 4
_AROUND_BYTES = _HEADER.size + _FOOTER_BYTES
_WALKED_TOGETHER = 1 << 16
# An instance of the greatest length has less than 2 MB.
_MAX_RECORD_BYTES = 1 << 26


def frame(stream: np.ndarray, sizes: np.ndarray) -> bytes:
    """Records as a TFRecord file holds them.

    Args:
        stream: uint8, the records end to end.
        sizes: int64 [records], bytes of each.

    Returns:
        The records with lengths and checksums, end to end.
    """
    lengths = sizes.astype("<u8")
    headers = np.empty((len(sizes), _HEADER.size), np.uint8)
    headers[:, :8] = lengths.view(np.uint8).reshape(-1, 8)
    headers[:, 8:] = _checksums_of_lengths(lengths).view(np.uint8).reshape(-1, 4)
    before, content, after = headers.tobytes(), stream.data, masked_crc32c(stream, sizes).astype("<u4").tobytes()
    parts: list[bytes | memoryview] = []
    start = 0
    for index, size in enumerate(sizes.tolist()):
        parts += (before[index * _HEADER.size : (index + 1) * _HEADER.size], content[start : start + size],
                  after[index * _FOOTER_BYTES : (index + 1) * _FOOTER_BYTES])
        start += size
    return b"".join(parts)


@dataclasses.dataclass(frozen=True)
class Index:
    """Where the records of a file are.

    Attributes:
        count: how many records.
        starts: int64, where every INDEX_EVERY-th record begins, from the first on, and the end of the file.
    """

    count: int
    starts: np.ndarray

    @classmethod
    def of(cls, starts: np.ndarray) -> Self:
        """From what `starts` returns."""
        return cls(len(starts) - 1, np.append(starts[:-1:INDEX_EVERY], starts[-1]))

    def to_text(self) -> str:
        """The starts as a line of text."""
        return base64.b64encode(zlib.compress(np.diff(self.starts, prepend=0).astype("<u4").tobytes())).decode()

    @classmethod
    def from_text(cls, text: str, count: int, size: int) -> Self | None:
        """The index of a file of so many records and bytes; None where the text is no such index."""
        try:
            steps = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<u4").astype(np.int64)
        except (ValueError, zlib.error):
            return None
        index = cls(count, np.cumsum(steps))
        return index if len(steps) == -(-count // INDEX_EVERY) + 1 and index.starts[-1] == size else None


def index(path: str) -> Index:
    """Finds the records of a file by their lengths.

    Raises:
        BertError: the file is no TFRecord, is damaged or cut off; names the record.
    """
    return Index.of(starts(path))


def count(path: str) -> int:
    """Counts the records of a file by their lengths. Raises BertError as `index` does."""
    return index(path).count


def read(path: str, where: Index, first: int, number: int) -> list[bytes]:
    """Reads a run of records, and verifies their checksums.

    Args:
        path: the file.
        where: its index.
        first: number of the first record.
        number: how many, at least one.

    Raises:
        BertError: the file cannot be read, or is damaged there.
    """
    begin, end = first // INDEX_EVERY, -(-(first + number) // INDEX_EVERY)
    start, after = where.starts[begin], where.starts[min(end, len(where.starts) - 1)]
    try:
        with files.open_file(path, "rb") as stream:
            stream.seek(int(start))
            data = stream.read(int(after - start))
    except files.errors() as error:
        raise files.unreadable(path, error) from None
    places, position = [], 0
    for _ in range(first % INDEX_EVERY + number):
        if position + _HEADER.size > len(data):
            raise _cut_off(f"{path}, near record {first}")
        places.append(position)
        position += int.from_bytes(data[position : position + 8], "little") + _AROUND_BYTES
    if position > len(data):
        raise _cut_off(f"{path}, near record {first}")
    return _verified(data, places[first % INDEX_EVERY :], f"{path}, near record {first}")


def _verified(data: bytes, places: list[int], place: str) -> list[bytes]:
    """The records that begin at some places, with right checksums."""
    content = np.frombuffer(data, np.uint8)
    begins = np.array(places)
    headers = content[begins[:, None] + np.arange(_HEADER.size)]
    lengths = np.ascontiguousarray(headers[:, :8]).view("<u8")[:, 0]
    found = [data[begin + _HEADER.size : begin + _HEADER.size + length]
             for begin, length in zip(places, lengths.tolist())]
    footers = content[(begins + _HEADER.size + lengths.astype(np.int64))[:, None] + np.arange(_FOOTER_BYTES)]
    checksums = masked_crc32c(np.frombuffer(b"".join(found), np.uint8), lengths.astype(np.int64))
    if not _headers_fit(headers) or not np.array_equal(np.ascontiguousarray(footers).view("<u4")[:, 0], checksums):
        raise BertError(f"{place}: corrupted. Copy or build this file again.")
    return found


def _headers_fit(headers: np.ndarray) -> bool:
    """Whether headers, uint8 [n, 12], hold the checksums of their lengths."""
    lengths = np.ascontiguousarray(headers[:, :8]).view("<u8")[:, 0]
    return np.array_equal(np.ascontiguousarray(headers[:, 8:]).view("<u4")[:, 0], _checksums_of_lengths(lengths))


def starts(path: str) -> np.ndarray:
    """Where the records of a file begin, and its end: int64 [records + 1]. Raises BertError as `index` does."""
    if files.is_remote(path):
        return np.cumsum([0, *(length + _AROUND_BYTES for _, length in _frames(path))])
    try:
        size = files.size(path)
        with open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except files.errors() as error:
        raise files.unreadable(path, error) from None
    parts, position = [np.zeros(0, np.int64)], 0
    while position < size:
        places, position = _walk(content, position, size)
        headers = np.frombuffer(content, np.uint8)[places[:, None] + np.arange(_HEADER.size)]
        if position > size or not _headers_fit(headers):
            collections.deque(_frames(path), maxlen=0)  # raises, with the number of the record
        parts.append(places)
    return np.concatenate([*parts, np.array([size], np.int64)])


def _walk(content: bytes | mmap.mmap, position: int, size: int) -> tuple[np.ndarray, int]:
    """Follows the lengths of some records, believing them; returns where the records begin, and where they end."""
    places = []
    read_length, last_header = _LENGTH.unpack_from, size - _HEADER.size
    for _ in range(_WALKED_TOGETHER):
        if position > last_header:
            break
        places.append(position)
        position += read_length(content, position)[0] + _AROUND_BYTES
    # Less than a header before the end is a record that is cut off.
    return np.array(places, np.int64), position if position >= size or len(places) == _WALKED_TOGETHER else size + 1


def records(path: str) -> Iterator[bytes]:
    """Yields the bytes of each record. Raises BertError as `count` does."""
    for stream, length in _frames(path):
        yield stream.read(length)


def _frames(path: str) -> Iterator[tuple[IO[bytes], int]]:
    """Yields, for each record, the file at its first byte and its length."""
    try:
        size = files.size(path)
        with files.open_file(path, "rb") as stream:
            number = position = 0
            while position < size:
                place = f"{path}, record {number}"
                header = stream.read(_HEADER.size)
                if len(header) < _HEADER.size:
                    raise _cut_off(place)
                length, checksum = _HEADER.unpack(header)
                if checksum != _checksum_of_length(length) or length > _MAX_RECORD_BYTES:
                    raise BertError(f"{place}: not a TFRecord, or corrupted. Copy or build this file again.")
                position += _HEADER.size + length + _FOOTER_BYTES
                if position > size:
                    raise _cut_off(place)
                yield stream, length
                stream.seek(position)
                number += 1
    except files.errors() as error:
        raise files.unreadable(path, error) from None


def _cut_off(place: str) -> BertError:
    return BertError(f"{place}: the file ends inside this record. Copy or build it again.")


@functools.lru_cache(maxsize=1 << 14)
def _checksum_of_length(length: int) -> int:
    return int(_checksums_of_lengths(np.array([length], "<u8"))[0])


def _checksums_of_lengths(lengths: np.ndarray) -> np.ndarray:
    """Masked CRC-32C of lengths as they are written: uint64 [n] to uint32 [n]."""
    different, places = np.unique(lengths, return_inverse=True)
    return masked_crc32c(different.view(np.uint8), np.full(len(different), 8)).astype("<u4")[places]

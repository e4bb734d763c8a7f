"""The framing of TFRecord files, without TensorFlow: records are framed, and found by their lengths.

A record is its length (uint64), the checksum of the length, the bytes, and the checksum of the bytes (each uint32,
`data_prep.checksums`). When reading, the checksum of each length is verified and no length is believed that exceeds the
file, so that damage is found where it is and costs neither time nor memory. The bytes' own checksum is TensorFlow's to
verify.
"""

import functools
import struct
from collections.abc import Iterator
from typing import IO

import numpy as np

from data_prep.checksums import masked_crc32c
from foundation import files
from foundation.errors import BertError

_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4
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


def count(path: str) -> int:
    """Counts the records of a file by their lengths.

    Raises:
        BertError: the file is no TFRecord, is damaged or cut off; names the record.
    """
    return sum(1 for _ in _frames(path))


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

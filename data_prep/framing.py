"""The framing of TFRecord files: where records begin and end, read without TensorFlow.

A record is its length (uint64), the checksum of the length, the bytes, and the checksum of the bytes (each uint32,
masked CRC-32C). The checksum of each length is verified here and no length is believed that exceeds the file, so that
damage is found where it is and costs neither time nor memory. The bytes' own checksum is TensorFlow's to verify.
"""

import functools
import struct
from collections.abc import Iterator
from typing import IO

from foundation import files
from foundation.errors import BertError

_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4
# An instance of the greatest length has less than 2 MB.
_MAX_RECORD_BYTES = 1 << 26
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8


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
    """Masked CRC-32C of a length as it is written (the masking: tensorflow/core/lib/hash/crc32c.h)."""
    crc = 0xFFFFFFFF
    for byte in struct.pack("<Q", length):
        crc = _crc_table()[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


@functools.cache
def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL * (value & 1))
        table.append(value)
    return table

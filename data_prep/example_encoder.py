"""Many tf.train.Example messages at once, from arrays, without a Python object per value.

A message is `Example{features: Features{map<string, Feature>}}`, each map entry a key and a list of integers or
floats (https://protobuf.dev/programming-guides/encoding). All rows share one layout: a matrix of bytes [rows, width]
in which each variable-length number (varint) has room for its longest form, and a matrix of the same shape of which
bytes are used. Indexing the first by the second gives the messages of all rows, end to end.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from data_prep import framing

# Field tags: (field number << 3) | wire type 2, a length and then that many bytes.
_FEATURES = _ENTRY = _KEY = _PACKED_VALUES = b"\x0a"
_VALUE = b"\x12"
_FLOAT_LIST = b"\x12"
_INT64_LIST = b"\x1a"


def encode_examples(columns: Mapping[str, np.ndarray]) -> list[bytes]:
    """Serialises rows of named columns as tf.train.Example messages.

    Args:
        columns: by name, [rows, length] of integers (>= 0) or float32. All columns have the same number of rows.

    Returns:
        One message per row, the same bytes for the same columns.
    """
    stream, sizes = _messages(columns)
    data, ends = stream.tobytes(), np.cumsum(sizes).tolist()
    return [data[start:end] for start, end in zip([0, *ends], ends)]


def frame_examples(columns: Mapping[str, np.ndarray]) -> bytes:
    """The messages of `encode_examples` as the records of a TFRecord file, end to end."""
    stream, sizes = _messages(columns)
    return framing.frame(stream, sizes)


def _messages(columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The messages end to end, uint8, and their sizes, int64 [rows]."""
    rows = len(next(iter(columns.values())))
    if not rows:
        return np.zeros(0, np.uint8), np.zeros(0, np.int64)
    entries = [_map_entry(name, np.asarray(columns[name])) for name in sorted(columns)]
    example = _message(_FEATURES, _concatenate(entries))
    data = np.empty((rows, example.width), np.uint8)
    used = np.empty((rows, example.width), bool)
    start = 0
    for part_data, part_used in example.parts:
        end = start + part_data.shape[1]
        data[:, start:end] = part_data
        used[:, start:end] = part_used
        start = end
    return data[used], np.broadcast_to(example.sizes, (rows,))


@dataclasses.dataclass(frozen=True)
class _Column:
    """A run of bytes in every row.

    Attributes:
        parts: pairs of uint8 [rows or 1, width] and bool of a shape that broadcasts to it: which bytes are used.
        sizes: int64 [rows or 1], bytes used.
    """

    parts: list[tuple[np.ndarray, np.ndarray]]
    sizes: np.ndarray

    @property
    def width(self) -> int:
        """Bytes, with room for the longest row."""
        return sum(data.shape[1] for data, _ in self.parts)


def _map_entry(name: str, values: np.ndarray) -> _Column:
    """The map entry of one column: key, then the list of values."""
    key = name.encode("utf-8")
    if values.dtype.kind == "f":
        data = np.ascontiguousarray(values, dtype="<f4").view(np.uint8)
        list_tag, packed = _FLOAT_LIST, _always(data)
    else:
        list_tag, packed = _INT64_LIST, _varints(values)
    feature = _message(list_tag, _message(_PACKED_VALUES, packed))
    return _message(_ENTRY, _concatenate([_message(_KEY, _constant(key)), _message(_VALUE, feature)]))


def _message(tag: bytes, content: _Column) -> _Column:
    """A length-delimited field: tag, length of the content, content."""
    return _concatenate([_constant(tag), _varints(content.sizes[:, None]), content])


def _concatenate(columns: Sequence[_Column]) -> _Column:
    parts = [part for column in columns for part in column.parts]
    return _Column(parts, functools.reduce(np.add, (column.sizes for column in columns)))


def _constant(data: bytes) -> _Column:
    return _always(np.frombuffer(data, np.uint8)[None])


def _always(data: np.ndarray) -> _Column:
    return _Column([(data, np.ones((1, 1), bool))], np.array([data.shape[1]], np.int64))


def _varints(values: np.ndarray) -> _Column:
    """Numbers [rows, n] in base 128, least significant byte first; the top bit of a byte is set where more follow."""
    rows, count = values.shape
    largest = int(values.max(initial=0))
    if largest < 128:
        return _always(values.astype(np.uint8))
    room = (largest.bit_length() + 6) // 7
    rest: np.ndarray = values.astype(np.uint32 if largest < 1 << 32 else np.uint64)
    data = np.empty((rows, count, room), np.uint8)
    used = np.empty((rows, count, room), bool)
    used[:, :, 0] = True
    for index in range(room):
        data[:, :, index] = rest & 0x7F
        rest = rest >> 7
        if index + 1 < room:
            used[:, :, index + 1] = more = rest > 0
            data[:, :, index] |= more.view(np.uint8) << 7
    used_in_row = used.reshape(rows, -1)
    return _Column([(data.reshape(rows, -1), used_in_row)], np.count_nonzero(used_in_row, axis=1))

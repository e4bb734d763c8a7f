"""Records are framed as TensorFlow does it."""

import numpy as np
import pytest
import tensorflow as tf

from data_prep import framing, records
from data_prep.checksums import masked_crc32c
from tests.data_prep.test_records import some_instances


def test_the_checksum_is_that_of_the_standard():
    """CRC-32C of "123456789" is 0xE3069283 (RFC 3720, B.4), masked as TensorFlow does."""
    [masked] = masked_crc32c(np.frombuffer(b"123456789", np.uint8), np.array([9]))
    rotated = (int(masked) - 0xA282EAD8) & 0xFFFFFFFF
    assert (rotated >> 17 | rotated << 15) & 0xFFFFFFFF == 0xE3069283


@pytest.mark.parametrize("longest", [0, 1, 3, 4, 5, 64, 700, 5000])
def test_files_are_those_of_tensorflow(tmp_path, longest):
    rng = np.random.default_rng(longest)
    sizes = rng.integers(0, longest + 1, 70)
    content = rng.integers(0, 256, sizes.sum()).astype(np.uint8)
    ends = np.cumsum(sizes)
    with tf.io.TFRecordWriter(str(tmp_path / "a")) as writer:
        for start, end in zip(ends - sizes, ends):
            writer.write(content[start:end].tobytes())
    assert framing.frame(content, sizes) == (tmp_path / "a").read_bytes()


def test_instances_are_framed_as_they_are_encoded(tmp_path):
    arrays = some_instances(rows=9)
    with tf.io.TFRecordWriter(str(tmp_path / "a")) as writer:
        for record in records.encode_pretraining(arrays):
            writer.write(record)
    assert records.frame_pretraining(arrays) == (tmp_path / "a").read_bytes()
    assert records.frame_pretraining({name: values[:0] for name, values in arrays.items()}) == b""

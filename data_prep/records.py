"""The one record schema of pre-training: how a TFRecord of instances is written, read back and checked.

The schema is the original release's: uncompressed TFRecord files of tf.train.Example with integer lists
`input_ids`, `input_mask`, `segment_ids` [max_seq_length], `masked_lm_positions`, `masked_lm_ids`
[max_predictions_per_seq], `next_sentence_labels` [1] and the float list `masked_lm_weights`
[max_predictions_per_seq]. All are padded with zeros; an unused prediction slot is position 0, id 0, weight 0. A
next-sentence label of 1 means that B is a random text.

TensorFlow is imported where records are parsed: the shapes and the framing of the files need none.
"""

import dataclasses
import os
import re
import struct
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from data_prep.example_encoder import encode_examples
from foundation import files
from foundation.errors import BertError

if typing.TYPE_CHECKING:
    import tensorflow as tf

MANIFEST_SUFFIX = ".manifest.json"

_SEQUENCE_KEYS = ("input_ids", "input_mask", "segment_ids")
_FLOAT_KEY = "masked_lm_weights"
_PREDICTION_KEYS = ("masked_lm_positions", "masked_lm_ids", _FLOAT_KEY)
_LABEL_KEY = "next_sentence_labels"

# TFRecord framing: length (uint64), its masked CRC (uint32), the record, its masked CRC (uint32).
_HEADER_BYTES = 12
_FOOTER_BYTES = 4
_READ_BYTES = 1 << 22
# How `name@N` numbers its files. Their manifest has the name without the number.
_NUMBER = re.compile(r"-\d{5}-of-\d{5}$")


@dataclasses.dataclass(frozen=True)
class PretrainingSchema:
    """Shapes of one pre-training record.

    Attributes:
        max_seq_length: tokens of an instance, padding included.
        max_predictions_per_seq: slots for masked tokens.
    """

    max_seq_length: int
    max_predictions_per_seq: int

    def lengths(self) -> dict[str, int]:
        """The number of values that each feature has in a record."""
        return {
            **dict.fromkeys(_SEQUENCE_KEYS, self.max_seq_length),
            **dict.fromkeys(_PREDICTION_KEYS, self.max_predictions_per_seq),
            _LABEL_KEY: 1,
        }

    def parse(self, serialized: "tf.Tensor") -> "dict[str, tf.Tensor]":
        """Parses a batch of serialised records, several times faster than one by one.

        Args:
            serialized: string [batch].

        Returns:
            dict of tensors: int32 `input_ids`, `input_mask`, `segment_ids` [batch, max_seq_length], int32
            `masked_lm_positions`, `masked_lm_ids` and float32 `masked_lm_weights` [batch, max_predictions_per_seq],
            int32 `next_sentence_labels` [batch, 1].
        """
        import tensorflow as tf

        features = {
            name: tf.io.FixedLenFeature([length], tf.float32 if name == _FLOAT_KEY else tf.int64)
            for name, length in self.lengths().items()
        }
        parsed = tf.io.parse_example(serialized, features)
        return {
            name: value if value.dtype == tf.float32 else tf.cast(value, tf.int32) for name, value in parsed.items()
        }


def encode_pretraining(arrays: Mapping[str, np.ndarray]) -> list[bytes]:
    """Serialises instances as the messages that `PretrainingSchema.parse` reads.

    Args:
        arrays: by the schema's seven names: integers [rows, max_seq_length],
            [rows, max_predictions_per_seq] or [rows, 1], and float32 `masked_lm_weights`.

    Returns:
        One tf.train.Example per row.
    """
    return encode_examples(
        {
            name: np.asarray(arrays[name], np.float32) if name == _FLOAT_KEY else arrays[name]
            for name in (*_SEQUENCE_KEYS, *_PREDICTION_KEYS, _LABEL_KEY)
        }
    )


def count(paths: Sequence[str]) -> int:
    """Counts the records of TFRecord files by their framing, without parsing them.

    Raises:
        BertError: a file ends inside a record.
    """
    return sum(1 for path in paths for _ in _records(path))


def check(paths: Sequence[str], schema: PretrainingSchema, vocab_size: int, first: int = 64) -> None:
    """Checks that records have the shapes and the vocabulary that a model expects.

    Args:
        paths: TFRecord files.
        schema: the expected shapes.
        vocab_size: ids must be below it.
        first: how many records to look at in each file.

    Raises:
        BertError: a file holds no record, is cut off or is no TFRecord, or its first records differ; the message
            names both lengths and the flag to change.
    """
    for path in paths:
        _check_size(path)
        index = -1
        for index, record in enumerate(_records(path)):
            _check_record(f"{path}, record {index}", record, schema, vocab_size)
            if index + 1 >= first:
                break
        if index < 0:
            raise BertError(f"{path}: holds no records. Build it again with data_prep/create_pretraining_data.py.")


def manifest_of(path: str) -> dict[str, Any]:
    """The manifest that `create_pretraining_data` wrote for a file of records; empty where there is none."""
    manifest = _NUMBER.sub("", path) + MANIFEST_SUFFIX
    return files.read_json(manifest) if files.exists(manifest) else {}


def find_damage(paths: Sequence[str]) -> tuple[str, int] | None:
    """Finds the first record that is cut off or corrupted.

    Every record's checksum is verified, so this reads the files to the end: for the moment after an input pipeline
    has failed, to name the place.

    Returns:
        The file and the record's number, counted from 0; None where nothing is wrong.

    Raises:
        BertError: a file does not exist.
    """
    import tensorflow as tf

    for path in paths:
        intact = 0
        try:
            for _ in tf.data.TFRecordDataset(path, buffer_size=_READ_BYTES):
                intact += 1
        except tf.errors.DataLossError:
            return path, intact
        except tf.errors.NotFoundError:
            raise BertError(f"{path}: no such file.") from None
    return None


def _records(path: str) -> Iterator[bytes]:
    """Yields the bytes of each record, trusting the checksums."""
    number = 0
    try:
        with files.open_file(path, "rb") as stream:
            pending, position = b"", 0
            while chunk := stream.read(_READ_BYTES):
                pending, position = pending[position:] + chunk, 0
                while len(pending) - position >= _HEADER_BYTES:
                    (length,) = struct.unpack_from("<Q", pending, position)
                    if length > 1 << 31:
                        raise BertError(f"{path}, record {number}: not a TFRecord, or corrupted.")
                    end = position + _HEADER_BYTES + length + _FOOTER_BYTES
                    if end > len(pending):
                        break
                    yield pending[position + _HEADER_BYTES : end - _FOOTER_BYTES]
                    position = end
                    number += 1
    except files.errors() as error:
        raise files.unreadable(path, error) from None
    if position < len(pending):
        raise BertError(f"{path}, record {number}: the file ends inside this record. Copy or build it again.")


def _check_size(path: str) -> None:
    """Compares a file with its manifest: one that is cut off between two records can still be read."""
    for output in manifest_of(path).get("outputs", ()):
        size = files.size(path)
        if os.path.basename(output["name"]) == os.path.basename(path) and size != output["bytes"]:
            raise BertError(
                f"{path}: has {size} bytes, and {output['bytes']} in its manifest: truncated or changed. "
                f"Copy or build it again."
            )


def _check_record(place: str, record: bytes, schema: PretrainingSchema, vocab_size: int) -> None:
    import tensorflow as tf

    try:
        features = tf.train.Example.FromString(record).features.feature
    except Exception:  # protobuf's DecodeError is in another module in each version
        raise BertError(f"{place}: not a tf.train.Example. Is this a TFRecord of pre-training data?") from None
    for name, expected in schema.lengths().items():
        if name not in features:
            raise BertError(f"{place}: has no {name!r}. Is this a TFRecord of pre-training data?")
        feature = features[name]
        values = feature.float_list.value if name == _FLOAT_KEY else feature.int64_list.value
        if len(values) != expected:
            flag = "max_predictions_per_seq" if name in _PREDICTION_KEYS else "max_seq_length"
            raise BertError(
                f"{place}: {name} has {len(values)} values and --{flag} is {expected}. "
                f"Pass --{flag}={len(values)}, or build the records again with --{flag}={expected}."
            )
        if name in ("input_ids", "masked_lm_ids") and max(values, default=0) >= vocab_size:
            raise BertError(
                f"{place}: token id {max(values)} does not fit the model's vocabulary of {vocab_size} (vocab_size in "
                f"--bert_config_file). The records were built with another vocabulary."
            )

"""The one record schema of pre-training: how a TFRecord of instances is written, read back and checked.

The schema is the original release's: uncompressed TFRecord files of tf.train.Example with integer lists
`input_ids`, `input_mask`, `segment_ids` [max_seq_length], `masked_lm_positions`, `masked_lm_ids`
[max_predictions_per_seq], `next_sentence_labels` [1] and the float list `masked_lm_weights`
[max_predictions_per_seq]. All are padded with zeros; an unused prediction slot is position 0, id 0, weight 0. A
next-sentence label of 1 says that B is a random text.
"""

import dataclasses
import os
import re
import struct

import numpy as np
import tensorflow as tf

from data_prep.example_encoder import encode_examples
from foundation import files
from foundation.errors import BertError
from foundation.files import read_json

_SEQUENCE_KEYS = ("input_ids", "input_mask", "segment_ids")
_PREDICTION_KEYS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
_LABEL_KEY = "next_sentence_labels"

# TFRecord framing: length (uint64), its masked CRC (uint32), the record, its masked CRC (uint32).
_HEADER_BYTES = 12
_FOOTER_BYTES = 4
_READ_BYTES = 1 << 22
# How `name@N` numbers its files; their manifest has the name without the number.
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")


@dataclasses.dataclass(frozen=True)
class PretrainingSchema:
    """Shapes of one pre-training record.

    Attributes:
        max_seq_length: tokens of an instance, padding included.
        max_predictions_per_seq: slots for masked tokens.
    """

    max_seq_length: int
    max_predictions_per_seq: int

    def lengths(self):
        """Dict of feature name to number of values in a record."""
        return {
            **dict.fromkeys(_SEQUENCE_KEYS, self.max_seq_length),
            **dict.fromkeys(_PREDICTION_KEYS, self.max_predictions_per_seq),
            _LABEL_KEY: 1,
        }

    def parse(self, serialized):
        """Parses a batch of serialised records; batching first makes this several times faster than one by one.

        Args:
            serialized: string [batch].

        Returns:
            dict of tensors: int32 `input_ids`, `input_mask`, `segment_ids` [batch, max_seq_length], int32
            `masked_lm_positions`, `masked_lm_ids` and float32 `masked_lm_weights` [batch, max_predictions_per_seq],
            int32 `next_sentence_labels` [batch, 1].
        """
        features = {
            name: tf.io.FixedLenFeature([length], tf.float32 if name == "masked_lm_weights" else tf.int64)
            for name, length in self.lengths().items()
        }
        parsed = tf.io.parse_example(serialized, features)
        return {
            name: value if value.dtype == tf.float32 else tf.cast(value, tf.int32) for name, value in parsed.items()
        }


def encode_pretraining(arrays):
    """Serialises instances as the messages that `PretrainingSchema.parse` reads.

    Args:
        arrays: dict of the schema's seven names to arrays: integers [rows, max_seq_length],
            [rows, max_predictions_per_seq] or [rows, 1], and float32 `masked_lm_weights`.

    Returns:
        list of bytes, one tf.train.Example a row.
    """
    return encode_examples(
        {
            name: np.asarray(arrays[name], np.float32) if name == "masked_lm_weights" else arrays[name]
            for name in (*_SEQUENCE_KEYS, *_PREDICTION_KEYS, _LABEL_KEY)
        }
    )


def count(files):
    """Counts the records of TFRecord files by their framing, without parsing them.

    Raises:
        BertError: a file ends inside a record.
    """
    return sum(1 for file in files for _ in _records(file))


def check(files, schema, vocab_size, first=64):
    """Checks that records have the shapes and the vocabulary that a model expects.

    Args:
        files: TFRecord files.
        schema: the expected `PretrainingSchema`.
        vocab_size: ids must be below it.
        first: how many records to look at in each file.

    Raises:
        BertError: a file holds no record, is cut off or is no TFRecord, or its first records differ; the message
            names both lengths and the flag to change.
    """
    for file in files:
        _check_size(file)
        index = -1
        for index, record in enumerate(_records(file)):
            _check_record(f"{file}, record {index}", record, schema, vocab_size)
            if index + 1 >= first:
                break
        if index < 0:
            raise BertError(f"{file}: holds no records. Build it again with data_prep/create_pretraining_data.py.")


def manifest_of(file):
    """What `create_pretraining_data` noted about a file of records: its manifest, or {} without one."""
    path = f"{_SHARD.sub('', file)}.manifest.json"
    return read_json(path) if files.exists(path) else {}


def find_damage(files):
    """Finds the first record that is cut off or corrupted.

    Every record's checksum is verified, so this reads the files to the end: for the moment after an input pipeline
    has failed, to name the place.

    Returns:
        (file, record number from 0), or None where nothing is wrong.

    Raises:
        BertError: a file is not there.
    """
    for file in files:
        intact = 0
        try:
            for _ in tf.data.TFRecordDataset(file, buffer_size=_READ_BYTES):
                intact += 1
        except tf.errors.DataLossError:
            return file, intact
        except tf.errors.NotFoundError:
            raise BertError(f"{file}: no such file.") from None
    return None


def _records(file):
    """Yields the bytes of each record, trusting the checksums."""
    number = 0
    try:
        with files.open_file(file, "rb") as stream:
            pending, position = b"", 0
            while chunk := stream.read(_READ_BYTES):
                pending, position = pending[position:] + chunk, 0
                while len(pending) - position >= _HEADER_BYTES:
                    (length,) = struct.unpack_from("<Q", pending, position)
                    if length > 1 << 31:
                        raise BertError(f"{file}, record {number}: not a TFRecord, or corrupted.")
                    end = position + _HEADER_BYTES + length + _FOOTER_BYTES
                    if end > len(pending):
                        break
                    yield pending[position + _HEADER_BYTES : end - _FOOTER_BYTES]
                    position = end
                    number += 1
    except files.errors() as error:
        raise files.unreadable(file, error) from None
    if position < len(pending):
        raise BertError(f"{file}, record {number}: the file ends inside this record. Copy or build it again.")


def _check_size(file):
    """A file cut off between two records still reads well: only its manifest tells."""
    for output in manifest_of(file).get("outputs", ()):
        size = files.size(file)
        if os.path.basename(output["name"]) == os.path.basename(file) and size != output["bytes"]:
            raise BertError(
                f"{file}: has {size} bytes, and {output['bytes']} by its manifest: truncated or changed. "
                f"Copy or build it again."
            )


def _check_record(place, record, schema, vocab_size):
    try:
        features = tf.train.Example.FromString(record).features.feature
    except Exception:  # protobuf's DecodeError lives in different modules from version to version
        raise BertError(f"{place}: not a tf.train.Example. Is this a TFRecord of pre-training data?") from None
    for name, expected in schema.lengths().items():
        if name not in features:
            raise BertError(f"{place}: has no {name!r}. Is this a TFRecord of pre-training data?")
        feature = features[name]
        values = feature.float_list.value if name == "masked_lm_weights" else feature.int64_list.value
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

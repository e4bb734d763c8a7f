"""The one record schema of pre-training: how a TFRecord of instances is written, read back and checked.

The schema is the original release's: uncompressed TFRecord files of tf.train.Example with integer lists
`input_ids`, `input_mask`, `segment_ids` [max_seq_length], `masked_lm_positions`, `masked_lm_ids`
[max_predictions_per_seq], `next_sentence_labels` [1] and the float list `masked_lm_weights`
[max_predictions_per_seq]. All are padded with zeros; an unused prediction slot is position 0, id 0, weight 0. A
next-sentence label of 1 means that B is a random text.

TensorFlow is imported where records are parsed: the shapes and the framing of the files (`data_prep.framing`) need
none.
"""

import dataclasses
import functools
import itertools
import os
import re
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from data_prep import framing
from data_prep.example_encoder import encode_examples, frame_examples
from foundation import files, state
from foundation.errors import BertError

if typing.TYPE_CHECKING:
    import tensorflow as tf

MANIFEST_SUFFIX = ".manifest.json"

_SEQUENCE_KEYS = ("input_ids", "input_mask", "segment_ids")
_FLOAT_KEY = "masked_lm_weights"
_PREDICTION_KEYS = ("masked_lm_positions", "masked_lm_ids", _FLOAT_KEY)
_LABEL_KEY = "next_sentence_labels"

_INT32_LIMIT = 1 << 31
_READ_BYTES = 1 << 22
_CHECKED_TOGETHER = 1 << 10
# What is read of a manifest (`data_prep.manifest` has the whole).
_MANIFEST = {
    "settings": {str: state.ANY},
    "vocabulary": {"path": str, "size": int, "sha256": str},
    "inputs": [{str: state.ANY}],
    "counts": {str: int},
    "outputs": [{"name": str, "bytes": int, "records": int}],
}
# How `name@N` numbers its files. Their manifest has the name without the number.
_NUMBER = re.compile(r"-\d{5}-of-\d{5}$")


@dataclasses.dataclass(frozen=True)
class PretrainingSchema:
    """What pre-training records must be like.

    Attributes:
        max_seq_length: tokens of an instance, padding included.
        max_predictions_per_seq: slots for masked tokens.
        vocab_size: ids are below it; None allows any that int32 holds.
        type_vocab_size: segment ids are below it; None allows any that int32 holds.
    """

    max_seq_length: int
    max_predictions_per_seq: int
    vocab_size: int | None = None
    type_vocab_size: int | None = None

    def lengths(self) -> dict[str, int]:
        """The number of values that each feature has in a record."""
        return {
            **dict.fromkeys(_SEQUENCE_KEYS, self.max_seq_length),
            **dict.fromkeys(_PREDICTION_KEYS, self.max_predictions_per_seq),
            _LABEL_KEY: 1,
        }

    def limits(self) -> dict[str, int]:
        """For each integer feature, the number that its values, from 0, are below."""
        vocab_size = self.vocab_size or _INT32_LIMIT
        return {
            "input_ids": vocab_size,
            "input_mask": 2,
            "segment_ids": self.type_vocab_size or _INT32_LIMIT,
            "masked_lm_positions": self.max_seq_length,
            "masked_lm_ids": vocab_size,
            _LABEL_KEY: 2,
        }

    def parse(self, serialized: "tf.Tensor") -> "dict[str, tf.Tensor]":
        """Parses and checks a batch of serialised records, several times faster than one by one.

        Every value of every record is compared with `limits`; weights are from 0 to 1. `find_problem` names the record
        that does not fit.

        Args:
            serialized: string [batch].

        Returns:
            dict of tensors: int32 `input_ids`, `input_mask`, `segment_ids` [batch, max_seq_length], int32
            `masked_lm_positions`, `masked_lm_ids` and float32 `masked_lm_weights` [batch, max_predictions_per_seq],
            int32 `next_sentence_labels` [batch, 1].

        Raises:
            tf.errors.InvalidArgumentError, UnicodeDecodeError: a record cannot be parsed, a feature is missing or has
                another length, or a value is out of range. UnicodeDecodeError is how Python shows an error of
                TensorFlow's that quotes bytes.
        """
        import tensorflow as tf

        features = {
            name: tf.io.FixedLenFeature([length], tf.float32 if name == _FLOAT_KEY else tf.int64)
            for name, length in self.lengths().items()
        }
        parsed = tf.io.parse_example(serialized, features)
        weights = parsed[_FLOAT_KEY]
        fits = [tf.reduce_all((weights >= 0) & (weights <= 1))]  # false for NaN too
        for name, limit in self.limits().items():
            # As unsigned numbers, the negative ones are the largest.
            fits.append(tf.reduce_all(tf.bitcast(parsed[name], tf.uint64) < tf.constant(limit, tf.uint64)))
        tf.debugging.Assert(tf.reduce_all(tf.stack(fits)), ["a record holds a value out of range"])
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
    return encode_examples(_columns(arrays))


def frame_pretraining(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The messages of `encode_pretraining` as the records of a TFRecord file, end to end."""
    return frame_examples(_columns(arrays))


def _columns(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.asarray(arrays[name], np.float32) if name == _FLOAT_KEY else arrays[name]
            for name in (*_SEQUENCE_KEYS, *_PREDICTION_KEYS, _LABEL_KEY)}


def count(paths: Sequence[str]) -> int:
    """The number of records of files: as their manifest has it, or counted where it does not describe a file.

    Raises:
        BertError: a file is no TFRecord, is damaged or cut off.
    """
    described = _described(paths)
    return sum(_counted(path, described.get(path)) for path in paths)


def indexes(paths: Sequence[str]) -> list[framing.Index]:
    """Where the records of files are: as their manifest has it, or found where it does not describe a file.

    Raises:
        BertError: a file is no TFRecord, is damaged or cut off.
    """
    described = _described(paths)
    return [_index(path, files.size(path), files.modified(path), described.get(path, {}).get("index", ""),
                   described.get(path, {}).get("records", -1)) for path in paths]


@functools.lru_cache(maxsize=1 << 14)
def _index(path: str, size: int, modified: int, described: str, records: int) -> framing.Index:
    """The index of a file in this state."""
    return (framing.Index.from_text(described, records, size) if described else None) or framing.index(path)


def check(paths: Sequence[str], schema: PretrainingSchema, first: int = 64) -> None:
    """Checks, before a run begins, that records fit a model; all other records are checked where they are parsed.

    Args:
        paths: TFRecord files. Some may be empty.
        schema: PretrainingSchema.
        first: how many records to look at in each file.

    Raises:
        BertError: no file holds a record, one is cut off or no TFRecord, or the first records do not fit; the message
            names the flag to change where it is one.
    """
    described, empty = _described(paths), True
    for path in paths:
        _check_size(path, described.get(path))
        for number, record in enumerate(itertools.islice(framing.records(path), first)):
            _check_record(f"{path}, record {number}", record, schema)
            empty = False
    if empty:
        raise BertError(f"{paths[0]}{' and the other files' if len(paths) > 1 else ''}: holds no records. Build it "
                        "again with data_prep/create_pretraining_data.py.")


def find_problem(paths: Sequence[str], schema: PretrainingSchema) -> BertError | None:
    """Finds the first record that is damaged or does not fit.

    This reads files to the end: for the moment after an input pipeline has failed, to name the place.

    Args:
        paths: TFRecord files.
        schema: PretrainingSchema.

    Returns:
        The error to raise; None where nothing is wrong.
    """
    try:
        for path in paths:
            _check_all(path, schema)
    except BertError as error:
        return error
    return None


def manifest_of(path: str) -> dict[str, Any]:
    """The manifest that `create_pretraining_data` wrote for a file of records; empty where there is none.

    Raises:
        BertError: a file of the manifest's name is none.
    """
    manifest = _NUMBER.sub("", path) + MANIFEST_SUFFIX
    return read_manifest(manifest) if files.exists(manifest) else {}


def read_manifest(path: str) -> dict[str, Any]:
    """Reads a manifest. Raises BertError where it is damaged or something else."""
    return state.read(path, _MANIFEST, "Build the records again, or remove it to read them without.")


def _described(paths: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What manifests have of files that exist, by path. Each manifest is read once."""
    by_manifest: dict[str, list[str]] = {}
    for path in paths:
        by_manifest.setdefault(_NUMBER.sub("", path), []).append(path)
    described: dict[str, dict[str, Any]] = {}
    for members in by_manifest.values():
        outputs = {os.path.basename(output["name"]): output for output in manifest_of(members[0]).get("outputs", ())}
        described |= {path: outputs[os.path.basename(path)] for path in members
                      if os.path.basename(path) in outputs and files.exists(path)}
    return described


def _counted(path: str, described: dict[str, Any] | None) -> int:
    if described and described["bytes"] == files.size(path) and described["records"] >= 0:
        return described["records"]
    return framing.count(path)


def _check_size(path: str, described: dict[str, Any] | None) -> None:
    """Compares a file with its manifest: one that is cut off between two records can still be read."""
    if described and described["bytes"] != files.size(path):
        raise BertError(
            f"{path}: has {files.size(path)} bytes, and {described['bytes']} in its manifest: truncated or changed. "
            f"Copy or build it again."
        )


def _check_all(path: str, schema: PretrainingSchema) -> None:
    """Checks every record of a file, and its checksums. Raises BertError."""
    import tensorflow as tf

    whole = tf.data.TFRecordDataset(path, buffer_size=_READ_BYTES)
    number = 0
    try:
        for batch in whole.batch(_CHECKED_TOGETHER):
            _check_batch(path, number, batch, schema)
            number += len(batch)
    except tf.errors.NotFoundError:
        raise BertError(f"{path}: no such file.") from None
    except tf.errors.DataLossError:
        # A batch that damage ends is not returned: its records, one by one.
        try:
            for record in whole.skip(number):
                _check_batch(path, number, record[None], schema)
                number += 1
        except tf.errors.DataLossError:
            raise BertError(
                f"{path}, record {number}: truncated or corrupted. Copy or build this file again.") from None


def _check_batch(path: str, number: int, batch: "tf.Tensor", schema: PretrainingSchema) -> None:
    """Checks records of which the first has this number. Raises BertError."""
    if not _parses(batch, schema):
        for index, record in enumerate(batch.numpy(), number):
            _check_record(f"{path}, record {index}", record, schema)
            if not _parses([record], schema):
                raise BertError(f"{path}, record {index}: cannot be parsed. Build this file again.")


def _parses(batch: Any, schema: PretrainingSchema) -> bool:
    import tensorflow as tf

    try:
        schema.parse(batch)
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
        return False
    return True


def _check_record(place: str, record: bytes, schema: PretrainingSchema) -> None:
    """Checks a record as `PretrainingSchema.parse` does. Raises BertError: what is wrong, and what to change."""
    import tensorflow as tf

    try:
        features = tf.train.Example.FromString(record).features.feature
    except Exception:  # protobuf's DecodeError is in another module in each version
        raise BertError(f"{place}: not a tf.train.Example. Is this a TFRecord of pre-training data?") from None
    limits = schema.limits()
    for name, length in schema.lengths().items():
        if name not in features:
            raise BertError(f"{place}: has no {name!r}. Is this a TFRecord of pre-training data?")
        feature = features[name]
        values = feature.float_list.value if name == _FLOAT_KEY else feature.int64_list.value
        if len(values) != length:
            raise _wrong_length(place, name, len(values), length)
        limit = limits.get(name)
        for value in values:
            if not (0 <= value <= 1 if limit is None else 0 <= value < limit):
                raise _out_of_range(place, name, value, limit)


def _wrong_length(place: str, name: str, found: int, expected: int) -> BertError:
    if name == _LABEL_KEY or not found:
        return BertError(f"{place}: {name} has {found} values, not {expected}. Is this a TFRecord of pre-training "
                         "data?")
    flag = "max_predictions_per_seq" if name in _PREDICTION_KEYS else "max_seq_length"
    return BertError(f"{place}: {name} has {found} values and --{flag} is {expected}. Pass --{flag}={found}, or build "
                     f"the records again with --{flag}={expected}.")


def _out_of_range(place: str, name: str, value: float, limit: int | None) -> BertError:
    if name in ("input_ids", "masked_lm_ids") and limit is not None and value >= limit:
        return BertError(f"{place}: token id {value} does not fit the model's vocabulary of {limit} (vocab_size in "
                         "--bert_config_file). The records were built with another vocabulary.")
    if name == "segment_ids" and limit is not None and value >= limit:
        return BertError(f"{place}: segment id {value} does not fit the model's {limit} segments (type_vocab_size in "
                         "--bert_config_file).")
    return BertError(f"{place}: {name} holds {value}, which is not from 0 to {1 if limit is None else limit - 1}. "
                     "Build this file again.")

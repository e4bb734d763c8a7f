"""The record schema: written and read back, records of the original, and messages about records that do not fit."""

import json
import pathlib
import struct

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from data_prep import framing, records
from data_prep.example_encoder import encode_examples
from data_prep.records import PretrainingSchema
from foundation.errors import BertError


def some_instances(rows=5, seq=16, predictions=4, vocab_size=30_000):
    rng = np.random.default_rng(7)
    return {
        "input_ids": rng.integers(0, vocab_size, (rows, seq), np.int32),
        "input_mask": rng.integers(0, 2, (rows, seq), np.int32),
        "segment_ids": rng.integers(0, 2, (rows, seq), np.int32),
        "masked_lm_positions": np.sort(rng.integers(0, seq, (rows, predictions), np.int32)),
        "masked_lm_ids": rng.integers(0, vocab_size, (rows, predictions), np.int32),
        "masked_lm_weights": rng.integers(0, 2, (rows, predictions)).astype(np.float32),
        "next_sentence_labels": rng.integers(0, 2, (rows, 1), np.int32),
    }


def write(path, serialized):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in serialized:
            writer.write(record)
    return str(path)


def as_example(arrays, row):
    """A record built like the original: one Feature object per key, in the original's order of keys."""
    example = tf.train.Example()
    for name in ("next_sentence_labels", "input_ids", "input_mask", "segment_ids", "masked_lm_positions",
                 "masked_lm_ids"):
        example.features.feature[name].int64_list.value.extend(arrays[name][row].tolist())
    example.features.feature["masked_lm_weights"].float_list.value.extend(arrays["masked_lm_weights"][row].tolist())
    return example


def test_parse_gives_back_what_was_encoded():
    arrays = some_instances()
    parsed = PretrainingSchema(16, 4).parse(tf.constant(records.encode_pretraining(arrays)))
    assert parsed.keys() == arrays.keys()
    for name, values in arrays.items():
        assert parsed[name].dtype == (tf.float32 if name == "masked_lm_weights" else tf.int32)
        np.testing.assert_array_equal(parsed[name], values)


def test_parse_reads_the_recorded_instances_of_the_original(golden):
    recorded = dict(np.load(golden / "pretraining_data" / "speech_64_d1_short50_seed7.npz"))
    schema = PretrainingSchema(64, 10)
    assert {name: values.shape[1] for name, values in recorded.items()} == schema.lengths()
    serialized = [as_example(recorded, row).SerializeToString() for row in range(20)]
    for name, values in schema.parse(tf.constant(serialized)).items():
        np.testing.assert_array_equal(values, recorded[name][:20])


def test_encoded_messages_equal_protobufs_own():
    arrays = some_instances(rows=3)
    for row, record in enumerate(records.encode_pretraining(arrays)):
        assert record == as_example(arrays, row).SerializeToString(deterministic=True)


@hypothesis.settings(deadline=None, max_examples=30)
@hypothesis.given(st.data(), st.integers(1, 4), st.sampled_from([100, 1 << 14, 1 << 28, 1 << 40]))
def test_integers_of_any_size_survive(data, rows, bound):
    column = hypothesis.extra.numpy.arrays(np.int64, (rows, 3), elements=st.integers(0, bound))
    values = data.draw(column)
    weights = data.draw(hypothesis.extra.numpy.arrays(np.float32, (rows, 150)))
    for row, record in enumerate(encode_examples({"v": values, "w": weights})):
        feature = tf.train.Example.FromString(record).features.feature
        assert list(feature["v"].int64_list.value) == values[row].tolist()
        np.testing.assert_array_equal(np.array(feature["w"].float_list.value, np.float32), weights[row])


def test_count_adds_up_files(tmp_path):
    serialized = records.encode_pretraining(some_instances(rows=7))
    files = [write(tmp_path / "a", serialized), write(tmp_path / "b", serialized[:2]), write(tmp_path / "c", [])]
    assert records.count(files) == 9


def test_count_seeks_over_records_of_any_size(tmp_path):
    sizes = [0, 1, 4096, 8192 - 16, 8192, 100_000]
    assert records.count([write(tmp_path / "a", [b"x" * size for size in sizes])]) == 6


def manifest_for(*files):
    """A manifest of files and numbers of records."""
    return json.dumps({
        "settings": {}, "vocabulary": {"path": "v", "size": 1, "sha256": ""}, "inputs": [], "counts": {},
        "outputs": [{"name": file.name, "bytes": file.stat().st_size, "records": number} for file, number in files]})


def test_count_reads_no_file_that_its_manifest_describes(tmp_path):
    file = tmp_path / "a"
    write(file, records.encode_pretraining(some_instances(rows=7)))
    (tmp_path / "a.manifest.json").write_text(manifest_for((file, 7000)))
    assert records.count([str(file)]) == 7000
    file.write_bytes(file.read_bytes() * 2)
    assert records.count([str(file)]) == 14


@pytest.mark.parametrize("content, message", [
    ("[]", "it is a list, not an object"),
    ('{"settings": 3}', "missing"),
    (manifest_for().replace('"outputs": []', '"outputs": [{"name": "a", "bytes": "1", "records": 1}]'),
     r"outputs\[0\].bytes is a string"),
])
def test_a_manifest_of_another_form_is_named(tmp_path, content, message):
    file = write(tmp_path / "a", records.encode_pretraining(some_instances()))
    (tmp_path / "a.manifest.json").write_text(content)
    for read in (records.count, lambda files: records.check(files, FITTING)):
        with pytest.raises(BertError, match=rf"a\.manifest\.json: not a state file.*{message}.*Build the records"):
            read([file])


FITTING = PretrainingSchema(16, 4, 30_000, 2)


def test_records_that_fit_pass(tmp_path):
    file = write(tmp_path / "a", records.encode_pretraining(some_instances()))
    assert records.check([file], FITTING) is None
    assert records.find_problem([file], FITTING) is None


@pytest.mark.parametrize(
    "schema, message",
    [
        (PretrainingSchema(32, 4), r"input_ids has 16 values and --max_seq_length is 32.*=16"),
        (PretrainingSchema(16, 9), r"has 4 values and --max_predictions_per_seq is 9"),
        (PretrainingSchema(16, 4, 1000), r"token id \d+ does not fit the model's vocabulary of 1000"),
    ],
)
def test_check_names_both_lengths_and_the_flag(tmp_path, schema, message):
    file = write(tmp_path / "a", records.encode_pretraining(some_instances()))
    with pytest.raises(BertError, match=f"{file}, record 0: .*{message}"):
        records.check([file], schema)


@pytest.mark.parametrize(
    "content, message",
    [
        ([], "holds no records"),
        ([b"\xff\xff\xff"], "record 0: not a tf.train.Example"),
        (encode_examples({"unique_ids": np.ones((1, 1), int)}), "record 0: has no 'input_ids'"),
    ],
)
def test_check_names_a_file_with_different_content(tmp_path, content, message):
    file = write(tmp_path / "a", content)
    with pytest.raises(BertError, match=message):
        records.check([file], FITTING)


def test_some_of_the_files_may_be_empty(tmp_path):
    empty = write(tmp_path / "empty", [])
    records.check([empty, write(tmp_path / "a", records.encode_pretraining(some_instances()))], FITTING)
    with pytest.raises(BertError, match="empty and the other files: holds no records"):
        records.check([empty, write(tmp_path / "b", [])], FITTING)


def test_a_text_file_is_not_a_tfrecord(tmp_path):
    (tmp_path / "a.txt").write_text("The quick brown fox jumps over the lazy dog.")
    with pytest.raises(BertError, match=r"a\.txt, record 0: not a TFRecord"):
        records.check([str(tmp_path / "a.txt")], FITTING)


# What each value is changed to, with a part of the message.
MISFITS = [
    ("input_ids", -1, "input_ids holds -1, which is not from 0 to 29999"),
    ("input_ids", 30_000, "token id 30000 does not fit the model's vocabulary of 30000"),
    ("input_ids", (1 << 32) + 5, "token id 4294967301 does not fit"),
    ("input_mask", 7, "input_mask holds 7, which is not from 0 to 1"),
    ("segment_ids", -1, "segment_ids holds -1"),
    ("segment_ids", 2, "segment id 2 does not fit the model's 2 segments"),
    ("masked_lm_positions", -1, "masked_lm_positions holds -1, which is not from 0 to 15"),
    ("masked_lm_positions", 16, "masked_lm_positions holds 16"),
    ("masked_lm_ids", -3, "masked_lm_ids holds -3"),
    ("masked_lm_ids", 30_000, "token id 30000"),
    ("masked_lm_weights", -5.0, "masked_lm_weights holds -5.0, which is not from 0 to 1"),
    ("masked_lm_weights", 1.5, "masked_lm_weights holds 1.5"),
    ("masked_lm_weights", float("nan"), "masked_lm_weights holds nan"),
    ("masked_lm_weights", float("inf"), "masked_lm_weights holds inf"),
    ("next_sentence_labels", -1, "next_sentence_labels holds -1, which is not from 0 to 1"),
    ("next_sentence_labels", 2, "next_sentence_labels holds 2"),
]


@pytest.mark.parametrize("name, value, message", MISFITS)
def test_a_value_out_of_range_is_refused_and_named_in_any_record(tmp_path, name, value, message):
    arrays = some_instances(rows=150)
    example = as_example(arrays, 100)
    feature = example.features.feature[name]
    (feature.float_list if name == "masked_lm_weights" else feature.int64_list).value[-1] = value
    serialized = records.encode_pretraining(arrays)
    serialized[100] = example.SerializeToString()
    FITTING.parse(tf.constant(serialized[:100]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        FITTING.parse(tf.constant(serialized))
    file = write(tmp_path / "a", serialized)
    error = records.find_problem([file], FITTING)
    assert isinstance(error, BertError)
    assert str(error).startswith(f"{file}, record 100: {message}")
    assert "\n" not in str(error)


@pytest.mark.parametrize("change, message", [
    (lambda features: features.pop("segment_ids"), "has no 'segment_ids'"),
    (lambda features: features["input_ids"].int64_list.value.append(1), "input_ids has 17 values"),
    (lambda features: features["masked_lm_weights"].float_list.value.append(1), "masked_lm_weights has 5 values"),
    (lambda features: features["masked_lm_ids"].float_list.value.append(1), "masked_lm_ids has 0 values"),
    (lambda features: features["next_sentence_labels"].int64_list.value.append(1), "has 2 values, not 1"),
])
def test_a_feature_that_is_not_whole_is_named_in_any_record(tmp_path, change, message):
    arrays = some_instances(rows=100)
    example = as_example(arrays, 80)
    change(example.features.feature)
    serialized = records.encode_pretraining(arrays)
    serialized[80] = example.SerializeToString()
    error = records.find_problem([write(tmp_path / "a", serialized)], FITTING)
    assert "record 80: " in str(error) and message in str(error)


@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(st.data())
def test_a_record_is_checked_alike_in_the_pipeline_and_when_it_is_named(data):
    """Any bytes of a record changed: both ways accept it, or both refuse it."""
    (record,) = records.encode_pretraining(some_instances(rows=1))
    changed = bytearray(record)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    try:
        FITTING.parse(tf.constant([bytes(changed)]))
        fits = True
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
        fits = False
    if fits:
        records._check_batch("a", 0, tf.constant([bytes(changed)]), FITTING)
    else:
        with pytest.raises(BertError, match="a, record 0: "):
            records._check_batch("a", 0, tf.constant([bytes(changed)]), FITTING)


def test_damage_is_named_by_file_and_record(tmp_path):
    serialized = records.encode_pretraining(some_instances(rows=6))
    whole = write(tmp_path / "whole", serialized)
    data = (tmp_path / "whole").read_bytes()
    (tmp_path / "cut").write_bytes(data[:-3])
    flipped = bytearray(data)
    flipped[sum(len(record) + 16 for record in serialized[:3]) + 12 + 40] ^= 1
    (tmp_path / "flipped").write_bytes(bytes(flipped))
    assert records.find_problem([whole], FITTING) is None
    for name, number in (("cut", 5), ("flipped", 3)):
        error = records.find_problem([whole, str(tmp_path / name)], FITTING)
        assert str(error).startswith(f"{tmp_path / name}, record {number}: truncated or corrupted")


@pytest.mark.parametrize("byte", range(12))
def test_a_flipped_byte_of_a_length_is_found_at_once(tmp_path, byte):
    """Each byte of the length and of its checksum; the length would ask for up to 2^64 bytes."""
    serialized = records.encode_pretraining(some_instances(rows=6))
    data = bytearray(pathlib.Path(write(tmp_path / "a", serialized)).read_bytes())
    data[sum(len(record) + 16 for record in serialized[:3]) + byte] ^= 0x81
    (tmp_path / "a").write_bytes(bytes(data))
    for read in (records.count, lambda files: records.check(files, FITTING)):
        with pytest.raises(BertError, match=r"a, record 3: not a TFRecord, or corrupted\. Copy or build"):
            read([str(tmp_path / "a")])
    assert "a, record 3: truncated or corrupted" in str(records.find_problem([str(tmp_path / "a")], FITTING))


def test_a_length_beyond_the_file_is_not_believed(tmp_path):
    """With a true checksum: only the size of the file tells."""
    for length, message in ((1 << 20, "the file ends inside this record"), (1 << 40, "not a TFRecord")):
        header = struct.pack("<QI", length, framing._checksum_of_length(length))
        (tmp_path / "a").write_bytes(header + bytes(100))
        with pytest.raises(BertError, match=f"record 0: {message}"):
            records.count([str(tmp_path / "a")])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BertError, match="missing: no such file"):
        records.count([str(tmp_path / "missing")])
    assert "missing: no such file" in str(records.find_problem([str(tmp_path / "missing")], FITTING))


def test_count_names_the_record_a_file_is_cut_in(tmp_path):
    write(tmp_path / "a", records.encode_pretraining(some_instances(rows=6)))
    data = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(data[:-3])
    with pytest.raises(BertError, match="record 5: the file ends inside this record"):
        records.count([str(tmp_path / "a")])


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord-00000-of-00002"])
def test_a_file_cut_off_between_two_records_differs_from_its_manifest(tmp_path, name):
    serialized = records.encode_pretraining(some_instances())
    file = write(tmp_path / name, serialized)
    size = (tmp_path / name).stat().st_size
    (tmp_path / "a.tfrecord.manifest.json").write_text(manifest_for((tmp_path / name, 5)))
    records.check([file], FITTING)
    write(tmp_path / name, serialized[:-1])
    with pytest.raises(BertError, match=rf"{name}: has \d+ bytes, and {size} in its manifest: truncated or changed"):
        records.check([file], FITTING)

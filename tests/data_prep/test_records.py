"""The record schema: written and read back, records of the original, and messages about records that do not fit."""

import json

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from data_prep import records
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


def test_count_crosses_the_edges_of_its_read_buffer(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_READ_BYTES", 100)
    assert records.count([write(tmp_path / "a", records.encode_pretraining(some_instances(rows=7)))]) == 7


def test_check_accepts_records_that_fit(tmp_path):
    file = write(tmp_path / "a", records.encode_pretraining(some_instances()))
    assert records.check([file], PretrainingSchema(16, 4), 30_000) is None


@pytest.mark.parametrize(
    "schema, vocab_size, message",
    [
        (PretrainingSchema(32, 4), 30_000, r"input_ids has 16 values and --max_seq_length is 32.*=16"),
        (PretrainingSchema(16, 9), 30_000, r"has 4 values and --max_predictions_per_seq is 9"),
        (PretrainingSchema(16, 4), 1000, r"token id \d+ does not fit the model's vocabulary of 1000"),
    ],
)
def test_check_names_both_lengths_and_the_flag(tmp_path, schema, vocab_size, message):
    file = write(tmp_path / "a", records.encode_pretraining(some_instances()))
    with pytest.raises(BertError, match=f"{file}, record 0: .*{message}"):
        records.check([file], schema, vocab_size)


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
        records.check([file], PretrainingSchema(16, 4), 1000)


def test_a_text_file_is_not_a_tfrecord(tmp_path):
    (tmp_path / "a.txt").write_text("The quick brown fox jumps over the lazy dog.")
    with pytest.raises(BertError, match=r"a\.txt, record 0: not a TFRecord"):
        records.check([str(tmp_path / "a.txt")], PretrainingSchema(16, 4), 1000)


def test_damage_is_named_by_file_and_record(tmp_path):
    serialized = records.encode_pretraining(some_instances(rows=6))
    whole = write(tmp_path / "whole", serialized)
    data = (tmp_path / "whole").read_bytes()
    (tmp_path / "cut").write_bytes(data[:-3])
    flipped = bytearray(data)
    flipped[sum(len(record) + 16 for record in serialized[:3]) + 12 + 40] ^= 1
    (tmp_path / "flipped").write_bytes(bytes(flipped))
    assert records.find_damage([whole]) is None
    assert records.find_damage([whole, str(tmp_path / "cut")]) == (str(tmp_path / "cut"), 5)
    assert records.find_damage([whole, str(tmp_path / "flipped")]) == (str(tmp_path / "flipped"), 3)


def test_a_missing_file_is_named(tmp_path):
    for function in (records.count, records.find_damage):
        with pytest.raises(BertError, match="missing: no such file"):
            function([str(tmp_path / "missing")])


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
    outputs = [{"name": name, "bytes": size}, {"name": "another", "bytes": 1}]
    (tmp_path / "a.tfrecord.manifest.json").write_text(json.dumps({"outputs": outputs}))
    records.check([file], PretrainingSchema(16, 4), 30_000)
    write(tmp_path / name, serialized[:-1])
    with pytest.raises(BertError, match=rf"{name}: has \d+ bytes, and {size} in its manifest: truncated or changed"):
        records.check([file], PretrainingSchema(16, 4), 30_000)

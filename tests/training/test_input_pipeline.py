"""The order of records: by seed, from any batch on, the same however many workers read."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from data_prep import framing, records
from foundation.errors import BertError
from tests.conftest import tiny_arrays, write_records
from training import input_pipeline
from training.input_pipeline import RecordSource

SCHEMA = records.PretrainingSchema(16, 3, 100, 2)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Three files of 10 records whose first id tells file and record."""
    folder = tmp_path_factory.mktemp("pipeline")
    files = []
    for index in range(3):
        arrays = tiny_arrays(rows=10)
        arrays["input_ids"][:, 0] = index * 10 + np.arange(10)
        files.append(str(write_records(folder / f"{index}.tfrecord", arrays)))
    return RecordSource(tuple(files), SCHEMA)


def context(workers=1, worker=0, replicas=1):
    return tf.distribute.InputContext(workers, worker, workers * replicas)


def numbers(dataset, batches):
    return [batch["input_ids"][:, 0].numpy().tolist() for batch in dataset.take(batches)]


def test_each_epoch_holds_every_record_once_in_another_order(source):
    stream = input_pipeline.training_batches(source, 30, seed=1, shuffle_buffer=5)(context())
    first, second = numbers(stream, 2)
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second


def test_order_follows_the_seed(source):
    def order(seed):
        return numbers(input_pipeline.training_batches(source, 30, seed=seed)(context()), 1)

    assert order(1) == order(1) != order(2)


def test_stream_starts_at_any_batch(source):
    whole = numbers(input_pipeline.training_batches(source, 4, seed=1, shuffle_buffer=7)(context()), 20)
    for first in (1, 7, 8, 19):
        late = input_pipeline.training_batches(source, 4, seed=1, shuffle_buffer=7, first_batch=first)
        assert numbers(late(context()), 20 - first) == whole[first:]


def test_workers_and_replicas_share_the_global_batch_in_order(source):
    make = input_pipeline.training_batches(source, 8, seed=1)
    whole = numbers(make(context()), 3)
    parts = [numbers(make(context(2, worker, 2)), 6) for worker in range(2)]
    for index, batch in enumerate(whole):
        slices = [parts[worker][2 * index + replica] for worker in range(2) for replica in range(2)]
        assert [number for part in slices for number in part] == batch


def test_evaluation_reads_each_record_once_and_fills_the_last_batch(source):
    batches = list(input_pipeline.evaluation_batches(source, 8)(context()))
    real = np.concatenate([batch["input_mask"][:, 0].numpy() for batch in batches])
    assert len(batches) == 4
    assert real.tolist() == [1] * 30 + [0] * 2
    ids = np.concatenate([batch["input_ids"][:, 0].numpy() for batch in batches])
    assert ids[:30].tolist() == list(range(30))


def test_evaluation_stops_after_the_most_batches_allowed(source):
    assert len(list(input_pipeline.evaluation_batches(source, 8, 2)(context()))) == 2


def test_damaged_file_and_record_are_named(source, tmp_path):
    damaged = tmp_path / "damaged.tfrecord"
    content = bytearray(pathlib.Path(source.files[0]).read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(content)
    error = input_pipeline.describe_read_error(
        tf.errors.DataLossError(None, None, "corrupted"), RecordSource((source.files[1], str(damaged)), SCHEMA))
    assert isinstance(error, BertError)
    assert str(error).startswith(f"{damaged}, record 5: truncated or corrupted")


def test_a_value_out_of_range_ends_the_stream_and_is_named_wherever_it_is(tmp_path):
    """The 90th record of the second file; its number comes from another pass over the files."""
    arrays = tiny_arrays(rows=100)
    whole = str(write_records(tmp_path / "whole", arrays))
    arrays["input_ids"][90, 3] = (1 << 32) + 5
    source = RecordSource((whole, str(write_records(tmp_path / "bad", arrays))), SCHEMA)
    for dataset in (input_pipeline.training_batches(source, 20, seed=1), input_pipeline.evaluation_batches(source, 20)):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            numbers(dataset(context()), 10)
        error = input_pipeline.describe_read_error(caught.value, source)
        assert str(error).startswith(f"{tmp_path / 'bad'}, record 90: token id 4294967301 does not fit")


def test_other_errors_stay_what_they_are(source):
    error = tf.errors.InvalidArgumentError(None, None, "of the model")
    assert input_pipeline.describe_read_error(error, source) is error


def test_empty_files_are_read(source, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    with_empty = RecordSource((str(tmp_path / "empty"), *source.files), SCHEMA)
    for _ in range(2):
        stream = input_pipeline.training_batches(with_empty, 30, seed=1)(context())
        assert sorted(numbers(stream, 1)[0]) == list(range(30))
    assert len(list(input_pipeline.evaluation_batches(with_empty, 8)(context()))) == 4


def test_a_record_whose_bytes_are_no_text_is_named_too(tmp_path):
    """TensorFlow quotes such a record in its message, which Python then cannot decode."""
    file = str(tmp_path / "a")
    with tf.io.TFRecordWriter(file) as writer:
        writer.write(b"\x0a\x93\xff\xfe")
    source = RecordSource((file,), SCHEMA)
    with pytest.raises(input_pipeline.ERRORS) as caught:
        list(input_pipeline.evaluation_batches(source, 1)(context()))
    error = input_pipeline.describe_read_error(caught.value, source)
    assert str(error).startswith(f"{file}, record 0: not a tf.train.Example")


def test_what_only_the_reader_notices_is_one_line_too(source, monkeypatch):
    """For example an index that is not the file's."""
    def fail(path, *_):
        raise BertError(f"{path}, near record 7: corrupted.")

    monkeypatch.setattr(framing, "read", fail)
    with pytest.raises(input_pipeline.ERRORS) as caught:
        numbers(input_pipeline.training_batches(source, 30, seed=1)(context()), 1)
    error = input_pipeline.describe_read_error(caught.value, source)
    assert isinstance(error, BertError)
    assert str(error) in [f"{file}, near record 7: corrupted." for file in source.files]


def test_resumed_streams_of_two_workers_are_those_of_one_that_never_stopped(tmp_path):
    """Files of different sizes, several epochs."""
    files, first = [], 0
    for index, rows in enumerate((17, 3, 40)):
        arrays = tiny_arrays(rows=rows)
        arrays["input_ids"][:, 0] = np.arange(first, first + rows)
        files.append(str(write_records(tmp_path / f"{index}.tfrecord", arrays)))
        first += rows
    source = RecordSource(tuple(files), SCHEMA)
    whole = numbers(input_pipeline.training_batches(source, 8, seed=1, shuffle_buffer=16)(context()), 40)
    for resumed in (3, 8, 30):
        late = input_pipeline.training_batches(source, 8, seed=1, shuffle_buffer=16, first_batch=resumed)
        assert numbers(late(context()), 40 - resumed) == whole[resumed:]
        halves = [numbers(late(context(2, worker)), 40 - resumed) for worker in range(2)]
        assert [one + other for one, other in zip(*halves)] == whole[resumed:]

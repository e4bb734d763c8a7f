"""The order of training records: a function of seed and position, of any rows, from any record on."""

import itertools
import os
import pathlib

import numpy as np
import pytest

from data_prep import framing, record_stream
from data_prep.record_stream import RecordOrder, Rows
from foundation.errors import BertError

COUNTS = (50, 0, 7, 120, 33)
TOTAL = sum(COUNTS)


def numbers(order, first, amount):
    """The next records of a stream, as numbers over all files."""
    begins = np.concatenate([[0], np.cumsum(order.counts)])
    found = itertools.chain.from_iterable(
        (begins[window.files] + window.numbers).tolist() for window in order.windows(first))
    return list(itertools.islice(found, amount))


@pytest.mark.parametrize("window", [1, 10, 64, 1000])
@pytest.mark.parametrize("of_batch", [1, 8, 32, 500])
def test_every_epoch_holds_every_record_once(window, of_batch):
    stream = numbers(RecordOrder(COUNTS, 3, window, Rows(of_batch, 0, of_batch)), 0, 4 * TOTAL)
    epochs = [stream[begin : begin + TOTAL] for begin in range(0, 4 * TOTAL, TOTAL)]
    assert all(sorted(epoch) == list(range(TOTAL)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4


@pytest.mark.parametrize("window", [1, 10, 64, 1000])
@pytest.mark.parametrize("of_batch", [1, 8])
def test_the_stream_begins_anywhere(window, of_batch):
    order = RecordOrder(COUNTS, 3, window, Rows(of_batch, 0, of_batch))
    whole = numbers(order, 0, 3 * TOTAL)
    for first in (1, 7, 63, 64, 65, TOTAL - 1, TOTAL, TOTAL + 100, 2 * TOTAL + 9):
        assert numbers(order, first, 3 * TOTAL - first) == whole[first:]


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("window", [10, 64, 1000])
def test_workers_together_read_the_batches_of_one(workers, window):
    batch, batches = 8, 70
    whole = np.reshape(numbers(RecordOrder(COUNTS, 3, window, Rows(batch, 0, batch)), 0, batch * batches), (-1, batch))
    own = batch // workers
    parts = [np.reshape(numbers(RecordOrder(COUNTS, 3, window, Rows(batch, worker * own, own)), 3 * batch,
                                own * (batches - 3)), (-1, own)) for worker in range(workers)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole[3:])


def test_a_worker_reads_few_runs_of_neighbours():
    """Of each window, about one for each lane: its rows' records are next to each other."""
    for window in itertools.islice(RecordOrder((100_000,), 3, 1000, Rows(32, 8, 8)).windows(0), 20):
        assert len(window.numbers) <= 256
        in_order = np.lexsort((window.numbers, window.files))
        assert len(record_stream._runs(window.files[in_order], window.numbers[in_order])) <= record_stream.LANES + 2


def test_a_window_mixes_distant_records_and_neighbours_go_apart():
    stream = np.array(numbers(RecordOrder((10_000,), 3, 1000), 0, 10_000))
    within = np.sort(stream[:1000])
    assert (np.diff(within) > 2000).sum() >= record_stream.LANES - 1
    place = np.argsort(stream)
    apart = np.abs(np.diff(place))
    # Two places that are uniform over a window are a third of it apart on average.
    assert 300 < np.mean(apart) < 400
    assert np.mean(apart < 10) < 0.05


def test_order_follows_the_seed():
    orders = [tuple(numbers(RecordOrder(COUNTS, seed, 64), 0, TOTAL)) for seed in (1, 1, 2, -1)]
    assert orders[0] == orders[1] and len(set(orders)) == 3


@pytest.fixture
def files(tmp_path):
    """Files of records that hold their own numbers, of different sizes."""
    rng = np.random.default_rng(0)
    paths, number = [], 0
    for index, count in enumerate(COUNTS):
        found = [b"%06d" % (number + each) + b"x" * int(rng.integers(0, 50)) for each in range(count)]
        sizes = np.array([len(each) for each in found], np.int64)
        (tmp_path / str(index)).write_bytes(framing.frame(np.frombuffer(b"".join(found), np.uint8), sizes))
        paths.append(str(tmp_path / str(index)))
        number += count
    return paths


def taken(paths, order, first, amount):
    stream = itertools.chain.from_iterable(record_stream.read(paths, order, first))
    return [int(each[:6]) for each in itertools.islice(stream, amount)]


@pytest.mark.parametrize("rows", [Rows(), Rows(8, 0, 8), Rows(8, 4, 4)])
def test_records_are_read_in_their_order(files, rows):
    order = record_stream.open_order(files, 3, 64, rows)
    assert order.counts == COUNTS
    for first in (0, 8 * 20):
        assert taken(files, order, first, 300) == numbers(order, first, 300)


def test_an_index_is_written_as_text(files):
    for path, count in zip(files, COUNTS):
        index = framing.index(path)
        size = os.path.getsize(path)
        assert index.count == count and index.starts[-1] == size
        again = framing.Index.from_text(index.to_text(), count, size)
        np.testing.assert_array_equal(again.starts, index.starts)
        for text, number, end in (("?", count, size), (index.to_text(), count + 64, size),
                                  (index.to_text(), count, size + 1), (index.to_text()[:8], count, size)):
            assert framing.Index.from_text(text, number, end) is None


@pytest.mark.parametrize("damage", ["content", "length", "checksum", "cut off"])
def test_damage_that_comes_after_the_start_is_found_where_it_is_read(files, damage):
    path = pathlib.Path(files[3])
    index, data = framing.index(str(path)), bytearray(path.read_bytes())
    if damage == "cut off":
        del data[len(data) // 2 :]
    else:
        data[{"content": 14, "length": 0, "checksum": -1}[damage]] ^= 1
    path.write_bytes(data)
    with pytest.raises(BertError, match=rf"{path}, near record \d+: (corrupted|the file ends inside)"):
        for first in range(COUNTS[3]):
            framing.read(str(path), index, first, 1)


def test_files_without_records_are_named(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(BertError, match=r"/a: holds no records"):
        record_stream.open_order([str(tmp_path / "a")], 1, 64)

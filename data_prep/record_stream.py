"""The endless stream of training records: epoch after epoch in an order that is computed, from any record on.

The order is a function of the numbers of records in the files, the seed and the position, so a run can start anywhere
at the cost of one window. An epoch lays the files end to end in an order of its own, begins at a record of its own and
cuts the whole into LANES of equal length. A window is the next few records of each lane, shuffled; so it mixes records
from distant places, of different files where there are several. `create_pretraining_data` has shuffled them over the
whole corpus before.

Batches of several rows that are read by several workers get windows that are shuffled by row: each row of a batch has
its own part of a window, and a worker reads the parts of its rows alone.
"""

import collections
import concurrent.futures
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from data_prep import framing, records
from data_prep.permutation import Permutation
from foundation.errors import BertError

LANES = 4
# First numbers of the keys of pseudo-random numbers, behind the seed.
_FILES, _START, _WINDOW = range(3)
_READING_AHEAD = 1  # windows
_YIELDED_TOGETHER = 1 << 10
_READERS = 4  # threads


@dataclasses.dataclass(frozen=True)
class Rows:
    """The rows of a batch that a worker reads.

    Attributes:
        of_batch: rows of a batch, over all workers.
        first: the first row.
        count: how many.
    """

    of_batch: int = 1
    first: int = 0
    count: int = 1


@dataclasses.dataclass(frozen=True)
class Window:
    """Records that come next in a stream.

    Attributes:
        files: int64 [n], the number of each record's file.
        numbers: int64 [n], the number of each record in its file.
    """

    files: np.ndarray
    numbers: np.ndarray


@dataclasses.dataclass(frozen=True)
class RecordOrder:
    """The order of the stream.

    Attributes:
        counts: records of each file; at least one file has some.
        seed: any whole number.
        window: records shuffled at a time.
        rows: what is read. The order is the same for all rows of the same `of_batch`.
    """

    counts: tuple[int, ...]
    seed: int
    window: int
    rows: Rows = Rows()

    def windows(self, first_record: int) -> Iterator[Window]:
        """Yields, from a position in the whole stream on, the records of these rows; windows may be empty."""
        epoch, position = divmod(first_record, self.size)
        number = position // self._full
        while True:
            start = epoch * self.size + number * self._full
            places, positions = self._window(epoch, number)
            yield self._located(epoch, places[start + positions >= first_record])
            number += 1
            if number * self._full >= self.size:
                epoch, number = epoch + 1, 0

    @functools.cached_property
    def size(self) -> int:
        """Records of an epoch."""
        return sum(self.counts)

    @property
    def _full(self) -> int:
        """Records of a full window."""
        return LANES * max(1, self.window // LANES)

    def _window(self, epoch: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The records of these rows in a window, as places in the epoch, and their positions in the window."""
        each = self._full // LANES
        ends = [self.size * lane // LANES for lane in range(LANES + 1)]
        places = np.concatenate([np.arange(min(begin + number * each, end), min(begin + (number + 1) * each, end))
                                 for begin, end in itertools.pairwise(ends)])
        # Each row of the batches in the window has as many of the places as it has positions, one after another.
        rows = (epoch * self.size + number * self._full + np.arange(len(places))) % self.rows.of_batch
        by_row = np.argsort(rows, kind="stable")
        shuffled = np.lexsort((self._permutation(len(places), _WINDOW, epoch, number)(np.arange(len(places))),
                               rows[by_row]))
        own = (rows[by_row] >= self.rows.first) & (rows[by_row] < self.rows.first + self.rows.count)
        positions, places = by_row[own], places[shuffled[own]]
        in_order = np.argsort(positions)
        return places[in_order], positions[in_order]

    def _located(self, epoch: int, places: np.ndarray) -> Window:
        order = self._permutation(len(self.counts), _FILES, epoch)(np.arange(len(self.counts)))
        begin = int(self._permutation(self.size, _START, epoch)(np.zeros(1, np.int64))[0])
        ends = np.cumsum(np.array(self.counts, np.int64)[order])
        places = (places + begin) % self.size
        which = np.searchsorted(ends, places, side="right")
        return Window(order[which], places - (ends - np.array(self.counts, np.int64)[order])[which])

    def _permutation(self, size: int, *key: int) -> Permutation:
        return Permutation(size, [self.seed % (1 << 64), *key])


def open_order(paths: Sequence[str], seed: int, window: int, rows: Rows = Rows()) -> RecordOrder:
    """The order of the records of files.

    Args:
        paths: TFRecord files.
        seed, window, rows: as in RecordOrder.

    Raises:
        BertError: no file holds a record, or one is damaged.
    """
    counts = tuple(index.count for index in records.indexes(paths))
    if not sum(counts):
        raise BertError(f"{paths[0]}: holds no records.")
    return RecordOrder(counts, seed, window, rows)


def read(paths: Sequence[str], order: RecordOrder, first_record: int) -> Iterator[list[bytes]]:
    """Yields the serialised records of a stream, some at a time, while the next window is read.

    Args:
        paths: TFRecord files.
        order: of their records.
        first_record: position in the whole stream to begin at.

    Raises:
        BertError: a file cannot be read, has been changed, or is damaged where it is read.
    """
    indexes = records.indexes(paths)
    with concurrent.futures.ThreadPoolExecutor(_READERS) as pool:
        ahead: collections.deque[tuple[np.ndarray, list[concurrent.futures.Future[list[bytes]]]]] = collections.deque()
        for window in order.windows(first_record):
            sorted_order = np.lexsort((window.numbers, window.files))
            ahead.append((sorted_order, [
                pool.submit(framing.read, paths[file], indexes[file], first, count)
                for file, first, count in _runs(window.files[sorted_order], window.numbers[sorted_order])]))
            if len(ahead) > _READING_AHEAD:
                found = _in_order(*ahead.popleft())
                yield from (found[begin : begin + _YIELDED_TOGETHER]
                            for begin in range(0, len(found), _YIELDED_TOGETHER))


def _runs(of_files: np.ndarray, numbers: np.ndarray) -> list[tuple[int, int, int]]:
    """Records in the order of the files as runs: file, first record, number of records."""
    if not len(numbers):
        return []
    begins = np.flatnonzero((np.diff(of_files, prepend=-1) != 0) | (np.diff(numbers, prepend=-2) != 1))
    lengths = np.diff(begins, append=len(numbers))
    return list(zip(of_files[begins].tolist(), numbers[begins].tolist(), lengths.tolist()))


def _in_order(sorted_order: np.ndarray, runs: list[concurrent.futures.Future[list[bytes]]]) -> list[bytes]:
    found = [record for run in runs for record in run.result()]
    ordered = [b""] * len(found)
    for place, record in zip(sorted_order.tolist(), found):
        ordered[place] = record
    return ordered

"""Sequences packed several to a row, so that batches of one static shape hold hardly any padding.

The lengths of all examples are known before training, so the rows of an epoch are planned at once: each example goes
into the fullest row that has space for it, the longest examples first (best fit decreasing). A plan depends on lengths
and seed alone, so a resumed run continues at the same batch. `modeling.packed_rows` tells what a model makes of them.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from inputs import batching
from inputs.features import PADDING, Features

# A batch's rows are a multiple of about this share of them, and so divide among other numbers of devices too.
_ROUNDING = 1 / 16
# About how full rows are, to choose their number before they are packed.
_FILLED = 0.985
# Lengths of rows are multiples of it, for the hardware.
_MULTIPLE = 8


@dataclasses.dataclass(frozen=True)
class PackedPlan:
    """The examples of each row of each batch.

    Attributes:
        examples: int32 [batches, rows, slots], example numbers, -1 in slots that hold none.
        length: positions of a row.
        filled: share of the positions that hold tokens.
    """

    examples: np.ndarray
    length: int
    filled: float

    @property
    def examples_per_batch(self) -> float:
        """Mean number of examples in a batch."""
        return float(np.count_nonzero(self.examples >= 0) / len(self.examples))


def training_plan(features: Features, batch_size: int, epochs: float, seed: int, max_seq_length: int,
                  divisor: int = 1) -> PackedPlan:
    """Plans the batches of a training run.

    Args:
        features: the examples.
        batch_size: examples of a batch, over all devices, on average.
        epochs: passes over the examples. Each holds every example once, in rows of its own and in another order.
        seed: of the shuffled orders.
        max_seq_length: maximum length of a sequence.
        divisor: the rows of a batch are a multiple of it.

    Returns:
        At least one batch; examples of the last rows that do not fill one are left out.
    """
    sizes = tokens_of(features)
    rows, length = batch_shape(sizes, batch_size, max_seq_length, divisor)
    packed, number = [_shuffled_rows(sizes, length, seed, 0)], 1
    while number < epochs or sum(map(len, packed)) < rows:
        packed.append(_shuffled_rows(sizes, length, seed, number))
        number += 1
    wanted = sum(map(len, packed[: math.floor(epochs)])) if epochs >= 1 else 0
    if epochs % 1:
        wanted += int(len(packed[math.floor(epochs)]) * (epochs % 1))
    batches = max(1, wanted // rows)
    slots = max(each.shape[1] for each in packed)
    stream = np.concatenate([_widened(each, slots) for each in packed])[: batches * rows]
    return _plan(stream.reshape(batches, rows, slots), sizes, length)


def prediction_plan(features: Features, batch_size: int, max_seq_length: int, divisor: int = 1) -> PackedPlan:
    """Plans one pass over all examples; rows without examples complete the last batch.

    Args:
        features, batch_size, max_seq_length, divisor: as in `training_plan`.
    """
    sizes = tokens_of(features)
    rows, length = batch_shape(sizes, batch_size, max_seq_length, divisor)
    packed = best_fit(sizes, length, _most_in_row(sizes, length))
    rows = min(rows, -(-len(packed) // divisor) * divisor)
    batches = -(-len(packed) // rows)
    stream = np.full((batches * rows, packed.shape[1]), -1, np.int32)
    stream[: len(packed)] = packed
    return _plan(stream.reshape(batches, rows, -1), sizes, length)


class Place(NamedTuple):
    """Where the outputs of an example are.

    Attributes:
        example: its number.
        row, start, end: its tokens in outputs [rows, length, ...].
        slot: its place in outputs [rows * slots, ...].
    """

    example: int
    row: int
    start: int
    end: int
    slot: int


def places(examples: np.ndarray, tokens: np.ndarray) -> list[Place]:
    """The places of a batch's examples.

    Args:
        examples: int [rows, slots], -1 in slots that hold none.
        tokens: of every example (`tokens_of`).
    """
    sizes = np.where(examples >= 0, tokens[examples], 0)
    ends = np.cumsum(sizes, axis=1)
    rows, slots = np.nonzero(examples >= 0)
    columns = (examples[rows, slots], rows, (ends - sizes)[rows, slots], ends[rows, slots],
               rows * examples.shape[1] + slots)
    return [Place(*each) for each in zip(*(column.tolist() for column in columns))]


def tokens_of(features: Features) -> np.ndarray:
    """The tokens of each example, of all its choices: int64 [rows]."""
    return np.diff(features.row_splits).reshape(-1, features.sequences_per_row).sum(axis=1)


def batch_shape(sizes: np.ndarray, batch_size: int, max_seq_length: int, divisor: int = 1) -> tuple[int, int]:
    """Rows and positions of a batch that holds a number of examples on average.

    Rows have at most `max_seq_length` positions, or those of the longest example where its choices together are longer.
    They are shorter where the devices' parts of a batch are less than a row each.

    Args:
        sizes: int [examples], the tokens of each.
        batch_size: the examples wanted.
        max_seq_length: maximum length of a sequence.
        divisor: the rows are a multiple of it: replicas times micro-batches.
    """
    longest = int(sizes.max(initial=1))
    most = max(max_seq_length, longest)
    share = batch_size * float(sizes.mean()) / (_FILLED * divisor)
    length = min(most, max(_rounded_up(longest), _rounded_up(share / math.ceil(share / most))))
    return max(1, round(share / length)) * divisor, length


def best_fit(sizes: np.ndarray, length: int, slots: int) -> np.ndarray:
    """Packs items, the largest first, each into the fullest row that still has space for it.

    Items of one size are placed together: equal items go on filling the fullest row until it has no space for another.

    Args:
        sizes: int [items], at most `length` each.
        length: space of a row.
        slots: most items in a row.

    Returns:
        int32 [rows, at most slots], item numbers, -1 where a row has fewer.
    """
    space, count = np.empty(0, np.int64), np.empty(0, np.int64)  # of each row
    order = np.argsort(-sizes, kind="stable")
    placed = np.empty(len(sizes), np.int64)  # the row of each item in this order
    distinct, begins = np.unique(-sizes[order], return_index=True)
    smallest = max(1, int(sizes.min(initial=1)))
    open_rows = np.empty(0, np.int64)
    for size, begin, end in zip(-distinct, begins, [*begins[1:], len(sizes)]):
        needed, each = end - begin, max(1, int(size))
        fitting = open_rows[space[open_rows] >= size]
        fitting = fitting[np.argsort(space[fitting], kind="stable")]
        rooms = np.minimum(space[fitting] // each, slots - count[fitting])
        new = max(0, -(-(needed - int(rooms.sum())) // min(length // each, slots)))
        first_new = len(space)
        space, count = np.append(space, np.full(new, length)), np.append(count, np.zeros(new, np.int64))
        rows = np.append(fitting, np.arange(first_new, first_new + new))
        rooms = np.append(rooms, np.full(new, min(length // each, slots)))
        taken = np.repeat(rows, rooms)[:needed]
        placed[begin:end] = taken
        added = np.bincount(taken, minlength=len(space))
        space, count = space - added * size, count + added
        open_rows = np.append(open_rows, rows[len(fitting):])
        open_rows = open_rows[(space[open_rows] >= smallest) & (count[open_rows] < slots)]
    return _by_row(order, placed, count)


def rows_of_batch(batch_size: int, examples_per_row: float, divisor: int = 1) -> int:
    """The rows of a batch that hold a number of examples on average.

    Args:
        batch_size: the examples wanted.
        examples_per_row: mean of the packed rows.
        divisor: the rows are a multiple of it: replicas times micro-batches.
    """
    wanted = batch_size / examples_per_row
    step = math.lcm(divisor, 2 ** int(math.log2(max(1.0, wanted * _ROUNDING))))
    return max(1, round(wanted / step)) * step


def batches(features: Features, plan: PackedPlan, first_batch: int = 0
            ) -> Callable[[tf.distribute.InputContext], tf.data.Dataset]:
    """Makes the batches of a plan.

    Args:
        features: the examples.
        plan: their places.
        first_batch: batches to skip at the beginning.

    Returns:
        function from an input context to one worker's per-replica batches: dicts of int32 [rows, length] token columns
        and `input_mask`, `part_starts` int32 [rows, slots] (or [rows, slots, choices]), the values of the examples
        [rows, slots, ...], and `is_real_example` int32 [rows, slots], 0 in slots without an example.
    """
    assemble = _Assembly(features, plan.length)
    examples = plan.examples[first_batch:]

    def dataset(context: tf.distribute.InputContext) -> tf.data.Dataset:
        slices = tf.data.Dataset.from_tensor_slices(batching.own_rows(examples, context))
        return batching.with_options(slices.map(assemble))

    return dataset


def join(columns: Mapping[str, tf.Tensor], starts: tf.Tensor, sizes: tf.Tensor, length: int
         ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    """Puts pieces of columns end to end in rows.

    Args:
        columns: tensors [total] by name.
        starts: int64 [rows, parts], where each part's piece begins in the columns.
        sizes: int64 [rows, parts], 0 for parts that a row does not have.
        length: positions of a row.

    Returns:
        the columns [rows, length], padded; int32 [rows, length], the number of the part at each position, from 1, and 0
        at padding; int64 [rows, parts], where each part begins in its row, 0 for absent ones.
    """
    ends = tf.cumsum(sizes, axis=1)
    begins = tf.where(sizes > 0, ends - sizes, 0)
    places = tf.range(tf.cast(length, tf.int64))
    part = tf.searchsorted(ends, tf.tile(places[None], [tf.shape(ends)[0], 1]), side="right")
    real = part < tf.shape(ends)[1]
    part = tf.where(real, part, 0)
    index = tf.where(real, tf.gather(starts - begins, part, batch_dims=1) + places, 0)
    rows = {name: tf.where(real, tf.gather(column, index), tf.cast(PADDING.get(name, 0), column.dtype))
            for name, column in columns.items()}
    return rows, tf.where(real, part + 1, 0), begins


class _Assembly:
    """Makes packed rows inside tf.data, all rows of a batch at once.

    Args:
        features: Features.
        length: positions of a row.
    """

    def __init__(self, features: Features, length: int) -> None:
        self.choices, self.length = features.sequences_per_row, length
        self.tokens = {name: tf.constant(column, tf.int32) for name, column in features.tokens.items()}
        self.row_splits = tf.constant(features.row_splits, tf.int64)
        self.values = {name: tf.constant(array) for name, array in features.values.items() if array.dtype.kind in "if"}

    def __call__(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        """A batch of examples int32 [rows, slots], -1 for none."""
        real = examples >= 0
        examples = tf.maximum(examples, 0)
        shape = [*examples.shape, self.choices] if self.choices > 1 else examples.shape
        sequences = examples[..., None] * self.choices + tf.range(self.choices)
        starts = tf.gather(self.row_splits, sequences)
        sizes = tf.where(real[..., None], tf.gather(self.row_splits, sequences + 1) - starts, 0)
        parts = [examples.shape[0], -1]
        batch, mask, begins = join(self.tokens, tf.reshape(starts, parts), tf.reshape(sizes, parts), self.length)
        return {**batch, "input_mask": mask, "part_starts": tf.reshape(tf.cast(begins, tf.int32), shape),
                "is_real_example": tf.cast(real, tf.int32),
                **{name: tf.gather(array, examples) for name, array in self.values.items()}}


def _shuffled_rows(sizes: np.ndarray, length: int, seed: int, epoch: int) -> np.ndarray:
    """The rows of an epoch: which examples share one, and the order of the rows, are drawn anew in each."""
    order = np.random.default_rng([seed, 0, epoch]).permutation(len(sizes))
    rows = best_fit(sizes[order], length, _most_in_row(sizes, length))
    rows = np.random.default_rng([seed, 2, epoch]).permutation(rows)
    return np.where(rows < 0, -1, order[rows]).astype(np.int32)


def _most_in_row(sizes: np.ndarray, length: int) -> int:
    """Slots of a row: room for twice the mean number of examples, so that hardly a row of short ones stays open."""
    return max(1, min(length, math.ceil(2 * length / max(1.0, float(sizes.mean())))))


def _by_row(items: np.ndarray, rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Items as int32 [rows, most in a row], -1 where a row has fewer."""
    order = np.argsort(rows, kind="stable")
    ends = np.cumsum(counts)
    slot = np.arange(len(items)) - np.repeat(ends - counts, counts)
    table = np.full((len(counts), int(counts.max(initial=1))), -1, np.int32)
    table[rows[order], slot] = items[order]
    return table


def _rounded_up(length: float) -> int:
    return math.ceil(length / _MULTIPLE) * _MULTIPLE


def _widened(rows: np.ndarray, slots: int) -> np.ndarray:
    return np.pad(rows, ((0, 0), (0, slots - rows.shape[1])), constant_values=-1)


def _plan(examples: np.ndarray, sizes: np.ndarray, length: int) -> PackedPlan:
    filled = sizes[examples[examples >= 0]].sum() / (examples.shape[0] * examples.shape[1] * length)
    return PackedPlan(examples, length, float(filled))

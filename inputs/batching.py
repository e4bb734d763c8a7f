"""Batches of sequences of similar length, each padded to the shortest of a few fixed lengths that fits.

Training reads the release's stream, each example once per epoch in a shuffled order, split into windows of a number of
batches; inside a window each batch has sequences of similar length, and the batches are shuffled. The whole plan is an
array made before training, so a resumed run continues at the same point of the plan.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from foundation.errors import BertError
from inputs.features import PADDING, Features

# Lengths of batches; XLA compiles one program for each.
LENGTHS = (16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512)
# Batches of a window: enough to find rows of similar length, few enough to keep the order of the stream.
WINDOW_BATCHES = 100


@dataclasses.dataclass(frozen=True)
class Plan:
    """The rows of each batch.

    Attributes:
        rows: int32 [batches, batch size], row numbers, -1 for rows that only complete a batch.
        lengths: int32 [batches], the length that each batch is padded to.
    """

    rows: np.ndarray
    lengths: np.ndarray


def training_plan(row_lengths: np.ndarray, batch_size: int, num_steps: int, seed: int, max_seq_length: int,
                  static_shapes: bool = False) -> Plan:
    """Plans the batches of a training run.

    Args:
        row_lengths: int [rows], the length of each row.
        batch_size: rows of a batch, over all devices.
        num_steps: batches.
        seed: of the shuffled orders.
        max_seq_length: maximum length of a row.
        static_shapes: pad every batch to max_seq_length, in the order of the stream.

    Returns:
        `num_steps` batches.
    """
    stream = _stream(len(row_lengths), batch_size * num_steps, seed)
    if static_shapes:
        return Plan(stream.reshape(num_steps, batch_size), np.full(num_steps, max_seq_length, np.int32))
    windows = []
    for number, first in enumerate(range(0, len(stream), batch_size * WINDOW_BATCHES)):
        window = stream[first : first + batch_size * WINDOW_BATCHES]
        by_length = window[np.argsort(row_lengths[window], kind="stable")].reshape(-1, batch_size)
        windows.append(np.random.default_rng([seed, 1, number]).permutation(by_length))
    rows = np.concatenate(windows)
    return Plan(rows, _rounded_up(row_lengths[rows].max(axis=1), max_seq_length))


def prediction_plan(row_lengths: np.ndarray, batch_size: int, max_seq_length: int,
                    static_shapes: bool = False) -> Plan:
    """Plans one pass over all rows, the shortest first; the last batch may need to be completed.

    Args:
        row_lengths, batch_size, max_seq_length: as in `training_plan`.
        static_shapes: pad every batch to max_seq_length, in the order of the rows.
    """
    order = np.arange(len(row_lengths)) if static_shapes else np.argsort(row_lengths, kind="stable")
    batches = -(-len(order) // batch_size)
    padded = np.full(batches * batch_size, -1, np.int32)
    padded[: len(order)] = order
    rows = padded.reshape(batches, batch_size)
    if static_shapes:
        return Plan(rows, np.full(batches, max_seq_length, np.int32))
    longest = np.where(rows < 0, 0, row_lengths[np.maximum(rows, 0)]).max(axis=1)
    return Plan(rows, _rounded_up(longest, max_seq_length))


def batches(features: Features, plan: Plan, first_batch: int = 0,
            lengths_vary: bool | None = None) -> Callable[[tf.distribute.InputContext], tf.data.Dataset]:
    """Makes the batches of a plan.

    Args:
        features: the rows.
        plan: which of them form a batch.
        first_batch: batches to skip at the beginning.
        lengths_vary: leave the length of batches open in their type. None: only if the plan's lengths differ.

    Returns:
        function from an input context to one worker's per-replica batches: dicts of int32 [rows, length] (or [rows,
        choices, length]) token columns and `input_mask`, the values of the rows, and `is_real_example` int32 [rows], 0
        where a row only completes its batch.
    """
    rows, lengths = plan.rows[first_batch:], plan.lengths[first_batch:]
    assemble = _Assembly(features)
    if lengths_vary is None:
        lengths_vary = len(set(plan.lengths.tolist())) > 1
    fixed = None if lengths_vary else int(plan.lengths[0])

    def dataset(context: tf.distribute.InputContext) -> tf.data.Dataset:
        own = own_rows(rows, context)
        local = context.num_replicas_in_sync // context.num_input_pipelines
        slices = tf.data.Dataset.from_tensor_slices((own, np.repeat(lengths, local)))
        return with_options(slices.map(lambda rows, length: assemble(rows, length, fixed)))

    return dataset


def own_rows(rows: np.ndarray, context: tf.distribute.InputContext) -> np.ndarray:
    """One worker's part of a plan: every worker has the whole plan and assembles only the rows of its replicas.

    Args:
        rows: [batches, batch size, ...].
        context: of the worker.

    Returns:
        [batches * the worker's replicas, rows of a replica, ...]. Raises BertError where a batch does not divide.
    """
    replicas, (batches, size, *rest) = context.num_replicas_in_sync, rows.shape
    if size % replicas:
        raise BertError(f"A batch of {size} rows cannot be divided among {replicas} replicas.")
    local = replicas // context.num_input_pipelines
    shares = rows.reshape(batches, replicas, size // replicas, *rest)
    return shares[:, context.input_pipeline_id * local :][:, :local].reshape(batches * local, size // replicas, *rest)


def with_options(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Batches in order, a few of them made ahead."""
    options = tf.data.Options()
    options.deterministic = True
    options.autotune.enabled = False
    return batches.prefetch(4).with_options(options)


class _Assembly:
    """Gathers and pads rows inside tf.data, all rows of a batch at once.

    Args:
        features: Features.
    """

    def __init__(self, features: Features) -> None:
        self.choices = features.sequences_per_row
        # Padding reads the position after the end, so there must be one.
        self.tokens = {name: tf.constant(np.append(column, 0), tf.int32) for name, column in features.tokens.items()}
        self.row_splits = tf.constant(features.row_splits, tf.int64)
        self.values = {name: tf.constant(array) for name, array in features.values.items() if array.dtype.kind in "if"}
        self.end = int(features.row_splits[-1])

    def __call__(self, rows: tf.Tensor, length: tf.Tensor, fixed: int | None) -> dict[str, tf.Tensor]:
        """A batch of rows int32 [rows], -1 for none; length int32 scalar, `fixed` if it is always the same."""
        real = rows >= 0
        rows = tf.maximum(rows, 0)
        sequences = tf.reshape(rows[:, None] * self.choices + tf.range(self.choices), [-1])
        starts = tf.gather(self.row_splits, sequences)
        sizes = tf.gather(self.row_splits, sequences + 1) - starts
        sizes = tf.where(tf.repeat(real, self.choices), sizes, 0)
        places = tf.range(tf.cast(length if fixed is None else fixed, tf.int64))
        mask = places < sizes[:, None]
        index = tf.where(mask, starts[:, None] + places, self.end)
        shape = [rows.shape[0], -1] if self.choices == 1 else [rows.shape[0], self.choices, -1]
        if fixed is not None:
            shape[-1] = fixed
        batch = {name: tf.reshape(tf.where(mask, tf.gather(column, index), PADDING.get(name, 0)), shape)
                 for name, column in self.tokens.items()}
        batch["input_mask"] = tf.reshape(tf.cast(mask, tf.int32), shape)
        batch["is_real_example"] = tf.cast(real, tf.int32)
        return batch | {name: tf.gather(array, rows) for name, array in self.values.items()}


def _stream(num_rows: int, size: int, seed: int) -> np.ndarray:
    """Row numbers int32 [size]: shuffled epochs one after another."""
    epochs = -(-size // num_rows)
    orders = [np.random.default_rng([seed, 0, epoch]).permutation(num_rows) for epoch in range(epochs)]
    return np.concatenate(orders)[:size].astype(np.int32)


def _rounded_up(lengths: np.ndarray, max_seq_length: int) -> np.ndarray:
    """The shortest of the fixed lengths that fits each length."""
    allowed = np.array([*(each for each in LENGTHS if each < max_seq_length), max_seq_length], np.int32)
    return allowed[np.searchsorted(allowed, lengths)]

"""Pre-training records packed several to a row inside the input pipeline, for devices that want static shapes.

The stream of records (`training.input_pipeline`) is cut into windows of WINDOW records. The rows of a window are a
function of its records, its number and the seed, the same on every machine; the rows of all windows, one after another,
are cut into batches of a fixed number of rows. Each record is in one row, so the number of records in the batches so
far gives a run's place in the stream. A checkpoint holds it (`training.record_counter`), and a resumed run continues
with the next row.
"""

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from data_prep.records import PretrainingSchema
from inputs.packing import join, rows_of_batch
from training import input_pipeline
from training.devices import Placement
from training.input_pipeline import Dataset, RecordSource

# Records packed together: enough to find rows that fill up, few enough to pack while training.
WINDOW = 1024
# Windows that `measure` packs.
_SAMPLED = 4
# Positions for each part that a row may have: shorter sequences than these on average would leave padding.
_POSITIONS_PER_PART = 8


@dataclasses.dataclass(frozen=True)
class Packing:
    """How records are packed.

    Attributes:
        rows: of a batch, over all devices.
        records: that a batch holds on average.
        filled: share of the positions that hold tokens.
    """

    rows: int
    records: float
    filled: float

    def describe(self, length: int) -> str:
        """One line for the console."""
        return (f"Packed: an update has {self.rows:,} rows of {length} that hold {self.records:,.1f} records on "
                f"average; {self.filled:.1%} of their positions are tokens.")


def is_on(setting: str, placement: Placement) -> bool:
    """Whether --pack packs: auto where XLA wants static shapes and padding would be computed."""
    return {"true": True, "false": False}.get(setting, placement.xla or placement.platform == "tpu")


@tf.autograph.experimental.do_not_convert  # which would write a temporary file, see `Placement.distribute`
def measure(source: RecordSource, batch_size: int, seed: int, shuffle_buffer: int, divisor: int) -> Packing:
    """Packs the first windows of a run's stream to find how many rows hold a batch.

    Args:
        source, seed, shuffle_buffer: as in `training_batches`.
        batch_size: records of an update, over all devices, on average.
        divisor: the rows are a multiple of it: replicas times micro-batches.
    """
    windows = input_pipeline.record_windows(source, seed, WINDOW, shuffle_buffer=shuffle_buffer)().take(_SAMPLED)
    windows = windows.map(lambda window: _pack(source.schema.parse(window), source.schema))
    rows = tokens = 0
    try:
        for window in windows:
            rows, tokens = rows + len(window["input_mask"]), tokens + int(tf.math.count_nonzero(window["input_mask"]))
    except input_pipeline.ERRORS as error:
        raise input_pipeline.describe_read_error(error, source) from None
    wanted = rows_of_batch(batch_size, _SAMPLED * WINDOW / rows, divisor)
    return Packing(wanted, wanted * _SAMPLED * WINDOW / rows, tokens / rows / source.schema.max_seq_length)


def training_batches(source: RecordSource, rows: int, seed: int, *, first_record: int = 0,
                     shuffle_buffer: int = 1000) -> Dataset:
    """Makes the endless stream of packed training batches.

    Args:
        source, seed, shuffle_buffer: as in `input_pipeline.training_batches`.
        rows: of an update, over all replicas.
        first_record: records of the batches already trained on (`training.record_counter`).

    Returns:
        function from tf.distribute.InputContext to a tf.data.Dataset of this worker's per-replica batches: what
        `PretrainingModel` takes, with `next_sentence_labels` [rows, parts].
    """
    first_window, in_first = divmod(first_record, WINDOW)
    windows = input_pipeline.record_windows(source, seed, WINDOW, first_window=first_window,
                                            shuffle_buffer=shuffle_buffer)

    def packed(number, window):
        order = tf.random.experimental.stateless_fold_in(tf.constant([seed, 1], tf.int64), number)
        done = tf.where(number == first_window, in_first, 0)
        return _pack(source.schema.parse(window), source.schema, order, tf.cast(done, tf.int32))

    def dataset(context):
        numbered = tf.data.Dataset.zip(tf.data.Dataset.range(first_window, tf.int64.max), windows())
        return _own_rows(numbered.map(packed).rebatch(rows, drop_remainder=True), rows, context)

    return dataset


def evaluation_batches(source: RecordSource, rows: int, max_records: int | None = None) -> Dataset:
    """Makes one pass over the records, packed; rows without records complete the last batch.

    Args:
        source: RecordSource.
        rows: of a batch, over all replicas.
        max_records: the first so many; None for all.

    Returns:
        as `training_batches` does.
    """

    def complete(batch):
        def pad(value):
            missing = rows - tf.shape(value)[0]
            return tf.ensure_shape(tf.pad(value, [[0, missing], [0, 0]]), [rows, *value.shape[1:]])

        return {name: pad(value) for name, value in batch.items()}

    def dataset(context):
        windows = input_pipeline.read(list(source.files)).take(max_records or -1).batch(WINDOW)
        packed = windows.map(lambda window: _pack(source.schema.parse(window), source.schema))
        return _own_rows(packed.rebatch(rows).map(complete), rows, context)

    return dataset


def best_fit(needs: tf.Tensor, capacity: list[int]) -> tf.Tensor:
    """Packs items in their order, each into the fitting row with the least space.

    Args:
        needs: int32 [items, kinds], what each item takes of each kind of space.
        capacity: of a row. Rows are compared by their space of the first kind.

    Returns:
        int32 [items], the row of each, from 0 on.
    """
    items = tf.shape(needs)[0]

    def place(number, space, rows):
        need = needs[number][:, None]
        fits = tf.reduce_all(space >= need, axis=0)
        row = tf.argmin(tf.where(fits, space[0], capacity[0] + 1), output_type=tf.int32)
        return number + 1, space - need * tf.one_hot(row, items, dtype=tf.int32), rows.write(number, row)

    space = tf.tile(tf.constant(capacity)[:, None], [1, items])
    rows = tf.TensorArray(tf.int32, size=items)
    return tf.while_loop(lambda number, *_: number < items, place, (0, space, rows))[2].stack()


def parts_of_row(schema: PretrainingSchema) -> int:
    """The most records that a row may hold."""
    return max(4, schema.max_seq_length // _POSITIONS_PER_PART)


def _pack(window: Mapping[str, tf.Tensor], schema: PretrainingSchema, order: tf.Tensor | None = None,
          done: tf.Tensor | int = 0) -> dict[str, tf.Tensor]:
    """Packs the parsed records of a window.

    Args:
        window: what the schema parses.
        schema: PretrainingSchema.
        order: the seed of the order of rows; None leaves them as they were packed, the longest first.
        done: leave out the first rows, which hold so many records.

    Returns:
        dict of int32 `input_ids`, `segment_ids` and `input_mask` [rows, seq]; `masked_lm_positions`, `masked_lm_ids`
        and float32 `masked_lm_weights` [rows, predictions], as many as a record has; `part_starts` and
        `next_sentence_labels` [rows, parts].
    """
    tokens, predictions = _sizes(window)
    members = _members(tokens, predictions, schema)
    if order is not None:
        members = tf.random.experimental.stateless_shuffle(members, order)
    before = tf.cumsum(tf.reduce_sum(tf.cast(members >= 0, tf.int32), axis=1), exclusive=True)
    members = tf.boolean_mask(members, before >= done)
    return _assemble(window, members, tokens, predictions, schema)


def _sizes(window: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    """The tokens of each record, at least one and all that are predicted, and its predictions: int32 [records]."""
    counts = window["masked_lm_weights"] > 0
    predicted = tf.reduce_max(tf.where(counts, window["masked_lm_positions"], 0), axis=1)
    return tf.maximum(_used(window["input_mask"] > 0), predicted + 1), _used(counts)


def _used(used: tf.Tensor) -> tf.Tensor:
    """The positions up to the last that is used: bool [records, n] to int32 [records]."""
    return tf.reduce_max(tf.cast(used, tf.int32) * tf.range(1, used.shape[1] + 1), axis=1)


def _members(tokens: tf.Tensor, predictions: tf.Tensor, schema: PretrainingSchema) -> tf.Tensor:
    """The records of each row, best fit decreasing: int32 [rows, parts], -1 where a row has fewer."""
    parts = parts_of_row(schema)
    longest_first = tf.argsort(tokens, direction="DESCENDING", stable=True)
    needs = tf.gather(tf.stack([tokens, predictions, tf.ones_like(tokens)], axis=1), longest_first)
    # Most records leave no space for another, and have a row each.
    alone = tf.math.count_nonzero(tokens + tf.reduce_min(tokens) > schema.max_seq_length, dtype=tf.int32)
    others = best_fit(needs[alone:], [schema.max_seq_length, schema.max_predictions_per_seq, parts])
    rows = tf.concat([tf.range(alone), alone + others], axis=0)
    by_row = tf.argsort(rows, stable=True)
    rows = tf.gather(rows, by_row)
    ragged = tf.RaggedTensor.from_value_rowids(tf.gather(longest_first, by_row), rows)
    return ragged.to_tensor(-1, shape=[None, parts])


def _assemble(window: Mapping[str, tf.Tensor], members: tf.Tensor, tokens: tf.Tensor, predictions: tf.Tensor,
              schema: PretrainingSchema) -> dict[str, tf.Tensor]:
    present = members >= 0
    members = tf.maximum(members, 0)

    def joined(names: tuple[str, ...], sizes: tf.Tensor, length: int) -> tuple:
        columns = {name: tf.reshape(window[name], [-1]) for name in names}
        taken = tf.where(present, tf.gather(sizes, members), 0)
        return join(columns, tf.cast(members, tf.int64) * length, tf.cast(taken, tf.int64), length)

    rows, mask, starts = joined(("input_ids", "segment_ids"), tokens, schema.max_seq_length)
    starts = tf.cast(starts, tf.int32)
    masked, part, _ = joined(("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"), predictions,
                             schema.max_predictions_per_seq)
    shift = tf.where(part > 0, tf.gather(starts, tf.maximum(part - 1, 0), batch_dims=1), 0)
    labels = tf.gather(window["next_sentence_labels"][:, 0], members)
    return {**rows, **masked, "input_mask": mask, "masked_lm_positions": masked["masked_lm_positions"] + shift,
            "part_starts": starts, "next_sentence_labels": tf.where(present, labels, 0)}


def _own_rows(batches: tf.data.Dataset, rows: int, context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Cuts each global batch into this worker's per-replica batches."""
    replicas = context.num_replicas_in_sync // context.num_input_pipelines
    each = rows // context.num_replicas_in_sync
    first = context.input_pipeline_id * replicas * each

    def cut(value):
        own = value[first : first + replicas * each]
        return tf.ensure_shape(tf.reshape(own, [replicas, each, *value.shape[1:]]),
                               [replicas, each, *value.shape[1:]])

    batches = batches.map(lambda batch: {name: cut(value) for name, value in batch.items()}).unbatch()
    return input_pipeline.with_options(batches)

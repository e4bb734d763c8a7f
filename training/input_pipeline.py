"""TFRecords in, batches out: in an order that depends on files and seed alone, and that can start at any batch.

Every worker reads the same stream of global batches and parses only its own rows, so that one device, eight devices and
two machines train on the same batches; a resumed run continues with the batch after its checkpoint.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from data_prep import records
from foundation.errors import BertError

Dataset = Callable[[tf.distribute.InputContext], tf.data.Dataset]

# What a failure of the pipeline shows as: TensorFlow's message may quote bytes of a record, and then Python cannot
# decode the message.
ERRORS = (tf.errors.OpError, UnicodeDecodeError)

_READ_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class RecordSource:
    """Files of records and what they must be like.

    Attributes:
        files: TFRecord files.
        schema: parses and checks them.
    """

    files: tuple[str, ...]
    schema: records.PretrainingSchema

    def filler(self) -> bytes:
        """A serialised record that stands for "no example" and completes the last batch of an evaluation."""
        blank = {name: np.zeros((1, length), np.int64) for name, length in self.schema.lengths().items()}
        return records.encode_pretraining(blank)[0]


def training_batches(source: RecordSource, global_batch_size: int, seed: int, *, first_batch: int = 0,
                     shuffle_buffer: int = 1000) -> Dataset:
    """Makes the endless stream of training batches.

    Epochs follow one another without a short batch between them. Each has its own order of files and, within a window
    of `shuffle_buffer` records, of records; `create_pretraining_data` has shuffled them over the whole corpus before.

    Args:
        source: RecordSource.
        global_batch_size: records of one update, over all replicas.
        seed: of the order.
        first_batch: batches already trained on, which are skipped unparsed.
        shuffle_buffer: records.

    Returns:
        function from tf.distribute.InputContext to a tf.data.Dataset of this worker's per-replica batches, for
        `Placement.distribute`.
    """
    stream = record_stream(source, seed, first_record=first_batch * global_batch_size, shuffle_buffer=shuffle_buffer)

    def dataset(context):
        return _own_rows(stream().batch(global_batch_size, drop_remainder=True), global_batch_size, source, context)

    return dataset


def record_stream(source: RecordSource, seed: int, *, first_record: int = 0, shuffle_buffer: int = 1000
                  ) -> Callable[[], tf.data.Dataset]:
    """Makes the endless stream of serialised records, epoch after epoch, in the order that `training_batches` tells of.

    Args:
        source, seed, shuffle_buffer: as there.
        first_record: records already read, which are skipped.

    Returns:
        function to a tf.data.Dataset of strings.
    """
    epoch, skipped = 0, first_record
    if skipped:
        epoch, skipped = divmod(skipped, records.count(source.files))

    def epoch_records(number):
        seeds = tf.random.experimental.stateless_fold_in(tf.constant([seed, 0], tf.int64), number)
        paths = tf.random.experimental.stateless_shuffle(tf.constant(source.files), seeds)
        stream = tf.data.Dataset.from_tensor_slices(paths).interleave(
            read, cycle_length=min(4, len(source.files)), block_length=16
        )
        return stream.shuffle(max(1, shuffle_buffer), seed=seeds[0], reshuffle_each_iteration=False)

    return lambda: tf.data.Dataset.range(epoch, tf.int64.max).flat_map(epoch_records).skip(skipped)


def evaluation_batches(source: RecordSource, global_batch_size: int, max_batches: int | None = None) -> Dataset:
    """Makes one ordered pass over the records; the last batch is completed with filler rows, whose mask is zero.

    Args:
        source: RecordSource.
        global_batch_size: records of a batch, over all replicas.
        max_batches: None for all.

    Returns:
        function from tf.distribute.InputContext to a tf.data.Dataset, as `training_batches` does.
    """

    def complete(batch):
        missing = global_batch_size - tf.size(batch)
        batch = tf.concat([batch, tf.repeat(tf.constant([source.filler()]), missing)], axis=0)
        return tf.ensure_shape(batch, [global_batch_size])

    def dataset(context):
        batches = read(list(source.files)).batch(global_batch_size)
        batches = batches.take(max_batches if max_batches else -1).map(complete)
        return _own_rows(batches, global_batch_size, source, context)

    return dataset


def read(names: tf.Tensor | list[str]) -> tf.data.Dataset:
    """The serialised records of files, in their order."""
    return tf.data.TFRecordDataset(names, buffer_size=_READ_BYTES)


def _own_rows(batches, global_batch_size, source, context):
    """Cuts each global batch of serialised records into this worker's per-replica batches, and parses those."""
    workers = context.num_input_pipelines
    replicas = context.num_replicas_in_sync // workers
    if global_batch_size % context.num_replicas_in_sync:
        raise BertError(f"The batch of {global_batch_size} does not divide by {context.num_replicas_in_sync} replicas.")
    rows = global_batch_size // workers
    first = context.input_pipeline_id * rows

    def cut(batch):
        return tf.reshape(batch[first : first + rows], [replicas, rows // replicas])

    batches = batches.map(cut).unbatch() if context.num_replicas_in_sync > 1 else batches
    return with_options(batches.map(source.schema.parse))


def with_options(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Batches in order, a few of them made ahead."""
    options = tf.data.Options()
    options.deterministic = True
    # One stream of batches keeps a device busy; more threads only take cores from it on small machines.
    options.autotune.enabled = False
    return batches.prefetch(2).with_options(options)


def describe_read_error(error: BaseException, source: RecordSource) -> BaseException:
    """Turns a failure of the pipeline, one of ERRORS, into a BertError that names file and record.

    Any other error is returned as it is.
    """
    if isinstance(error, (tf.errors.DataLossError, tf.errors.InvalidArgumentError, tf.errors.NotFoundError,
                          UnicodeDecodeError)):
        return records.find_problem(source.files, source.schema) or error
    return error

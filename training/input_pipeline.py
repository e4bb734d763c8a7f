"""TFRecords in, batches out: in an order that depends on files and seed alone, and that can start at any batch.

Every worker reads its own rows of one stream of global batches, so that one device, eight devices and two machines
train on the same batches; a resumed run continues with the batch after its checkpoint.
"""

import dataclasses
import re
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from data_prep import record_stream as records_in_order
from data_prep import records
from data_prep.record_stream import Rows
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
    """Makes the endless stream of training batches, in the order of `data_prep.record_stream`.

    Epochs follow one another without a short batch between them.

    Args:
        source: RecordSource.
        global_batch_size: records of one update, over all replicas.
        seed: of the order.
        first_batch: batches already trained on.
        shuffle_buffer: records shuffled at a time.

    Returns:
        function from tf.distribute.InputContext to a tf.data.Dataset of this worker's per-replica batches, for
        `Placement.distribute`.
    """

    def dataset(context):
        _check_replicas(global_batch_size, context)
        own = global_batch_size // context.num_input_pipelines
        rows = Rows(global_batch_size, context.input_pipeline_id * own, own)
        stream = _stream(source, seed, shuffle_buffer, first_batch * global_batch_size, rows)
        batches = stream.rebatch(global_batch_size // context.num_replicas_in_sync, drop_remainder=True)
        return with_options(batches.map(source.schema.parse))

    return dataset


def record_windows(source: RecordSource, seed: int, window: int, *, first_window: int = 0, shuffle_buffer: int = 1000
                   ) -> Callable[[], tf.data.Dataset]:
    """Makes the endless stream of serialised records, epoch after epoch, for readers that use all of them.

    Args:
        source, seed, shuffle_buffer: as in `training_batches`. The order is that of batches of one record.
        window: records of an element of the stream.
        first_window: windows already read.

    Returns:
        function to a tf.data.Dataset of strings [window].
    """
    return lambda: _stream(source, seed, shuffle_buffer, first_window * window, Rows()).rebatch(
        window, drop_remainder=True)


def _stream(source, seed, shuffle_buffer, first_record, rows):
    def some_at_a_time():
        try:
            order = records_in_order.open_order(source.files, seed, shuffle_buffer, rows)
            yield from records_in_order.read(source.files, order, first_record)
        except BertError as error:
            # As TensorFlow passes it on: `describe_read_error` finds the place.
            raise ValueError(str(error)) from error

    return tf.data.Dataset.from_generator(some_at_a_time, output_signature=tf.TensorSpec([None], tf.string))


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
    _check_replicas(global_batch_size, context)
    workers = context.num_input_pipelines
    replicas = context.num_replicas_in_sync // workers
    rows = global_batch_size // workers
    first = context.input_pipeline_id * rows

    def cut(batch):
        return tf.reshape(batch[first : first + rows], [replicas, rows // replicas])

    batches = batches.map(cut).unbatch() if context.num_replicas_in_sync > 1 else batches
    return with_options(batches.map(source.schema.parse))


def _check_replicas(global_batch_size, context):
    if global_batch_size % context.num_replicas_in_sync:
        raise BertError(f"The batch of {global_batch_size} does not divide by {context.num_replicas_in_sync} replicas.")


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
        return records.find_problem(source.files, source.schema) or _raised_while_reading(error) or error
    return error


def _raised_while_reading(error):
    """The error of the stream that TensorFlow passes on with a traceback around it; None where it is another."""
    found = re.search(r"^.*?ValueError: (.*)", getattr(error, "message", ""))
    return found and BertError(found[1])

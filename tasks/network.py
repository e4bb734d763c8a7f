"""What the networks of several families share. Imports TensorFlow: families import it from their network modules."""

from collections.abc import Mapping

import tensorflow as tf


def row_weights(batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Term weights where a row is one term of the loss: float32 [rows], 0 in rows that only complete a batch."""
    return tf.reshape(tf.cast(batch["is_real_example"], tf.float32), [-1])

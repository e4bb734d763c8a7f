"""Cross entropy, faster than TensorFlow's own on a CPU."""

import tensorflow as tf
from keras import ops


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Cross entropy of each label.

    Args:
        logits: float [..., classes].
        labels: int [...].

    Returns:
        float32 [...].
    """
    return cross_entropy_and_hits(logits, labels)[0]


def cross_entropy_and_hits(logits: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Cross entropy of each label, and whether the label has the highest score.

    On a CPU, TensorFlow's own loss takes six times as long as its softmax. Here the loss is derived from the softmax
    p: with b the best class, log Σ exp(logits) is logits[b] - log p[b], and p[b] is at least 1 / classes, so nothing
    underflows. The gradient is p, less one at the label.

    Args:
        logits: float [..., classes].
        labels: int [...].

    Returns:
        losses float32 [...]; hits float32 [...], 1 where the label is the first of the best classes and else 0.
    """
    # ops.shape: the number of classes may be unknown while a function is traced, such as the positions of a batch.
    shape, classes = ops.shape(labels), ops.shape(logits)[-1]
    logits = ops.cast(ops.reshape(logits, (-1, classes)), "float32")
    labels = ops.cast(ops.reshape(labels, (-1,)), "int32")
    # Keras' argmax orders -0.0 before 0.0, in six more passes.
    best = tf.argmax(logits, axis=-1, output_type=tf.int32)

    @ops.custom_gradient
    def losses_of(logits: tf.Tensor) -> tuple:
        p = ops.softmax(logits)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            at_label = (_pick(p, labels) - 1.0) * upstream
            return ops.scatter_update(p * upstream[:, None], _rows_and(labels), at_label)

        return _pick(logits, best) - ops.log(_pick(p, best)) - _pick(logits, labels), gradient

    return ops.reshape(losses_of(logits), shape), ops.reshape(ops.cast(best == labels, "float32"), shape)


def _pick(values: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """One value per row: [rows, classes], int [rows] to [rows]."""
    return ops.take_along_axis(values, columns[:, None], axis=1)[:, 0]


def _rows_and(columns: tf.Tensor) -> tf.Tensor:
    """Indices [rows, 2] of one column per row."""
    return ops.stack([ops.arange(ops.shape(columns)[0], dtype="int32"), columns], axis=1)

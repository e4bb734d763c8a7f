"""Cross entropy: the loss and its gradient are TensorFlow's own."""

import numpy as np
import pytest
import tensorflow as tf

from modeling.losses import cross_entropy, cross_entropy_and_hits


def test_loss_and_gradient_equal_tensorflow_s_even_where_a_probability_underflows():
    logits = tf.Variable([[[3.0, -1.0, 0.5], [0.0, -250.0, 1.0], [1e4, 0.0, -1e4], [2.0, 2.0, 2.0]]])
    labels, factors = tf.constant([[0, 1, 2, 1]]), tf.constant([[1.0, 0.5, 2.0, 0.0]])
    results = []
    for losses_of in (cross_entropy, lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x)):
        with tf.GradientTape() as tape:
            losses = losses_of(logits, labels)
            loss = tf.reduce_sum(factors * losses)
        results.append((losses.numpy(), tape.gradient(loss, logits).numpy()))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(8,), (4, 12)])
def test_losses_of_task_shapes_equal_tensorflow_s_up_to_rounding(shape):
    rng = np.random.default_rng(0)
    logits = tf.constant(rng.normal(0, 4, (*shape, 7)), tf.float32)
    labels = tf.constant(rng.integers(0, 7, shape))
    found, (again, hits) = cross_entropy(logits, labels), cross_entropy_and_hits(logits, labels)
    np.testing.assert_allclose(found, tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits), atol=2e-6)
    np.testing.assert_array_equal(found, again)
    np.testing.assert_array_equal(hits, logits.numpy().argmax(-1) == labels.numpy())


@pytest.mark.parametrize("compiled", [False, True])
def test_number_of_classes_may_be_unknown_while_tracing(compiled):
    @tf.function(input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None], tf.int32)], jit_compile=compiled)
    def loss_and_gradient(logits, labels):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = cross_entropy(logits, labels)
        return loss, tape.gradient(loss, logits)

    rng = np.random.default_rng(0)
    for classes in (3, 17):
        logits = tf.constant(rng.normal(0, 4, (5, classes)), tf.float32)
        logits = tf.concat([logits, tf.fill([5, 4], -1e9)], axis=1)  # padding
        labels = tf.constant(rng.integers(0, classes, 5), tf.int32)
        with tf.GradientTape() as tape:
            tape.watch(logits)
            expected = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        found, gradient = loss_and_gradient(logits, labels)
        np.testing.assert_allclose(found, expected, atol=2e-6)
        np.testing.assert_allclose(gradient, tape.gradient(expected, logits), atol=2e-6)

"""Tokens of a batch as a list and back, with and without padding."""

import numpy as np
import pytest
import tensorflow as tf

from modeling.unpadding import PaddedTokens, UnpaddedTokens, layout_of

MASK = tf.constant([[1, 1, 0, 0], [1, 0, 1, 1], [0, 0, 0, 0]])
X = tf.constant(np.arange(1.0, 25.0).reshape(3, 4, 2), tf.float32)


def test_unpadded_list_holds_the_real_tokens_in_order():
    layout = layout_of(MASK, unpad=True)
    assert isinstance(layout, UnpaddedTokens)
    np.testing.assert_array_equal(layout.flatten(X), X.numpy()[MASK.numpy().astype(bool)])
    np.testing.assert_array_equal(layout.flatten(MASK), [1] * 5)


def test_padded_list_holds_every_position():
    layout = layout_of(MASK, unpad=False)
    assert isinstance(layout, PaddedTokens)
    np.testing.assert_array_equal(layout.flatten(X), X.numpy().reshape(12, 2))
    np.testing.assert_array_equal(layout.restore(layout.flatten(X)), X)


def test_restoring_puts_tokens_back_and_zeros_at_padding():
    layout = UnpaddedTokens(MASK)
    np.testing.assert_array_equal(layout.restore(layout.flatten(X)), X * tf.cast(MASK, tf.float32)[:, :, None])


@pytest.mark.parametrize("unpad", [False, True])
def test_gradient_reaches_real_tokens_once(unpad):
    layout, x = layout_of(MASK, unpad), tf.Variable(X)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.square(layout.restore(layout.flatten(x))))
    real = tf.cast(MASK, tf.float32)[:, :, None] if unpad else 1.0
    np.testing.assert_array_equal(tape.gradient(y, x), 2.0 * X * real)

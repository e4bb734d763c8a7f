import numpy as np
import pytest
import tensorflow as tf

from modeling.unpadding import Padded, Unpadded, packing_of

MASK = tf.constant([[1, 1, 0, 0], [1, 0, 1, 1], [0, 0, 0, 0]])
X = tf.constant(np.arange(1.0, 25.0).reshape(3, 4, 2), tf.float32)


def test_unpadded_list_holds_the_real_tokens_in_order():
    packing = packing_of(MASK, skip_padding=True)
    assert isinstance(packing, Unpadded)
    np.testing.assert_array_equal(packing.pack(X), X.numpy()[MASK.numpy().astype(bool)])
    np.testing.assert_array_equal(packing.pack(MASK), [1] * 5)


def test_padded_list_holds_every_position():
    packing = packing_of(MASK, skip_padding=False)
    assert isinstance(packing, Padded)
    np.testing.assert_array_equal(packing.pack(X), X.numpy().reshape(12, 2))
    np.testing.assert_array_equal(packing.unpack(packing.pack(X)), X)


def test_unpacking_restores_tokens_and_puts_zeros_at_padding():
    packing = Unpadded(MASK)
    np.testing.assert_array_equal(packing.unpack(packing.pack(X)), X * tf.cast(MASK, tf.float32)[:, :, None])


@pytest.mark.parametrize("skip_padding", [False, True])
def test_gradient_reaches_real_tokens_once(skip_padding):
    packing, x = packing_of(MASK, skip_padding), tf.Variable(X)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.square(packing.unpack(packing.pack(x))))
    real = tf.cast(MASK, tf.float32)[:, :, None] if skip_padding else 1.0
    np.testing.assert_array_equal(tape.gradient(y, x), 2.0 * X * real)

"""Dropout without hidden state: a mask is a function of the step's seed and of the place in the model.

A run that is killed and resumed, or spread over devices, draws the masks that the caller's seed determines. No variable
has to be saved or synchronised, and XLA sees a pure function.
"""

import zlib

import tensorflow as tf
from keras import ops


class Dropout:
    """Zeroes each value with probability `rate` and scales the rest, so that the mean is unchanged.

    Args:
        rate: probability, in [0, 1).
        place: path of this dropout in the model: two places never share a mask under one seed.

    Call:
        x: float tensor.
        seed: int32 [2], one per step and replica; None leaves x as it is.
    """

    def __init__(self, rate: float, place: str) -> None:
        # 16 random bits per value decide, so the actual rate is a multiple of 2**-16; the scale is that rate's.
        self.threshold = round(rate * 65536)
        self.salt = zlib.crc32(place.encode()) & 0x7FFFFFFF

    def __call__(self, x: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        if seed is None or self.threshold == 0:
            return x
        keep = _keep_mask(seed, self.salt, ops.shape(x), self.threshold)
        return x * (tf.cast(keep, x.dtype) * (65536 / (65536 - self.threshold)))


def _keep_mask(seed: tf.Tensor, salt: int, shape: tuple, threshold: int) -> tf.Tensor:
    """bool [shape], True with probability 1 - threshold / 65536."""
    seed = tf.random.experimental.stateless_fold_in(seed, salt)
    count = tf.math.reduce_prod(shape)
    # Two values from each 32 bits: half the random numbers that one uniform float per value would need.
    bits = tf.random.stateless_uniform([(count + 1) // 2], seed, None, None, tf.int32)
    bits = tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:count]
    return tf.reshape(bits >= tf.constant(threshold, tf.uint16), shape)

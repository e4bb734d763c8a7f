"""Dropout without hidden state: a mask is a function of the step's seed and of the place in the model.

A run that is killed and resumed, or spread over devices, draws the masks that the caller's seed says; no variable has
to be saved or kept in step, and XLA sees a pure function.
"""

import zlib

import keras
from keras import ops


class Dropout:
    """Zeroes each value with probability `rate` and scales the others, so that the mean stays.

    Args:
        rate: probability, in [0, 1).
        place: where in the model this is, as a path: two places never share a mask under one seed.

    Call:
        x: float tensor.
        seed: int32 [2], one per step and replica; None leaves x as it is.
    """

    def __init__(self, rate, place):
        # 16 random bits a value decide, so the rate is a multiple of 2**-16, and the scale is that rate's.
        self.threshold = round(rate * 65536)
        self.salt = zlib.crc32(place.encode()) & 0x7FFFFFFF

    def __call__(self, x, seed):
        if seed is None or self.threshold == 0:
            return x
        keep = _keep_mask(seed, self.salt, ops.shape(x), self.threshold)
        return x * (ops.cast(keep, x.dtype) * (65536 / (65536 - self.threshold)))


if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    def _keep_mask(seed, salt, shape, threshold):
        """bool [shape], True with probability 1 - threshold / 65536."""
        seed = tf.random.experimental.stateless_fold_in(seed, salt)
        count = tf.math.reduce_prod(shape)
        # Two values from each 32 bits: half the random numbers of a uniform float a value.
        bits = tf.random.stateless_uniform([(count + 1) // 2], seed, None, None, tf.int32)
        bits = tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:count]
        return tf.reshape(bits >= tf.constant(threshold, tf.uint16), shape)

else:

    def _keep_mask(seed, salt, shape, threshold):
        """bool [shape], True with probability 1 - threshold / 65536."""
        # Keras' generators take a seed of two integers; mixing by an odd constant keeps neighbouring steps apart.
        seed = ops.cast(seed, "uint32")
        seed = ops.stack([seed[0] * 2654435769 + salt, seed[1] * 2246822519 + salt])
        return keras.random.uniform(shape, seed=seed) >= threshold / 65536

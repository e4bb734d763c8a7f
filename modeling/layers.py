"""The smallest parts: dense layer, layer normalisation, activations, initialiser.

Every layer's sizes are known when it is made, so `build()` needs no shapes: a layer builds its children within its
own name scope, and a variable's path is its name in the release's checkpoints.
"""

import math
from collections.abc import Callable

import keras
import tensorflow as tf
from keras import ops

from modeling.config import BertConfig


def initializer(config: BertConfig) -> keras.Initializer:
    """A new truncated normal initialiser. One object shared by two layers would give them equal weights."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


def activation(name: str) -> Callable[[tf.Tensor], tf.Tensor]:
    """The function of `hidden_act`: "gelu" is the tanh form, which the release computes; "linear" is none."""
    return {
        "gelu": gelu,
        "gelu_erf": gelu_erf,
        "relu": ops.relu,
        "tanh": ops.tanh,
        "linear": lambda x: x,
    }[name]


def gelu(x: tf.Tensor) -> tf.Tensor:
    """x · Φ(x) with the release's approximation of the normal distribution Φ; computed in float32.

    Φ(x) is taken as ½ (1 + tanh u) = σ(2u), u = √(2/π) (x + 0.044715 x³). The gradient is written out: it needs fewer
    passes over memory than the derived one.
    """
    linear, cubic = 2 * math.sqrt(2 / math.pi), 2 * math.sqrt(2 / math.pi) * 0.044715

    @ops.custom_gradient
    def apply(x: tf.Tensor) -> tuple:
        wide = ops.cast(x, "float32")
        square = ops.square(wide)
        phi = ops.sigmoid(wide * (square * cubic + linear))

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            # φ(1 - φ)x in one pass.
            slope = tf.raw_ops.SigmoidGrad(y=phi, dy=ops.cast(x, "float32"))
            return ops.cast(phi + slope * (square * (3 * cubic) + linear), x.dtype) * upstream

        return x * ops.cast(phi, x.dtype), gradient

    return apply(x)


def gelu_erf(x: tf.Tensor) -> tf.Tensor:
    """x · Φ(x) with the normal distribution Φ itself (Hendrycks and Gimpel 2016); computed in float32.

    TensorFlow's error function is slow in bfloat16.
    """

    @ops.custom_gradient
    def apply(x: tf.Tensor) -> tuple:
        phi = ops.erf(ops.cast(x, "float32") * math.sqrt(0.5)) * 0.5 + 0.5

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            wide = ops.cast(x, "float32")
            density = ops.exp(ops.square(wide) * -0.5) * (1 / math.sqrt(2 * math.pi))
            return ops.cast(phi + wide * density, x.dtype) * upstream

        return x * ops.cast(phi, x.dtype), gradient

    return apply(x)


class Dense(keras.layers.Layer):
    """x · kernel + bias.

    Args:
        inputs: width of x.
        units: width of the result.
        config: for the initialiser.

    Call:
        x: float [tokens, inputs].

    Returns:
        float [tokens, units].
    """

    def __init__(self, inputs: int, units: int, config: BertConfig, name: str = "dense",
                 dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.inputs, self.units, self.config = inputs, units, config

    def build(self, input_shape: object = None) -> None:
        self.kernel = self.add_weight(
            shape=(self.inputs, self.units), initializer=initializer(self.config), name="kernel"
        )
        self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return add_bias(ops.matmul(x, self.kernel), self.bias)


class LayerNorm(keras.layers.Layer):
    """Normalises each token's vector to mean 0 and variance 1, then scales and shifts it; statistics in float32.

    Args:
        size: width of a vector.
        epsilon: added to the variance.

    Call:
        x: float [..., size].
    """

    def __init__(self, size: int, epsilon: float, name: str = "LayerNorm", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.size, self.epsilon = size, epsilon

    def build(self, input_shape: object = None) -> None:
        self.beta = self.add_weight(shape=(self.size,), initializer="zeros", name="beta", autocast=False)
        self.gamma = self.add_weight(shape=(self.size,), initializer="ones", name="gamma", autocast=False)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return layer_norm(x, self.gamma, self.beta, self.epsilon)


def matmul_transposed(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """x · yᵀ over the last two axes. The gradient comes out in the layout of y and needs no transposition."""
    return tf.matmul(x, y, transpose_b=True)


def add_bias(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """x + bias, for x [rows, size] and bias [size]."""

    @ops.custom_gradient
    def add(x: tf.Tensor, bias: tf.Tensor) -> tuple:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return upstream, sum_of_rows(upstream)

        return x + bias, gradient

    # Copied: a custom gradient takes tensors, not variables.
    return add(x, ops.copy(bias))


def sum_of_rows(x: tf.Tensor) -> tf.Tensor:
    """Sum over the first axis of [rows, size], as a matrix product.

    It sums bfloat16 in float32, and on a CPU takes less than half the time of a reduction.
    """
    return ops.matmul(ops.ones((1, ops.shape(x)[0]), x.dtype), x)[0]


def layer_norm(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Layer normalisation over the last axis of x [rows, size], in float32; the result has x's dtype.

    The gradient is written out: it needs fewer passes over memory than the derived one, which sums rows and columns
    twice.
    """

    @ops.custom_gradient
    def normalise(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> tuple:
        wide = ops.cast(x, "float32")
        centred = wide - ops.mean(wide, axis=-1, keepdims=True)
        scale = ops.rsqrt(ops.mean(ops.square(centred), axis=-1, keepdims=True) + epsilon)
        normal = centred * scale

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            upstream = ops.cast(upstream, "float32")
            product = upstream * normal
            inner = upstream * gamma
            inner = inner - ops.mean(inner, axis=-1, keepdims=True)
            inner = inner - normal * ops.mean(product * gamma, axis=-1, keepdims=True)
            return ops.cast(scale * inner, x.dtype), sum_of_rows(product), sum_of_rows(upstream)

        return ops.cast(normal * gamma + beta, x.dtype), gradient

    return normalise(x, ops.copy(gamma), ops.copy(beta))

"""The smallest layers against Keras' own and against their definition."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from modeling import layers
from modeling.config import BertConfig

CONFIG = BertConfig(vocab_size=10, hidden_size=4, num_attention_heads=1)


def random(*shape, seed=0):
    return tf.constant(np.random.default_rng(seed).normal(1.0, 2.0, shape), tf.float32)


def test_layer_norm_and_its_gradients_are_those_of_keras():
    ours, theirs = layers.LayerNorm(8, 1e-12), keras.layers.LayerNormalization(epsilon=1e-12)
    ours.build()
    theirs.build((None, 8))
    for layer in (ours, theirs):
        layer.gamma.assign(random(8, seed=1))
        layer.beta.assign(random(8, seed=2))
    x, upstream = tf.Variable(random(5, 8, seed=3)), random(5, 8, seed=4)
    results = []
    for layer in (ours, theirs):
        with tf.GradientTape() as tape:
            y = layer(x)
        variables = [x, layer.gamma.value, layer.beta.value]
        results.append([y, *tape.gradient(y, variables, output_gradients=upstream)])
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_layer_norm_of_bfloat16_has_float32_statistics():
    # In bfloat16 the mean of 512 values near 300 would be off by more than their spread.
    x = tf.cast(300.0 + 2.0 * (tf.range(512) % 2)[None, :].numpy().astype("float32"), tf.bfloat16)
    layer = layers.LayerNorm(512, 1e-12, dtype="mixed_bfloat16")
    layer.build()
    np.testing.assert_allclose(tf.cast(layer(x), tf.float32)[0, :2], [-1.0, 1.0], atol=0.01)


def test_bias_gradient_sums_bfloat16_rows_exactly():
    x, bias = tf.zeros([1000, 2], tf.bfloat16), tf.Variable(tf.zeros([2], tf.bfloat16))
    with tf.GradientTape() as tape:
        y = layers.add_bias(x, bias)
    # 1000 ones added one by one in bfloat16 would stop at 256.
    np.testing.assert_array_equal(tf.cast(tape.gradient(y, bias), tf.float32), [1000.0, 1000.0])


def test_each_dense_layer_has_its_own_initial_kernel():
    one, two = layers.Dense(4, 4, CONFIG), layers.Dense(4, 4, CONFIG)
    one.build()
    two.build()
    assert not np.array_equal(one.kernel, two.kernel)
    assert not one.bias.numpy().any()


@pytest.mark.parametrize(
    ("name", "expected"), [("gelu", 0.841192), ("gelu_erf", 0.841345), ("relu", 1.0), ("tanh", 0.761594),
                         ("linear", 1.0)]
)
def test_activation_is_the_curve_of_its_name(name, expected):
    # GELU's two forms differ by 1.5e-4 at 1.
    assert float(layers.activation(name)(tf.constant(1.0))) == pytest.approx(expected, abs=2e-6)


def _exact(name, x):
    """Value and derivative of an activation in float64."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        cubic = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
        y = 0.5 * x * (1 + (tf.tanh(cubic) if name == "gelu" else tf.math.erf(x / np.sqrt(2))))
    return y, tape.gradient(y, x)


# In bfloat16, what rounding Φ and the product may cost at values up to 8, and rounding alone of derivatives up to 1.13.
@pytest.mark.parametrize(("dtype", "of_value", "of_gradient"), [("float32", 1e-6, 4e-6), ("bfloat16", 0.024, 0.008)])
@pytest.mark.parametrize("name", ["gelu", "gelu_erf"])
def test_gelu_and_its_gradient(name, dtype, of_value, of_gradient):
    x = tf.cast(np.linspace(-8, 8, 4001), dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layers.activation(name)(x)
    gradient = tape.gradient(y, x)
    assert y.dtype == gradient.dtype == x.dtype
    value, derivative = _exact(name, tf.cast(x, tf.float64))
    np.testing.assert_allclose(tf.cast(y, tf.float64), value, rtol=0, atol=of_value)
    np.testing.assert_allclose(tf.cast(gradient, tf.float64), derivative, rtol=0, atol=of_gradient)

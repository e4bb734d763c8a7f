"""Dropout: rate, independence of masks, gradient, XLA."""

import numpy as np
import pytest
import tensorflow as tf

from modeling.dropout import Dropout

SEED = tf.constant([3, 17])


def kept(dropout, seed, size=200_001):
    return dropout(tf.ones([size]), seed).numpy() != 0


def test_no_seed_or_no_rate_leaves_the_tensor_alone():
    x = tf.ones([3, 5])
    assert Dropout(0.1, "a")(x, None) is x
    assert Dropout(0.0, "a")(x, SEED) is x


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_share_of_zeros_is_the_rate_and_the_mean_is_unchanged(rate):
    dropped = Dropout(rate, "a")(tf.ones([1000, 301]), SEED).numpy()
    # Five standard deviations of a binomial of 301,000 draws.
    assert abs((dropped == 0).mean() - rate) < 5 * (rate * (1 - rate) / dropped.size) ** 0.5
    assert np.allclose(dropped[dropped != 0], 1 / (1 - rate), rtol=1e-3)


def test_mask_is_a_function_of_seed_and_place_alone():
    assert np.array_equal(kept(Dropout(0.5, "a"), SEED), kept(Dropout(0.5, "a"), SEED))


@pytest.mark.parametrize(("place", "seed"), [("b", [3, 17]), ("a", [3, 18]), ("a", [4, 17])])
def test_other_place_or_seed_draws_an_independent_mask(place, seed):
    agree = kept(Dropout(0.5, "a"), SEED) == kept(Dropout(0.5, place), tf.constant(seed))
    assert abs(agree.mean() - 0.5) < 0.01


def test_neighbouring_values_are_independent():
    mask = kept(Dropout(0.5, "a"), SEED)
    for lag in (1, 2, 3, 4):
        assert abs((mask[lag:] == mask[:-lag]).mean() - 0.5) < 0.01


def test_gradient_passes_where_kept_and_with_the_same_scale():
    x = tf.Variable(tf.ones([1000]))
    with tf.GradientTape() as tape:
        y = Dropout(0.25, "a")(x, SEED)
    assert np.array_equal(tape.gradient(y, x).numpy(), y.numpy())


def test_bfloat16_stays_bfloat16():
    assert Dropout(0.1, "a")(tf.ones([7, 3], tf.bfloat16), SEED).dtype == tf.bfloat16


def test_xla_draws_the_same_distribution():
    dropout = Dropout(0.1, "a")
    compiled = tf.function(lambda x, seed: dropout(x, seed), jit_compile=True)
    assert abs((compiled(tf.ones([100_000]), SEED).numpy() == 0).mean() - 0.1) < 0.005

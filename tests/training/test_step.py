"""One update: compiled whole by XLA as on a TPU, cut into parts, with dropout that follows seed and step."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from modeling.config import BertConfig
from modeling.models import PretrainingModel
from tests.conftest import TINY_CONFIG, tiny_arrays
from training.devices import Placement
from training.optimizers.optimizer import make_optimizer
from training.pretraining_objective import PretrainingObjective
from training.settings import OptimizationSettings
from training.step import TrainStep, fold_in


def make_step(dropout=0.0, xla=False, dtype="float32", **settings):
    keras.utils.set_random_seed(1)
    config = BertConfig(**{**TINY_CONFIG, "hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout})
    objective = PretrainingObjective(PretrainingModel(config, dtype=dtype))
    settings = OptimizationSettings(**settings)
    optimizer = make_optimizer(settings)
    optimizer.build(objective.variables)
    placement = Placement(tf.distribute.get_strategy(), "cpu", dtype, xla)
    return TrainStep(placement, objective, optimizer, lambda step: 1e-2, settings, seed=7)


@pytest.fixture(scope="module")
def features():
    arrays = tiny_arrays(rows=8)
    return {name: tf.constant(value, tf.float32 if name == "masked_lm_weights" else tf.int32)
            for name, value in arrays.items()}


def weights(step):
    return {name: variable.numpy() for name, variable in step.objective.variables.items()}


@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
def test_whole_step_compiles_at_static_shapes_and_updates_the_same(features, optimizer):
    plain, compiled = make_step(optimizer=optimizer), make_step(optimizer=optimizer)
    expected = tf.function(plain.update)(features, tf.constant(3, tf.int64))
    sums = tf.function(compiled.update, jit_compile=True)(features, tf.constant(3, tf.int64))
    np.testing.assert_allclose(sums, expected, rtol=1e-4)
    for name, value in weights(plain).items():
        np.testing.assert_allclose(weights(compiled)[name], value, atol=1e-4, err_msg=name)


def test_whole_step_with_dropout_and_micro_batches_in_bfloat16_compiles(features):
    step = make_step(dropout=0.1, dtype="mixed_bfloat16", gradient_accumulation_steps=2)
    sums = tf.function(step.update, jit_compile=True)(features, tf.constant(0, tf.int64))
    assert np.isfinite(sums.numpy()).all()


def test_dropout_follows_seed_and_step(features):
    step = make_step(dropout=0.5)
    gradients = tf.function(step._gradients)

    def loss(number):
        _, sums = gradients(features, step.objective.denominators(features), fold_in([7, 0], number, 0))
        return float(sums[0])

    assert loss(1) == loss(1)
    assert loss(1) != loss(2)


def test_gradients_of_all_parts_are_used(features):
    """A micro-batch that were left out, or counted twice, would change the update."""
    whole, parts = make_step(), make_step(gradient_accumulation_steps=4)
    expected = whole.update(features, tf.constant(0, tf.int64))
    np.testing.assert_allclose(parts.update(features, tf.constant(0, tf.int64)), expected, rtol=1e-4)

"""This project's engine, put together as its drivers do, with the settings that the scripts have by default."""

import dataclasses
from typing import Any

import numpy as np

from benchmarks.speed import batches, data_sets, rows
from benchmarks.speed.job import Job
from training.settings import HardwareSettings, InitialModelSettings, OptimizationSettings

_LEARNING_RATE = 1e-5
# More passes than are ever measured.
_REPEATS = 2000


def pretraining(size: str, precision: str) -> Job:
    """Full steps of run_pretraining.py.

    Args:
        size: key of batches.SIZES.
        precision: "float32" or "bfloat16".
    """
    import tensorflow as tf

    from modeling.config import PRESETS
    from modeling.models import PretrainingModel
    from training import devices
    from training.optimizers.optimizer import make_optimizer
    from training.pretraining_objective import PretrainingObjective
    from training.step import TrainStep

    placement = devices.create(HardwareSettings(precision=precision))
    settings = OptimizationSettings()
    with placement.strategy.scope():
        objective = PretrainingObjective(
            PretrainingModel(PRESETS[size], unpad=placement.unpads, dtype=placement.dtype))
        optimizer = make_optimizer(settings)
        optimizer.build(objective.variables)
    step = TrainStep(placement, objective, optimizer, lambda step: 1e-4, settings, seed=7)
    sample = batches.sample(size, by_length=False)
    stream = tf.data.Dataset.from_tensor_slices(
        {name: [batch[name] for batch in sample.batches] for name in sample.batches[0]}).repeat()
    iterator = iter(placement.strategy.distribute_datasets_from_function(lambda context: stream))
    # As in the training loop, several steps are one call of the graph.
    count = len(sample.batches)
    return Job.of([lambda: step.call(iterator, tf.constant(0, tf.int64), tf.constant(count, tf.int64)).numpy()],
                  count * sample.tokens, warmups=1)


def finetuning(task: Any, features: str, model: str, batch_size: int, count: int, precision: str) -> Job:
    """Full steps of a fine-tuning script, its input pipeline included.

    Args:
        task: name and settings, for `data_sets.make_task`.
        features: file of the training set's features.
        model: folder of the initial model.
        batch_size: rows of a batch.
        count: batches, drawn evenly from those of an epoch.
        precision: "float32" or "bfloat16".
    """
    import tensorflow as tf

    from inputs import batching
    from training.optimizers.optimizer import make_optimizer
    from training.step import TrainStep

    task, found = data_sets.make_task(task), rows.load(features)
    placement, objective = _objective(task, model, precision)
    optimization = OptimizationSettings(learning_rate=_LEARNING_RATE)
    with placement.strategy.scope():
        optimizer = make_optimizer(optimization)
        optimizer.build(objective.variables)
    step = TrainStep(placement, objective, optimizer, lambda step: _LEARNING_RATE, optimization, seed=0)
    plan = batching.training_plan(found.lengths, batch_size, len(found) // batch_size, 0, task.max_seq_length)
    iterator = _iterator(placement, found, plan, rows.spread(found.lengths, plan.rows, count))

    def run():
        step.call(iterator, tf.constant(0, tf.int64), tf.constant(count, tf.int64)).numpy()

    return Job.of([run], count * batch_size, warmups=1)


def prediction(task: Any, features: str, model: str, batch_size: int, count: int, precision: str) -> Job:
    """Predictions as the fine-tuning scripts make them; arguments as above."""
    from inputs import batching
    from training.step import PredictionStep

    task, found = data_sets.make_task(task), rows.load(features)
    placement, objective = _objective(task, model, precision)
    plan = batching.prediction_plan(found.lengths, batch_size, task.max_seq_length)
    complete = dataclasses.replace(plan, rows=plan.rows[: len(found) // batch_size])
    iterator = _iterator(placement, found, plan, rows.spread(found.lengths, complete.rows, count))
    step = PredictionStep(placement, objective)

    def run():
        return [{name: value.numpy() for name, value in step.call(iterator).items()} for _ in range(count)]

    return Job.of([run], count * batch_size, warmups=1)


def _objective(task, model, precision):
    """The task's model with the initial weights, on the default devices."""
    import keras

    from finetuning.objective import TaskObjective
    from training import devices, initial_model

    placement, network = devices.create(HardwareSettings(precision=precision)), task.network()
    initial = initial_model.find(InitialModelSettings(init_checkpoint=model))
    with placement.strategy.scope():
        keras.utils.set_random_seed(0)
        objective = TaskObjective(network, network.model(initial.config, placement.dtype, placement.unpads))
    initial.load(objective.model, new_head=True)
    return placement, objective


def _iterator(placement, features, plan, chosen):
    """Over some of a plan's batches, again and again, through the scripts' input pipeline."""
    from inputs import batching

    chosen = np.tile(chosen, _REPEATS)
    part = dataclasses.replace(plan, rows=plan.rows[chosen], lengths=plan.lengths[chosen])
    batches = batching.batches(features, part, lengths_vary=True)
    return iter(placement.strategy.distribute_datasets_from_function(batches))

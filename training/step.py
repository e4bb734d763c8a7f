"""One update, one evaluation batch and one prediction batch, on however many replicas: what runs inside `strategy.run`.

The result of an update does not depend on how its batch was cut: each loss is divided by the denominators of the whole
global batch, gradients are summed over micro-batches and replicas by one all-reduce, and only then clipped.

All of it is traced without AutoGraph, which costs a third of the tracing and writes a temporary file for each function:
a process that is killed leaves them behind, and a full /tmp would stop the run.
"""

import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from training.devices import Placement
from training.optimizers.optimizer import Optimizer, clip_by_global_norm
from training.settings import OptimizationSettings

Batch = Mapping[str, tf.Tensor]


class Objective(typing.Protocol):
    """What is trained: a loss over a model, written as sums so that a batch can be cut into parts.

    Attributes:
        variables: dict of name to trainable variable.
        sum_names: names of the sums that `loss` returns.
    """

    @property
    def variables(self) -> dict[str, Any]: ...
    @property
    def sum_names(self) -> tuple[str, ...]: ...

    def denominators(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Float scalars by name: the denominators of the loss in these rows (masked words, rows)."""
        ...

    def loss(self, batch: Batch, denominators: Mapping[str, tf.Tensor], dropout_seed: tf.Tensor | None
             ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Scalar loss of these rows, divided by the denominators of the whole batch; the sums to report."""
        ...

    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Metrics for people, from sums over any number of batches."""
        ...


class Predictor(typing.Protocol):
    """What a prediction batch runs: a model's outputs, without dropout."""

    def predict(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Dict of tensors [rows, ...]."""
        ...


class TrainStep:
    """Runs updates, several in one graph call.

    Args:
        placement: Placement.
        objective: Objective.
        optimizer: Optimizer, built on the objective's variables.
        learning_rate: function from the step (int64 scalar tensor) to the learning rate.
        settings: OptimizationSettings.
        seed: of dropout.
    """

    def __init__(self, placement: Placement, objective: Objective, optimizer: Optimizer,
                 learning_rate: Callable[[tf.Tensor], tf.Tensor], settings: OptimizationSettings, seed: int) -> None:
        self.placement = placement
        self.objective = objective
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.settings = settings
        self.seed = seed
        self.names = (*objective.sum_names, "gradient_norm")
        self._variables = list(objective.variables.values())
        # A TPU compiles the whole step; elsewhere the all-reduce and the update stay outside of XLA.
        jit = placement.xla and placement.platform != "tpu"
        self._gradients = tf.function(
            self._gradients_of, autograph=False, jit_compile=True) if jit else self._gradients_of
        self.call = tf.function(self._call, autograph=False)

    def _call(self, iterator, first_step, count):
        """Makes `count` updates.

        Args:
            iterator: distributed iterator of batches.
            first_step: int64 scalar, updates made before.
            count: int64 scalar.

        Returns:
            float32 [count, len(self.names)], the sums of each update.
        """
        def one(index, rows):
            sums = self.placement.strategy.run(self.update, args=(next(iterator), first_step + index))
            row = self.placement.strategy.experimental_local_results(sums)[0]
            return index + 1, rows.write(tf.cast(index, tf.int32), row)

        rows = tf.TensorArray(tf.float32, size=tf.cast(count, tf.int32))
        _, rows = tf.while_loop(lambda index, _: index < count, one, (tf.constant(0, tf.int64), rows),
                                maximum_iterations=tf.cast(count, tf.int32))
        return rows.stack()

    def update(self, batch: Batch, step: tf.Tensor) -> tf.Tensor:
        """One update in replica context. Returns float32 [len(self.names)], the same on each replica."""
        replica = tf.distribute.get_replica_context()
        denominators = replica.all_reduce("SUM", self.objective.denominators(batch))
        dropout_seed = fold_in([self.seed, 0], step, replica.replica_id_in_sync_group)
        gradients, sums = self._accumulate(batch, denominators, dropout_seed)
        gradients, sums = replica.all_reduce("SUM", [gradients, sums])
        gradients, norm = clip_by_global_norm(gradients, self.settings.max_grad_norm)
        self.optimizer.apply(gradients, self.learning_rate(step), step)
        return tf.stack([*sums, norm])

    def _accumulate(self, batch, denominators, dropout_seed):
        """Gradients and sums of this replica's rows, a micro-batch at a time."""
        parts = self.settings.gradient_accumulation_steps
        if parts == 1:
            return self._gradients(batch, denominators, dropout_seed)
        batch = {name: _cut(value, parts) for name, value in batch.items()}

        def one(part, gradients, sums):
            micro_batch = {name: value[part] for name, value in batch.items()}
            more_gradients, more_sums = self._gradients(micro_batch, denominators, fold_in(dropout_seed, part))
            return (part + 1, [a + b for a, b in zip(gradients, more_gradients)],
                    [a + b for a, b in zip(sums, more_sums)])

        zeros = [tf.zeros(variable.shape) for variable in self._variables]
        initial = (tf.constant(0), zeros, [tf.constant(0.0)] * len(self.objective.sum_names))
        _, gradients, sums = tf.while_loop(lambda part, *_: part < parts, one, initial)
        return gradients, sums

    def _gradients_of(self, batch, denominators, dropout_seed):
        with tf.GradientTape() as tape:
            loss, sums = self.objective.loss(batch, denominators, dropout_seed)
        gradients = tape.gradient(loss, self._variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        # A gradient of gathered rows is dense here: its norm is that of the summed rows, and all-reduce adds it up.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return gradients, [tf.cast(sums[name], tf.float32) for name in self.objective.sum_names]


class EvaluationStep:
    """Sums an objective over batches, without dropout or update.

    Args:
        placement: Placement.
        objective: Objective.
    """

    def __init__(self, placement: Placement, objective: Objective) -> None:
        self.placement = placement
        self.objective = objective
        self.call = tf.function(self._call, autograph=False)

    def _call(self, batch):
        sums = self.placement.strategy.run(self.batch_sums, args=(batch,))
        return self.placement.strategy.experimental_local_results(sums)[0]

    def batch_sums(self, batch: Batch) -> tf.Tensor:
        """In replica context: float32 [len(sum_names)], summed over the replicas."""
        _, sums = self.objective.loss(batch, self.objective.denominators(batch), None)
        totals = [tf.cast(sums[name], tf.float32) for name in self.objective.sum_names]
        return tf.stack(tf.distribute.get_replica_context().all_reduce("SUM", totals))

    def run(self, batches: Any) -> dict[str, float]:
        """Metrics over a distributed dataset: what the objective's `summarize` returns."""
        totals = np.zeros(len(self.objective.sum_names))
        for batch in batches:
            totals += self.call(batch).numpy().astype(np.float64)
        return self.objective.summarize(dict(zip(self.objective.sum_names, totals)))


class PredictionStep:
    """A model's outputs for batches, from all replicas, without dropout.

    Args:
        placement: Placement.
        predictor: Predictor.
    """

    def __init__(self, placement: Placement, predictor: Predictor) -> None:
        self.placement = placement
        self._predict = tf.function(
            predictor.predict, autograph=False, jit_compile=True) if placement.xla else predictor.predict
        self.call = tf.function(self._call, autograph=False)

    def _call(self, iterator):
        # From an iterator, whose type leaves lengths open: batches of all lengths share one trace.
        outputs = self.placement.strategy.run(self.batch_outputs, args=(next(iterator),))
        return {name: self.placement.strategy.experimental_local_results(value)[0] for name, value in outputs.items()}

    def batch_outputs(self, batch: Batch) -> dict[str, tf.Tensor]:
        """In replica context: dict of tensors [global rows, ...], the same on each replica."""
        replica = tf.distribute.get_replica_context()
        outputs = self._predict(batch)
        if replica.num_replicas_in_sync == 1:
            return outputs
        return {name: replica.all_gather(value, axis=0) for name, value in outputs.items()}

    def run(self, batches: Any, count: int) -> Iterator[dict[str, np.ndarray]]:
        """Yields a dict of arrays [global rows, ...] for each of the `count` batches of a distributed dataset."""
        iterator = iter(batches)
        for _ in range(count):
            yield {name: value.numpy() for name, value in self.call(iterator).items()}


def fold_in(seed: Any, *numbers: Any) -> tf.Tensor:
    """A stateless seed, int32 [2], that differs for each combination of numbers."""
    seed = tf.convert_to_tensor(seed, tf.int32)
    for number in numbers:
        seed = tf.random.experimental.stateless_fold_in(seed, tf.cast(number, tf.int32))
    return seed


def _cut(value, parts):
    """[rows, ...] to [parts, rows / parts, ...]; one of the other sizes may be unknown."""
    rest = [-1 if size is None else size for size in value.shape[1:]]
    return tf.reshape(value, [parts, value.shape[0] // parts, *rest])

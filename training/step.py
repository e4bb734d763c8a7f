"""One update and one evaluation batch, on however many replicas: what runs inside `strategy.run`.

The numbers of an update do not depend on how its batch was cut: each loss is divided by the weight of the whole global
batch, gradients are summed over micro-batches and replicas by one all-reduce, and only then clipped.
"""

import typing

import tensorflow as tf

from training.optimization import clip_by_global_norm


class Objective(typing.Protocol):
    """What is trained: a loss over a model, written as sums so that it can be cut into parts.

    Attributes:
        variables: dict of name to trainable variable.
        sum_names: names of the sums that `sums` returns.
    """

    variables: dict
    sum_names: tuple

    def weights(self, features):
        """Float scalars by name: the denominators of the loss in these rows (predictions made, rows)."""

    def loss(self, features, weights, dropout_seed):
        """Scalar loss of these rows, divided by the given weights of the whole batch, and the sums to report."""

    def summarize(self, sums):
        """Sums over any number of batches as the figures a person reads."""


class TrainStep:
    """Runs updates, several in one graph call.

    Args:
        placement: training.strategy.Placement.
        objective: Objective.
        optimizer: training.optimization optimizer, built on the objective's variables.
        rate: function from step (int64 scalar tensor) to the learning rate.
        settings: OptimizationSettings.
        seed: of dropout.
    """

    def __init__(self, placement, objective, optimizer, rate, settings, seed):
        self.placement = placement
        self.objective = objective
        self.optimizer = optimizer
        self.rate = rate
        self.settings = settings
        self.seed = seed
        self.names = (*objective.sum_names, "gradient_norm")
        self._variables = list(objective.variables.values())
        # A TPU compiles the whole step; elsewhere the all-reduce and the update stay outside of XLA.
        jit = placement.xla and placement.platform != "tpu"
        self._gradients = tf.function(self._gradients_of, jit_compile=True) if jit else self._gradients_of
        self.call = tf.function(self._call)

    def _call(self, iterator, first_step, count):
        """Makes `count` updates.

        Args:
            iterator: distributed iterator of batches.
            first_step: int64 scalar, updates made before.
            count: int64 scalar.

        Returns:
            float32 [count, len(self.names)], the sums of each update.
        """
        rows = tf.TensorArray(tf.float32, size=tf.cast(count, tf.int32))
        for index in tf.range(count):
            sums = self.placement.strategy.run(self.update, args=(next(iterator), first_step + index))
            row = self.placement.strategy.experimental_local_results(sums)[0]
            rows = rows.write(tf.cast(index, tf.int32), row)
        return rows.stack()

    def update(self, features, step):
        """One update in replica context. Returns float32 [len(self.names)], the same on each replica."""
        replica = tf.distribute.get_replica_context()
        weights = replica.all_reduce("SUM", self.objective.weights(features))
        dropout_seed = fold_in([self.seed, 0], step, replica.replica_id_in_sync_group)
        gradients, sums = self._accumulate(features, weights, dropout_seed)
        gradients, sums = replica.all_reduce("SUM", [gradients, sums])
        gradients, norm = clip_by_global_norm(gradients, self.settings.max_grad_norm)
        self.optimizer.apply(gradients, self.rate(step), step)
        return tf.stack([*sums, norm])

    def _accumulate(self, features, weights, dropout_seed):
        """Gradients and sums of this replica's rows, a micro-batch at a time."""
        parts = self.settings.gradient_accumulation_steps
        if parts == 1:
            return self._gradients(features, weights, dropout_seed)
        features = {name: _cut(value, parts) for name, value in features.items()}

        def one(part, gradients, sums):
            micro_batch = {name: value[part] for name, value in features.items()}
            more_gradients, more_sums = self._gradients(micro_batch, weights, fold_in(dropout_seed, part))
            return (part + 1, [a + b for a, b in zip(gradients, more_gradients)],
                    [a + b for a, b in zip(sums, more_sums)])

        zeros = [tf.zeros(variable.shape) for variable in self._variables]
        initial = (tf.constant(0), zeros, [tf.constant(0.0)] * len(self.objective.sum_names))
        _, gradients, sums = tf.while_loop(lambda part, *_: part < parts, one, initial)
        return gradients, sums

    def _gradients_of(self, features, weights, dropout_seed):
        with tf.GradientTape() as tape:
            loss, sums = self.objective.loss(features, weights, dropout_seed)
        gradients = tape.gradient(loss, self._variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        # A gradient of gathered rows is dense here: its norm is that of the summed rows, and all-reduce adds it up.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return gradients, [tf.cast(sums[name], tf.float32) for name in self.objective.sum_names]


class EvaluationStep:
    """Sums an objective over batches, without dropout or update."""

    def __init__(self, placement, objective):
        self.placement = placement
        self.objective = objective
        self.call = tf.function(self._call)

    def _call(self, batch):
        sums = self.placement.strategy.run(self.batch_sums, args=(batch,))
        return self.placement.strategy.experimental_local_results(sums)[0]

    def batch_sums(self, features):
        """In replica context: float32 [len(sum_names)], summed over the replicas."""
        _, sums = self.objective.loss(features, self.objective.weights(features), None)
        sums = [tf.cast(sums[name], tf.float32) for name in self.objective.sum_names]
        return tf.stack(tf.distribute.get_replica_context().all_reduce("SUM", sums))

    def run(self, batches):
        """Figures over a distributed dataset. Returns what the objective's `summarize` does."""
        totals = 0.0
        for batch in batches:
            totals += self.call(batch).numpy().astype("float64")
        return self.objective.summarize(dict(zip(self.objective.sum_names, totals)))


class PredictionStep:
    """A model's outputs for batches, from all replicas, without dropout.

    Args:
        placement: training.strategy.Placement.
        objective: Objective whose `predict(features)` gives a dict of tensors [rows, ...].
    """

    def __init__(self, placement, objective):
        self.placement = placement
        self.objective = objective
        predict = objective.predict
        self._predict = tf.function(predict, jit_compile=True) if placement.xla else predict
        self.call = tf.function(self._call)

    def _call(self, iterator):
        # From an iterator, whose type leaves lengths open: batches of all lengths are one trace.
        outputs = self.placement.strategy.run(self.batch_outputs, args=(next(iterator),))
        return {name: self.placement.strategy.experimental_local_results(value)[0] for name, value in outputs.items()}

    def batch_outputs(self, features):
        """In replica context: dict of tensors [global rows, ...], the same on each replica."""
        replica = tf.distribute.get_replica_context()
        outputs = self._predict(features)
        if replica.num_replicas_in_sync == 1:
            return outputs
        return {name: replica.all_gather(value, axis=0) for name, value in outputs.items()}

    def run(self, batches, count):
        """Yields a dict of NumPy arrays [global rows, ...] for each of the `count` batches of a distributed dataset."""
        iterator = iter(batches)
        for _ in range(count):
            yield {name: value.numpy() for name, value in self.call(iterator).items()}


def _cut(value, parts):
    """[rows, ...] to [parts, rows / parts, ...]; one of the other sizes may be unknown."""
    rest = [-1 if size is None else size for size in value.shape[1:]]
    return tf.reshape(value, [parts, value.shape[0] // parts, *rest])


def fold_in(seed, *numbers):
    """A stateless seed, int32 [2], that differs for each combination of numbers."""
    seed = tf.convert_to_tensor(seed, tf.int32)
    for number in numbers:
        seed = tf.random.experimental.stateless_fold_in(seed, tf.cast(number, tf.int32))
    return seed

"""A task's loss as what the training step minimises."""

import tensorflow as tf

from modeling.models import named_variables


class TaskObjective:
    """A task's loss over a model, as an objective of `training.step`: the weighted mean of its terms."""

    sum_names = ("loss", "weight")

    def __init__(self, task, model):
        self.task, self.model = task, model
        self.variables = {name: variable.value for name, variable in named_variables(model).items()}

    def weights(self, batch):
        """The terms that count."""
        return {"weight": tf.reduce_sum(self.task.weights(batch))}

    def loss(self, batch, weights, dropout_seed):
        """This part's share of the whole batch's loss."""
        terms = self.task.losses(self.model(batch, dropout_seed=dropout_seed), batch)
        counts = self.task.weights(batch)
        total = tf.reduce_sum(terms * counts)
        return total / tf.maximum(weights["weight"], 1.0), {"loss": total, "weight": tf.reduce_sum(counts)}

    def predict(self, batch):
        """The model's outputs, without dropout."""
        return self.model(batch)

    def summarize(self, sums):
        """The mean loss."""
        return {"loss": sums["loss"] / max(sums["weight"], 1.0)}

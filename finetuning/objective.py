"""A task's loss as what the training step minimises."""

import tensorflow as tf

from modeling.models import named_variables


class TaskObjective:
    """A task's loss over a model, as an objective of `training.step`. What is reported is the mean over its terms.

    Args:
        task: Task.
        model: of the task.

    Attributes:
        terms_per_row: `Task.terms_per_row` of the training set. A batch's loss is divided by this for each of its rows,
            and not by the terms it happens to hold, for then a word would count more in batches of short sentences.
    """

    sum_names = ("loss", "weight")

    def __init__(self, task, model):
        self.task, self.model, self.terms_per_row = task, model, 1.0
        self.variables = {name: variable.value for name, variable in named_variables(model).items()}

    def weights(self, batch):
        """What these rows add to the batch's divisor."""
        return {"weight": tf.reduce_sum(tf.cast(batch["is_real_example"], tf.float32)) * self.terms_per_row}

    def loss(self, batch, weights, dropout_seed):
        """This part's share of the whole batch's loss."""
        terms = self.task.losses(self.model(batch, dropout_seed=dropout_seed), batch)
        counts = self.task.weights(batch)
        total = tf.reduce_sum(terms * counts)
        return total / weights["weight"], {"loss": total, "weight": tf.reduce_sum(counts)}

    def predict(self, batch):
        """The model's outputs, without dropout."""
        return self.model(batch)

    def summarize(self, sums):
        """The mean loss."""
        return {"loss": sums["loss"] / max(sums["weight"], 1.0)}

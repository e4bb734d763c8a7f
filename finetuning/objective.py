"""A task's loss as what the training step minimises."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from modeling.models import named_variables
from tasks.task import Network
from training.step import Batch


class TaskObjective:
    """A task's loss over a model, an Objective of `training.step`. It reports the mean over the loss's terms.

    Args:
        network: Network.
        model: that `network.model` made.
        terms_per_row: `Task.terms_per_row` of the training set. A batch's loss is divided by this for each of its rows,
            not by the terms it happens to hold: a word would count more in batches of short sentences.
    """

    sum_names = ("loss", "term_weight")

    def __init__(self, network: Network, model: keras.Model, terms_per_row: float = 1.0) -> None:
        self.network, self.model, self.terms_per_row = network, model, terms_per_row
        self.variables: dict[str, Any] = {name: variable.value for name, variable in named_variables(model).items()}

    def denominators(self, batch: Batch) -> dict[str, tf.Tensor]:
        """What these rows add to the batch's divisor."""
        return {"rows": tf.reduce_sum(tf.cast(batch["is_real_example"], tf.float32)) * self.terms_per_row}

    def loss(self, batch: Batch, denominators: Mapping[str, tf.Tensor], dropout_seed: tf.Tensor | None
             ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """These rows' share of the whole batch's loss."""
        terms = self.network.losses(self.model(batch, dropout_seed=dropout_seed), batch)
        term_weights = self.network.term_weights(batch)
        total = tf.reduce_sum(terms * term_weights)
        return total / denominators["rows"], {"loss": total, "term_weight": tf.reduce_sum(term_weights)}

    def predict(self, batch: Batch) -> dict[str, tf.Tensor]:
        """The model's outputs, without dropout."""
        return self.model(batch)

    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """The mean loss."""
        return {"loss": sums["loss"] / max(sums["term_weight"], 1.0)}

"""Masked words and the next sentence, as what the training step minimises."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from modeling import objective
from modeling.models import PretrainingModel, named_variables
from modeling.packed_rows import real_sequences
from training.step import Batch


class PretrainingObjective:
    """The release's pre-training loss (paper, section 3.1), an Objective of `training.step`.

    Args:
        model: PretrainingModel.
    """

    def __init__(self, model: PretrainingModel) -> None:
        self.model = model
        self.variables: dict[str, Any] = {name: variable.value for name, variable in named_variables(model).items()}
        self.next_sentence = model.cls.seq_relationship is not None
        self.sum_names: tuple[str, ...] = ("masked_lm_loss", "masked_lm_correct", "masked_lm_weight", "examples")
        if self.next_sentence:
            self.sum_names += ("next_sentence_loss", "next_sentence_correct")

    def denominators(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Masked words and sequences that count."""
        return {"masked_lm_weight": tf.reduce_sum(batch["masked_lm_weights"]),
                "examples": tf.reduce_sum(real_sequences(batch["input_mask"], batch.get("part_starts")))}

    def loss(self, batch: Batch, denominators: Mapping[str, tf.Tensor], dropout_seed: tf.Tensor | None
             ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """The release's total loss, as these rows' share of the whole batch's."""
        outputs = self.model(batch, dropout_seed=dropout_seed, words_only=self.model.bert.unpad)
        sums = objective.pretraining_sums(outputs, batch)
        return objective.total_loss(sums, **denominators), sums

    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Mean losses and accuracies, by the release's names."""
        predictions, examples = max(sums["masked_lm_weight"], 1e-5), max(sums["examples"], 1e-5)
        metrics = {"masked_lm_loss": sums["masked_lm_loss"] / predictions,
                   "masked_lm_accuracy": sums["masked_lm_correct"] / predictions}
        if self.next_sentence:
            metrics["next_sentence_loss"] = sums["next_sentence_loss"] / examples
            metrics["next_sentence_accuracy"] = sums["next_sentence_correct"] / examples
        return {"loss": metrics["masked_lm_loss"] + metrics.get("next_sentence_loss", 0.0), **metrics}

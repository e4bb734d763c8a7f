"""The pre-training objective: masked words plus next sentence (the release's `run_pretraining`).

Losses are summed over a batch and the divisor is kept apart, so that sums of replicas and of accumulated batches can be
added before they are divided: the result is then that of one large batch on one device.
"""

from collections.abc import Mapping

import tensorflow as tf
from keras import ops

from modeling.losses import cross_entropy_and_hits
from modeling.packed_rows import real_sequences

# The release's guard against a batch without predictions.
WEIGHT_EPSILON = 1e-5


def pretraining_sums(outputs: Mapping[str, tf.Tensor], features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Losses and correct predictions of a batch, summed.

    Args:
        outputs: of PretrainingModel.
        features: dict with `masked_lm_ids`, `masked_lm_weights`, `next_sentence_labels` and `input_mask`, as the
            records hold them, or packed (`PretrainingModel`). A row whose mask is all zero only completes a batch and
            does not count.

    Returns:
        dict of float32 scalars: masked_lm_loss, masked_lm_correct and masked_lm_weight, each over the predictions by
        their weights; with a next sentence head, next_sentence_loss and next_sentence_correct; examples, the
        sequences that count.
    """
    words, term_weights = features["masked_lm_ids"], ops.cast(features["masked_lm_weights"], "float32")
    if "masked_lm_slots" in outputs:
        words, term_weights = (ops.take(each, outputs["masked_lm_slots"]) for each in (words, term_weights))
    losses, correct = cross_entropy_and_hits(outputs["masked_lm_logits"], words)
    sequences = real_sequences(features["input_mask"], features.get("part_starts"))
    sums = {
        "masked_lm_loss": ops.sum(term_weights * losses),
        "masked_lm_correct": ops.sum(term_weights * correct),
        "masked_lm_weight": ops.sum(term_weights),
        "examples": ops.sum(sequences),
    }
    if "next_sentence_logits" in outputs:
        labels = ops.reshape(features["next_sentence_labels"], (-1,))
        losses, correct = cross_entropy_and_hits(outputs["next_sentence_logits"], labels)
        sums["next_sentence_loss"] = ops.sum(sequences * losses)
        sums["next_sentence_correct"] = ops.sum(sequences * correct)
    return sums


def total_loss(sums: dict[str, tf.Tensor], masked_lm_weight: tf.Tensor | None = None,
               examples: tf.Tensor | None = None) -> tf.Tensor:
    """The loss to minimise: Σ(w·l) / (Σw + 1e-5) + mean next sentence loss.

    Args:
        sums: from `pretraining_sums`, of one batch or added up over several.
        masked_lm_weight: Σw of the whole batch, where `sums` is one replica's part or one of several micro-batches;
            the parts' losses then add up to the whole batch's.
        examples: sequences of the whole batch, likewise.

    Returns:
        float32 scalar.
    """
    masked_lm_weight = sums["masked_lm_weight"] if masked_lm_weight is None else masked_lm_weight
    examples = sums["examples"] if examples is None else examples
    loss = sums["masked_lm_loss"] / (masked_lm_weight + WEIGHT_EPSILON)
    if "next_sentence_loss" in sums:
        loss = loss + sums["next_sentence_loss"] / examples
    return loss

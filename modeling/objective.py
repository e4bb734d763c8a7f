"""The pre-training objective: masked words plus next sentence (the release's `run_pretraining`).

Everything is a sum over a batch, with the divisor apart, so that sums of replicas and of accumulated batches can be
added before they are divided: the result is then that of one large batch on one device.
"""

import keras
from keras import ops

# The release's guard against a batch without predictions.
WEIGHT_EPSILON = 1e-5


def masked_lm_losses(logits, ids):
    """Cross entropy of each prediction: float [batch, predictions, vocab], int [batch, predictions] to float32."""
    return _cross_entropy(logits, ids)[0]


def next_sentence_losses(logits, labels):
    """Cross entropy of each row: float [batch, 2], int [batch, 1] or [batch] to float32 [batch]."""
    return _cross_entropy(logits, ops.reshape(labels, (-1,)))[0]


def pretraining_sums(outputs, features):
    """Losses and right answers of a batch, summed.

    Args:
        outputs: what PretrainingModel returns.
        features: dict with `masked_lm_ids`, `masked_lm_weights`, `next_sentence_labels` and `input_mask`, as the
            records hold them. A row whose mask is zero throughout completes a batch and does not count.

    Returns:
        dict of float32 scalars: masked_lm_loss, masked_lm_correct and masked_lm_weight, each weighted; where the
        outputs have it, next_sentence_loss and next_sentence_correct; examples, the rows that count.
    """
    losses, correct = _cross_entropy(outputs["masked_lm_logits"], features["masked_lm_ids"])
    weights = ops.cast(features["masked_lm_weights"], "float32")
    rows = ops.cast(features["input_mask"][:, 0], "float32")
    sums = {
        "masked_lm_loss": ops.sum(weights * losses),
        "masked_lm_correct": ops.sum(weights * correct),
        "masked_lm_weight": ops.sum(weights),
        "examples": ops.sum(rows),
    }
    if "next_sentence_logits" in outputs:
        labels = ops.reshape(features["next_sentence_labels"], (-1,))
        losses, correct = _cross_entropy(outputs["next_sentence_logits"], labels)
        sums["next_sentence_loss"] = ops.sum(rows * losses)
        sums["next_sentence_correct"] = ops.sum(rows * correct)
    return sums


def total_loss(sums, masked_lm_weight=None, examples=None):
    """The loss that is minimised: Σ(w·l) / (Σw + 1e-5) + mean next-sentence loss.

    Args:
        sums: what `pretraining_sums` returned, of one batch or added up over several.
        masked_lm_weight: Σw of the whole batch, where `sums` is one replica's part or one of several micro-batches;
            then the parts' losses add up to the whole batch's.
        examples: rows of the whole batch, likewise.

    Returns:
        float32 scalar.
    """
    masked_lm_weight = sums["masked_lm_weight"] if masked_lm_weight is None else masked_lm_weight
    examples = sums["examples"] if examples is None else examples
    loss = sums["masked_lm_loss"] / (masked_lm_weight + WEIGHT_EPSILON)
    if "next_sentence_loss" in sums:
        loss = loss + sums["next_sentence_loss"] / examples
    return loss


def _cross_entropy(logits, labels):
    """Loss and rightness: [..., classes], int [...] to two of float32 [...].

    On a CPU, TensorFlow's own loss takes six times as long as its softmax. Here the loss is derived from the softmax
    p: with b the best class, log Σ exp(logits) is logits[b] - log p[b], and p[b] is at least 1 / classes, so nothing
    underflows. The gradient is p, less one at the label.
    """
    shape = ops.shape(labels)
    logits = ops.cast(ops.reshape(logits, (-1, logits.shape[-1])), "float32")
    labels = ops.cast(ops.reshape(labels, (-1,)), "int32")
    best = _argmax(logits)

    @ops.custom_gradient
    def losses_of(logits):
        p = ops.softmax(logits)

        def gradient(upstream):
            at_label = (_pick(p, labels) - 1.0) * upstream
            return ops.scatter_update(p * upstream[:, None], _rows_and(labels), at_label)

        return _pick(logits, best) - ops.log(_pick(p, best)) - _pick(logits, labels), gradient

    return ops.reshape(losses_of(logits), shape), ops.reshape(ops.cast(best == labels, "float32"), shape)


if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    def _argmax(values):
        """int32 [rows]: the first of the greatest. Keras' own orders -0.0 before 0.0, in six more passes."""
        return tf.argmax(values, axis=-1, output_type=tf.int32)

else:

    def _argmax(values):
        """int32 [rows]: the first of the greatest."""
        return ops.cast(ops.argmax(values, axis=-1), "int32")


def _pick(values, columns):
    """One value a row: [rows, classes], int [rows] to [rows]."""
    return ops.take_along_axis(values, columns[:, None], axis=1)[:, 0]


def _rows_and(columns):
    return ops.stack([ops.arange(ops.shape(columns)[0], dtype="int32"), columns], axis=1)

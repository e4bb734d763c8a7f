"""The network of extractive question answering: two scores for each token (paper, section 4.2)."""

from collections.abc import Mapping

import keras
import tensorflow as tf

from modeling.config import BertConfig
from modeling.losses import cross_entropy
from modeling.models import QuestionAnsweringModel
from tasks.network import row_weights

# Added to logits at padding: no probability is left there.
_NOT_A_TOKEN = -1e9


class SquadNetwork:
    """The model and its loss (`tasks.task.Network`)."""

    packs = True

    def model(self, config: BertConfig, dtype: str, unpad: bool) -> keras.Model:
        """Returns start_logits and end_logits, float32 [rows, seq]."""
        return QuestionAnsweringModel(config, unpad=unpad, dtype=dtype)

    def term_weights(self, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """1 for each real row: float32 [rows]."""
        return row_weights(batch)

    def losses(self, outputs: Mapping[str, tf.Tensor], batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Mean of the cross entropies of the first and the last position: float32 [rows].

        The release's softmax includes padding. This one does not, so that a loss does not depend on how far a batch is
        padded. In packed rows each example has one over its own tokens: float32 [rows * slots].
        """
        tokens, first = batch["input_mask"], tf.constant(0)
        if "part_starts" in batch:
            first = tf.reshape(batch["part_starts"], [-1])
            numbers = tf.range(1, tf.shape(batch["part_starts"])[1] + 1)
            tokens = tf.cast(tokens[:, None] == numbers[:, None], tf.int32)  # [rows, slots, length]
        bias = _NOT_A_TOKEN * (1.0 - tf.cast(tokens, tf.float32))
        start, end = (cross_entropy(_own_scores(outputs[f"{side}_logits"], bias),
                                    tf.reshape(batch[f"{side}_positions"], [-1]) + first)
                      for side in ("start", "end"))
        return (start + end) / 2


def _own_scores(logits: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Scores float32 [rows, length] of each sequence's own tokens: [rows, length], or [rows * slots, length]."""
    return logits + bias if len(bias.shape) == 2 else tf.reshape(logits[:, None] + bias, [-1, logits.shape[-1]])

"""The network of a classification or a regression: a layer on the pooled output (paper, section 4.1)."""

from collections.abc import Mapping

import keras
import tensorflow as tf

from modeling.config import BertConfig
from modeling.losses import cross_entropy
from modeling.models import ClassificationModel
from tasks.network import row_weights


class ClassificationNetwork:
    """The model and its loss (`tasks.task.Network`).

    Args:
        num_labels: number of labels; None for a regression.
    """

    packs = True

    def __init__(self, num_labels: int | None) -> None:
        self.num_labels = num_labels

    def model(self, config: BertConfig, dtype: str, unpad: bool) -> keras.Model:
        """Returns logits float32 [rows, labels], or [rows, 1] for a regression."""
        return ClassificationModel(config, self.num_labels or 1, unpad=unpad, dtype=dtype)

    def term_weights(self, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """1 for each real row: float32 [rows]."""
        return row_weights(batch)

    def losses(self, outputs: Mapping[str, tf.Tensor], batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Cross entropy, as in the release; the squared error for a regression: float32 [rows]."""
        truths = tf.reshape(batch["label_ids"], [-1])
        if self.num_labels is None:
            return tf.square(outputs["logits"][:, 0] - tf.cast(truths, tf.float32))
        return cross_entropy(outputs["logits"], truths)

"""The network of multiple choice: a score for each choice, softmax over them (paper, section 4.4)."""

from collections.abc import Mapping

import keras
import tensorflow as tf

from modeling.config import BertConfig
from modeling.losses import cross_entropy
from modeling.models import MultipleChoiceModel
from tasks.network import row_weights


class MultipleChoiceNetwork:
    """The model and its loss (`tasks.task.Network`)."""

    packs = True

    def model(self, config: BertConfig, dtype: str, unpad: bool) -> keras.Model:
        """Returns logits float32 [rows, choices]."""
        return MultipleChoiceModel(config, unpad=unpad, dtype=dtype)

    def term_weights(self, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """1 for each real question: float32 [rows]."""
        return row_weights(batch)

    def losses(self, outputs: Mapping[str, tf.Tensor], batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Cross entropy over the choices of each question: float32 [rows]."""
        return cross_entropy(outputs["logits"], tf.reshape(batch["label_ids"], [-1]))

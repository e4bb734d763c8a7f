"""The networks of named entities: a layer on the encoder, or a BiLSTM on the frozen encoder (paper, section 5.3)."""

from collections.abc import Mapping

import keras
import tensorflow as tf

from modeling.config import BertConfig
from modeling.feature_tagger import FeatureTaggerModel
from modeling.losses import cross_entropy
from modeling.models import TokenClassificationModel
from tasks.ner.files import NerSettings
from tasks.network import row_weights


class NerNetwork:
    """The model and its loss (`tasks.task.Network`).

    Args:
        settings: whether the encoder is frozen, and the BiLSTM on it.
        num_labels: number of tags.
    """

    def __init__(self, settings: NerSettings, num_labels: int) -> None:
        self.settings = settings
        self.num_labels = num_labels
        self.packs = not settings.feature_based  # a BiLSTM reads on from one sequence to the next

    def model(self, config: BertConfig, dtype: str, unpad: bool) -> keras.Model:
        """Returns logits float32 [rows, seq, labels]."""
        if not self.settings.feature_based:
            return TokenClassificationModel(config, self.num_labels, unpad=unpad, dtype=dtype)
        return FeatureTaggerModel(config, self.num_labels, self.settings.features, self.settings.lstm_size,
                                  unpad=unpad, dtype=dtype)

    def term_weights(self, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """1 for each labelled word of a real row: float32 [rows * seq]."""
        labelled = tf.cast(batch["token_labels"] >= 0, tf.float32)
        if "part_starts" in batch:  # there is no token of an example that is not real
            return tf.reshape(labelled, [-1])
        return tf.reshape(labelled * row_weights(batch)[:, None], [-1])

    def losses(self, outputs: Mapping[str, tf.Tensor], batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Cross entropy at each position: float32 [rows * seq]."""
        labels = tf.maximum(batch["token_labels"], 0)  # any label will do where the weight is 0
        return tf.reshape(cross_entropy(outputs["logits"], labels), [-1])

"""Whole models: an encoder and heads for a purpose."""

import keras

from modeling.encoder import BertEncoder
from modeling.heads import PretrainingHeads


class PretrainingModel(keras.Model):
    """BERT as it is pre-trained: masked words and, unless left out, the next sentence (paper, section 3.1).

    Args:
        config: BertConfig.
        next_sentence: False leaves the second task out (paper, table 5).
        skip_padding: see BertEncoder.
        dtype: Keras dtype policy, as "float32" or "mixed_bfloat16": variables stay float32.

    Call:
        features: dict with `input_ids`, `input_mask`, `segment_ids`, int [batch, seq], and `masked_lm_positions`,
            int [batch, predictions], as the records hold them; other keys are ignored.
        dropout_seed: int32 [2], one per step and replica; None means no dropout.

    Returns:
        dict: masked_lm_logits float32 [batch, predictions, vocab]; next_sentence_logits float32 [batch, 2].
    """

    def __init__(self, config, next_sentence=True, skip_padding=False, dtype=None):
        super().__init__(name="pretraining", dtype=dtype)
        self.config = config
        # Built here, outside of any name scope: variables are `bert/...` and `cls/...`, as in the release.
        self.bert = BertEncoder(config, skip_padding=skip_padding, dtype=dtype)
        self.cls = PretrainingHeads(config, next_sentence=next_sentence, dtype=dtype)
        self.built = True

    def call(self, features, dropout_seed=None):
        encoded = self.bert(
            features["input_ids"], features["input_mask"], features["segment_ids"], dropout_seed=dropout_seed
        )
        return self.cls(encoded, features["masked_lm_positions"], self.bert.embeddings.word_embeddings)


def named_variables(model):
    """A model's trainable variables by their names in the release's checkpoints (without `:0`).

    Args:
        model: a Keras model or layer whose encoder was built outside of any name scope.

    Returns:
        dict: `bert/encoder/layer_0/attention/self/query/kernel` and so on to Keras variables.
    """
    return {variable.path: variable for variable in model.trainable_variables}

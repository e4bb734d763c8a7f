"""Whole models: an encoder and heads for a purpose."""

import keras
from keras import ops

from modeling.encoder import BertEncoder
from modeling.heads import LinearHead, PretrainingHeads


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


class _FineTuningModel(keras.Model):
    """An encoder and one linear layer.

    Args:
        config: BertConfig.
        units: scores a vector.
        scope, dropout: see LinearHead.
        skip_padding: see BertEncoder.
        dtype: Keras dtype policy of the encoder; the head computes in float32.

    Call:
        features: dict with `input_ids`, `input_mask`, `segment_ids`, int [batch, seq]; other keys are ignored.
        dropout_seed: int32 [2], one per step and replica; None means no dropout.
    """

    def __init__(self, config, units, scope=(), dropout=0.0, skip_padding=False, dtype=None):
        super().__init__(dtype=dtype)
        self.config = config
        # Built here, outside of any name scope, so that variables have the release's names.
        self.bert = BertEncoder(config, skip_padding=skip_padding, dtype=dtype)
        self.head = LinearHead(units, config, scope, dropout)
        self.built = True

    def encode(self, features, dropout_seed):
        return self.bert(
            features["input_ids"], features["input_mask"], features["segment_ids"], dropout_seed=dropout_seed)


class ClassificationModel(_FineTuningModel):
    """Scores of classes for a sentence or a pair; one class is a regression (paper, figure 4 a and b).

    Returns:
        dict: logits float32 [batch, num_labels].
    """

    def __init__(self, config, num_labels, skip_padding=False, dtype=None):
        super().__init__(config, num_labels, (), config.hidden_dropout_prob, skip_padding, dtype)

    def call(self, features, dropout_seed=None):
        return {"logits": self.head(self.encode(features, dropout_seed)["pooled_output"], seed=dropout_seed)}


class MultipleChoiceModel(_FineTuningModel):
    """One score for each of several continuations (paper, section 4.4).

    Call:
        features: `input_ids` and so on, int [batch, choices, seq].

    Returns:
        dict: logits float32 [batch, choices].
    """

    def __init__(self, config, skip_padding=False, dtype=None):
        super().__init__(config, 1, ("cls", "choice"), config.hidden_dropout_prob, skip_padding, dtype)

    def call(self, features, dropout_seed=None):
        batch, choices, seq = ops.shape(features["input_ids"])
        flat = {name: ops.reshape(features[name], (-1, seq)) for name in ("input_ids", "input_mask", "segment_ids")}
        scores = self.head(self.encode(flat, dropout_seed)["pooled_output"], seed=dropout_seed)
        return {"logits": ops.reshape(scores, (batch, choices))}


class QuestionAnsweringModel(_FineTuningModel):
    """Scores of each token as the answer's first and last (paper, figure 4 c).

    Returns:
        dict: start_logits and end_logits, float32 [batch, seq].
    """

    def __init__(self, config, skip_padding=False, dtype=None):
        super().__init__(config, 2, ("cls", "squad"), 0.0, skip_padding, dtype)

    def call(self, features, dropout_seed=None):
        logits = self.head(self.encode(features, dropout_seed)["sequence_output"])
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}


class TokenClassificationModel(_FineTuningModel):
    """Scores of labels for each token (paper, figure 4 d).

    Returns:
        dict: logits float32 [batch, seq, num_labels].
    """

    def __init__(self, config, num_labels, skip_padding=False, dtype=None):
        super().__init__(config, num_labels, ("cls", "ner"), config.hidden_dropout_prob, skip_padding, dtype)

    def call(self, features, dropout_seed=None):
        return {"logits": self.head(self.encode(features, dropout_seed)["sequence_output"], seed=dropout_seed)}


def named_variables(model, trainable=True):
    """A model's variables by their names in the release's checkpoints (without `:0`).

    Args:
        model: a Keras model or layer whose encoder was built outside of any name scope.
        trainable: False adds those that are not trained, as of a frozen encoder.

    Returns:
        dict: `bert/encoder/layer_0/attention/self/query/kernel` and so on to Keras variables.
    """
    return {variable.path: variable for variable in (model.trainable_weights if trainable else model.weights)}

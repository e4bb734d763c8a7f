"""Whole models: an encoder and the heads of one purpose."""

import keras
import tensorflow as tf
from keras import ops

from modeling.config import BertConfig
from modeling.encoder import BertEncoder
from modeling.head_table import HEADS
from modeling.heads import LinearHead, PretrainingHeads

Features = dict[str, tf.Tensor]
Outputs = dict[str, tf.Tensor]


class PretrainingModel(keras.Model):
    """BERT as it is pre-trained: masked words and, unless left out, the next sentence (paper, section 3.1).

    Args:
        config: BertConfig.
        next_sentence: False leaves the second task out (paper, table 5).
        unpad: see BertEncoder.
        dtype: Keras dtype policy, such as "float32" or "mixed_bfloat16"; variables stay float32.

    Call:
        features: dict with `input_ids`, `input_mask`, `segment_ids`, int [batch, seq], and `masked_lm_positions`,
            int [batch, predictions], as the records hold them; with `part_starts` packed rows, whose masked positions
            are those in the row (`modeling.packed_rows`). Other keys are ignored.
        dropout_seed: int32 [2], one per step and replica; None means no dropout.
        words_only: predict only the slots that hold a word, those with `masked_lm_weights`: a short row leaves most of
            its slots empty. Their number depends on the data, so this does not work under XLA.

    Returns:
        dict: masked_lm_logits float32 [batch, predictions, vocab]; next_sentence_logits float32 [batch, 2], or
        [batch * parts, 2]. With `words_only` masked_lm_logits [words, vocab] and masked_lm_slots int [words], the
        numbers of the slots with a word among all of them.
    """

    def __init__(self, config: BertConfig, next_sentence: bool = True, unpad: bool = False,
                 dtype: str | None = None) -> None:
        super().__init__(name="pretraining", dtype=dtype)
        self.config = config
        # Built here, outside of any name scope: variables are `bert/...` and `cls/...`, as in the release.
        self.bert = BertEncoder(config, unpad=unpad, dtype=dtype)
        self.cls = PretrainingHeads(config, next_sentence=next_sentence, dtype=dtype)
        self.built = True

    def call(self, features: Features, dropout_seed: tf.Tensor | None = None, words_only: bool = False
             ) -> Outputs:
        encoded = self.bert(features["input_ids"], features["input_mask"], features["segment_ids"],
                            dropout_seed=dropout_seed, part_starts=features.get("part_starts"),
                            positions=features["masked_lm_positions"])
        slots = None
        if words_only:
            slots = ops.cast(ops.nonzero(ops.reshape(features["masked_lm_weights"], (-1,)) > 0)[0], "int32")
        return self.cls(encoded, self.bert.embeddings.word_embeddings, slots=slots)


class FineTuningModel(keras.Model):
    """An encoder and one linear layer.

    Args:
        config: BertConfig.
        head: key of HEADS.
        units: outputs of the linear layer.
        dropout: rate before the linear layer.
        unpad: see BertEncoder.
        dtype: Keras dtype policy of the encoder; the head computes in float32.

    Call:
        features: dict with `input_ids`, `input_mask`, `segment_ids`, int [batch, seq], and `part_starts`, int [batch,
            parts], where rows are packed (`modeling.packed_rows`); other keys are ignored.
        dropout_seed: int32 [2], one per step and replica; None means no dropout.
    """

    def __init__(self, config: BertConfig, head: str, units: int, dropout: float, unpad: bool = False,
                 dtype: str | None = None) -> None:
        super().__init__(dtype=dtype)
        self.config = config
        # Built here, outside of any name scope, so that variables have the release's names.
        self.bert = BertEncoder(config, unpad=unpad, dtype=dtype)
        self.head = LinearHead(units, config, HEADS[head].scope, dropout)
        self.built = True

    def encode(self, features: Features, dropout_seed: tf.Tensor | None) -> tf.Tensor:
        """The final vector of each token: float [batch, seq, hidden]."""
        return self.bert(features["input_ids"], features["input_mask"], features["segment_ids"],
                         dropout_seed=dropout_seed, part_starts=features.get("part_starts"))["sequence_output"]

    def pool(self, features: Features, dropout_seed: tf.Tensor | None) -> tf.Tensor:
        """The pooled vector of each sequence: float [sequences, hidden]. The last layer computes nothing else."""
        ids = features["input_ids"]
        return self.bert(ids, features["input_mask"], features["segment_ids"], dropout_seed=dropout_seed,
                         part_starts=features.get("part_starts"), positions=ids[:, :0])["pooled_output"]


class ClassificationModel(FineTuningModel):
    """Scores of classes for a sentence or a pair; one class is a regression (paper, figure 4 a and b).

    Returns:
        dict: logits float32 [batch, num_labels], or [batch * parts, num_labels].
    """

    def __init__(self, config: BertConfig, num_labels: int, unpad: bool = False, dtype: str | None = None) -> None:
        super().__init__(config, "classification", num_labels, config.hidden_dropout_prob, unpad, dtype)

    def call(self, features: Features, dropout_seed: tf.Tensor | None = None) -> Outputs:
        return {"logits": self.head(self.pool(features, dropout_seed), seed=dropout_seed)}


class MultipleChoiceModel(FineTuningModel):
    """One score for each of several continuations (paper, section 4.4).

    Call:
        features: `input_ids`, `input_mask` and `segment_ids`, int [batch, choices, seq]; or packed, int [batch, seq]
            and `part_starts` int [batch, questions, choices].

    Returns:
        dict: logits float32 [batch, choices], or [batch * questions, choices].
    """

    def __init__(self, config: BertConfig, unpad: bool = False, dtype: str | None = None) -> None:
        super().__init__(config, "choice", 1, config.hidden_dropout_prob, unpad, dtype)

    def call(self, features: Features, dropout_seed: tf.Tensor | None = None) -> Outputs:
        packed = "part_starts" in features
        choices = ops.shape(features["part_starts"])[2] if packed else ops.shape(features["input_ids"])[1]
        scores = self.head(self.pool(_without_choices(features), dropout_seed), seed=dropout_seed)
        return {"logits": ops.reshape(scores, (-1, choices))}


class QuestionAnsweringModel(FineTuningModel):
    """Scores of each token as the first and as the last of the answer (paper, figure 4 c).

    Returns:
        dict: start_logits and end_logits, float32 [batch, seq].
    """

    def __init__(self, config: BertConfig, unpad: bool = False, dtype: str | None = None) -> None:
        super().__init__(config, "squad", 2, 0.0, unpad, dtype)

    def call(self, features: Features, dropout_seed: tf.Tensor | None = None) -> Outputs:
        logits = self.head(self.encode(features, dropout_seed))
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}


class TokenClassificationModel(FineTuningModel):
    """Scores of labels for each token (paper, figure 4 d).

    Returns:
        dict: logits float32 [batch, seq, num_labels].
    """

    def __init__(self, config: BertConfig, num_labels: int, unpad: bool = False, dtype: str | None = None) -> None:
        super().__init__(config, "ner", num_labels, config.hidden_dropout_prob, unpad, dtype)

    def call(self, features: Features, dropout_seed: tf.Tensor | None = None) -> Outputs:
        return {"logits": self.head(self.encode(features, dropout_seed), seed=dropout_seed)}


def _without_choices(features: Features) -> Features:
    """Each choice as a row, or as a part of a packed row."""
    if "part_starts" in features:
        starts = features["part_starts"]
        return {**features, "part_starts": ops.reshape(starts, (ops.shape(starts)[0], -1))}
    seq = ops.shape(features["input_ids"])[-1]
    return {name: ops.reshape(features[name], (-1, seq)) for name in ("input_ids", "input_mask", "segment_ids")}


def named_variables(model: keras.Layer) -> dict[str, keras.Variable]:
    """The trainable variables of a model by their names in the release's checkpoints (without `:0`).

    Args:
        model: a Keras model or layer whose encoder was built outside of any name scope.

    Returns:
        dict, `bert/encoder/layer_0/attention/self/query/kernel` and so on to Keras variables.
    """
    return {variable.path: variable for variable in model.trainable_weights}


def all_variables(model: keras.Layer) -> dict[str, keras.Variable]:
    """As `named_variables`, with the variables that are not trained, such as a frozen encoder's."""
    return {variable.path: variable for variable in model.weights}

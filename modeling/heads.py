"""Heads on the encoder: masked words and the next sentence in pre-training, one linear layer in fine-tuning."""

import contextlib

import keras
import tensorflow as tf
from keras import ops

from modeling.config import BertConfig
from modeling.dropout import Dropout
from modeling.layers import Dense, LayerNorm, activation, add_bias, initializer, matmul_transposed


class Transform(keras.layers.Layer):
    """Dense, activation, LayerNorm, before the vocabulary."""

    def __init__(self, config: BertConfig, name: str = "transform", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.dense = Dense(config.hidden_size, config.hidden_size, config, dtype=dtype)
        self.norm = LayerNorm(config.hidden_size, config.layer_norm_eps, dtype=dtype)
        self.activation = activation(config.hidden_act)

    def build(self, input_shape: object = None) -> None:
        self.dense.build()
        self.norm.build()

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.norm(self.activation(self.dense(x)))


class MaskedLmHead(keras.layers.Layer):
    """Scores of every word at some positions: the product with the word embeddings, plus a bias per word.

    Call:
        sequence: float [..., hidden], the final vectors at these positions.
        word_embeddings: float [vocab, hidden], the encoder's table.

    Returns:
        float32 [..., vocab].
    """

    def __init__(self, config: BertConfig, name: str = "predictions", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.transform = Transform(config, dtype=dtype)

    def build(self, input_shape: object = None) -> None:
        self.transform.build()
        self.output_bias = self.add_weight(shape=(self.config.vocab_size,), initializer="zeros", name="output_bias")

    def call(self, sequence: tf.Tensor, word_embeddings: tf.Tensor) -> tf.Tensor:
        hidden = self.transform(ops.reshape(sequence, (-1, self.config.hidden_size)))
        table = ops.cast(word_embeddings, self.compute_dtype)
        logits = add_bias(matmul_transposed(hidden, table), self.output_bias)
        return ops.reshape(ops.cast(logits, "float32"), (*ops.shape(sequence)[:-1], self.config.vocab_size))


class NextSentenceHead(keras.layers.Layer):
    """Whether the second segment continues the first (class 0) or is from elsewhere (class 1).

    Call:
        pooled: float [sequences, hidden].

    Returns:
        float32 [sequences, 2].
    """

    def __init__(self, config: BertConfig, name: str = "seq_relationship", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.config = config

    def build(self, input_shape: object = None) -> None:
        self.output_weights = self.add_weight(
            shape=(2, self.config.hidden_size), initializer=initializer(self.config), name="output_weights"
        )
        self.output_bias = self.add_weight(shape=(2,), initializer="zeros", name="output_bias", autocast=False)

    def call(self, pooled: tf.Tensor) -> tf.Tensor:
        return ops.cast(matmul_transposed(pooled, self.output_weights), "float32") + self.output_bias


class PretrainingHeads(keras.layers.Layer):
    """Both pre-training heads under the release's name, `cls`.

    Args:
        next_sentence: False leaves the second head out.

    Call:
        encoded: of BertEncoder, at the masked positions.
        word_embeddings: float [vocab, hidden].
        slots: int [words], the only masked positions to predict, by their numbers in the batch; None means all.
    """

    def __init__(self, config: BertConfig, next_sentence: bool = True, name: str = "cls",
                 dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.predictions = MaskedLmHead(config, dtype=dtype)
        self.seq_relationship = NextSentenceHead(config, dtype=dtype) if next_sentence else None
        self.build()

    def build(self, input_shape: object = None) -> None:
        self.predictions.build()
        if self.seq_relationship is not None:
            self.seq_relationship.build()

    def call(self, encoded: dict, word_embeddings: tf.Tensor, slots: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        outputs, sequence = {}, encoded["sequence_output"]
        if slots is not None:
            outputs["masked_lm_slots"] = slots
            sequence = ops.take(ops.reshape(sequence, (-1, sequence.shape[-1])), slots, axis=0)
        outputs["masked_lm_logits"] = self.predictions(sequence, word_embeddings)
        if self.seq_relationship is not None:
            outputs["next_sentence_logits"] = self.seq_relationship(encoded["pooled_output"])
        return outputs


class LinearHead(keras.layers.Layer):
    """Dropout and one linear layer in float32: all that fine-tuning adds (paper, section 3.2).

    Args:
        units: outputs per vector.
        config: sizes and initialiser.
        scope: what precedes `output_weights` and `output_bias` in the variables' names, as in the release: "" for
            classification and "cls/squad/" for answers.
        dropout: rate; 0 for none.

    Call:
        x: float [..., hidden].
        seed: dropout's, or None.

    Returns:
        float32 [..., units].
    """

    def __init__(self, units: int, config: BertConfig, scope: str = "", dropout: float = 0.0) -> None:
        super().__init__(name="head", dtype="float32")
        self.dropout = Dropout(dropout, "head")
        # Made here and not in build(), whose name scope would precede the release's names.
        with contextlib.ExitStack() as scopes:
            for part in filter(None, scope.split("/")):
                scopes.enter_context(keras.name_scope(part))
            self.output_weights = keras.Variable(
                initializer(config), shape=(units, config.hidden_size), dtype="float32", name="output_weights")
            self.output_bias = keras.Variable("zeros", shape=(units,), dtype="float32", name="output_bias")
        self.built = True

    def call(self, x: tf.Tensor, seed: tf.Tensor | None = None) -> tf.Tensor:
        rows = ops.reshape(self.dropout(ops.cast(x, "float32"), seed), (-1, x.shape[-1]))
        logits = matmul_transposed(rows, self.output_weights) + self.output_bias
        return ops.reshape(logits, (*ops.shape(x)[:-1], self.output_bias.shape[0]))

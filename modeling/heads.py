"""What stands on the encoder: masked words and the next sentence in pre-training, one linear layer in fine-tuning."""

import contextlib

import keras
from keras import ops

from modeling.dropout import Dropout
from modeling.layers import Dense, LayerNorm, activation, add_bias, initializer, matmul_transposed


class Transform(keras.layers.Layer):
    """Dense, activation, LayerNorm, before the vocabulary."""

    def __init__(self, config, name="transform", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.dense = Dense(config.hidden_size, config.hidden_size, config, dtype=dtype)
        self.norm = LayerNorm(config.hidden_size, config.layer_norm_eps, dtype=dtype)
        self.activation = activation(config.hidden_act)

    def build(self, input_shape=None):
        self.dense.build()
        self.norm.build()

    def call(self, x):
        return self.norm(self.activation(self.dense(x)))


class MaskedLmHead(keras.layers.Layer):
    """Scores of every word at some positions, by the word embeddings themselves and a bias a word.

    Call:
        sequence: float [batch, seq, hidden].
        positions: int [batch, predictions].
        word_embeddings: float [vocab, hidden], the encoder's table.

    Returns:
        float32 [batch, predictions, vocab].
    """

    def __init__(self, config, name="predictions", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.transform = Transform(config, dtype=dtype)

    def build(self, input_shape=None):
        self.transform.build()
        self.output_bias = self.add_weight(shape=(self.config.vocab_size,), initializer="zeros", name="output_bias")

    def call(self, sequence, positions, word_embeddings):
        batch, predictions = ops.shape(positions)
        hidden = self.transform(gather_positions(sequence, positions))
        table = ops.cast(word_embeddings, self.compute_dtype)
        logits = add_bias(matmul_transposed(hidden, table), self.output_bias)
        return ops.reshape(ops.cast(logits, "float32"), (batch, predictions, self.config.vocab_size))


class NextSentenceHead(keras.layers.Layer):
    """Is the second segment the continuation (class 0) or from elsewhere (class 1)?

    Call:
        pooled: float [batch, hidden].

    Returns:
        float32 [batch, 2].
    """

    def __init__(self, config, name="seq_relationship", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.config = config

    def build(self, input_shape=None):
        self.output_weights = self.add_weight(
            shape=(2, self.config.hidden_size), initializer=initializer(self.config), name="output_weights"
        )
        self.output_bias = self.add_weight(shape=(2,), initializer="zeros", name="output_bias", autocast=False)

    def call(self, pooled):
        return ops.cast(matmul_transposed(pooled, self.output_weights), "float32") + self.output_bias


class PretrainingHeads(keras.layers.Layer):
    """Both heads under the release's name, `cls`."""

    def __init__(self, config, next_sentence=True, name="cls", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.predictions = MaskedLmHead(config, dtype=dtype)
        self.seq_relationship = NextSentenceHead(config, dtype=dtype) if next_sentence else None
        self.build()

    def build(self, input_shape=None):
        self.predictions.build()
        if self.seq_relationship is not None:
            self.seq_relationship.build()

    def call(self, encoded, positions, word_embeddings):
        outputs = {"masked_lm_logits": self.predictions(encoded["sequence_output"], positions, word_embeddings)}
        if self.seq_relationship is not None:
            outputs["next_sentence_logits"] = self.seq_relationship(encoded["pooled_output"])
        return outputs


class LinearHead(keras.layers.Layer):
    """Dropout and one linear layer in float32: all that fine-tuning adds (paper, section 3.2).

    Args:
        units: scores a vector.
        config: sizes and initialiser.
        scope: name parts before `output_weights` and `output_bias`: none for classification and ("cls", "squad") for
            answers, as in the release.
        dropout: rate; 0 for none.

    Call:
        x: float [..., hidden].
        seed: dropout's, or None.

    Returns:
        float32 [..., units].
    """

    def __init__(self, units, config, scope=(), dropout=0.0):
        super().__init__(name="head", dtype="float32")
        self.dropout = Dropout(dropout, "head")
        # Made here and not in build(), whose name scope would stand before the release's names.
        with contextlib.ExitStack() as scopes:
            for part in scope:
                scopes.enter_context(keras.name_scope(part))
            self.output_weights = keras.Variable(
                initializer(config), shape=(units, config.hidden_size), dtype="float32", name="output_weights")
            self.output_bias = keras.Variable("zeros", shape=(units,), dtype="float32", name="output_bias")
        self.built = True

    def call(self, x, seed=None):
        rows = ops.reshape(self.dropout(ops.cast(x, "float32"), seed), (-1, x.shape[-1]))
        logits = matmul_transposed(rows, self.output_weights) + self.output_bias
        return ops.reshape(logits, (*ops.shape(x)[:-1], self.output_bias.shape[0]))


def gather_positions(sequence, positions):
    """Vectors at given positions of each row: [batch, seq, hidden], int [batch, n] to [batch * n, hidden]."""
    batch, seq, hidden = ops.shape(sequence)
    flat = ops.reshape(positions + ops.arange(batch, dtype=positions.dtype)[:, None] * seq, (-1,))
    return ops.take(ops.reshape(sequence, (-1, hidden)), flat, axis=0)

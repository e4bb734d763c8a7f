"""Token labels by a BiLSTM over the vectors of a frozen encoder (paper, section 5.3)."""

import keras
import tensorflow as tf
from keras import ops

from foundation.errors import BertError
from modeling.config import BertConfig
from modeling.dropout import Dropout
from modeling.encoder import BertEncoder
from modeling.layers import Dense
from modeling.packed_rows import gather_positions

# Rows of the paper's table 7: which layers are used, and how several become one vector.
LAYERS = {
    "embeddings": None,
    "second_to_last": slice(-2, -1),
    "last": slice(-1, None),
    "weighted_sum_last_four": slice(-4, None),
    "concat_last_four": slice(-4, None),
    "weighted_sum_all": slice(None),
}


class FeatureTaggerModel(keras.Model):
    """Scores of labels for each word, by a two-layer BiLSTM; the encoder is not trained.

    Only the vector of a word's first word piece goes into the BiLSTM, so that its steps are words.

    Args:
        config: BertConfig.
        num_labels: int.
        features: a key of LAYERS.
        lstm_size: units of each direction of each layer; the paper's 768.
        unpad: see BertEncoder.
        dtype: the encoder's Keras dtype policy. The BiLSTM computes in float32: its state is a long sum.

    Call:
        features: dict with `input_ids`, `input_mask`, `segment_ids` and `word_starts`, int [batch, seq], the last 1
            at the first word piece of each labelled word; other keys are ignored.
        dropout_seed: int32 [2], one per step and replica; None means no dropout. The encoder never has any.

    Returns:
        dict: logits float32 [batch, seq, num_labels], a word's at its first word piece; zero elsewhere.

    Raises:
        BertError: the encoder has fewer layers than `features` needs.
    """

    def __init__(self, config: BertConfig, num_labels: int, features: str = "concat_last_four", lstm_size: int = 768,
                 unpad: bool = False, dtype: str | None = None) -> None:
        super().__init__(name="feature_tagger", dtype=dtype)
        self.config = config
        self.features = features
        self.bert = BertEncoder(config, unpad=unpad, dtype=dtype)
        self.bert.trainable = False
        self.tagger = Tagger(config, num_labels, features, lstm_size)
        self.built = True

    def call(self, features: dict[str, tf.Tensor], dropout_seed: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        encoded = self.bert(features["input_ids"], features["input_mask"], features["segment_ids"])
        vectors = [encoded["embedding_output"]]
        if LAYERS[self.features] is not None:
            vectors = encoded["layer_outputs"][LAYERS[self.features]]
        vectors = [ops.stop_gradient(each) for each in vectors]
        return {"logits": self.tagger(vectors, features["word_starts"], dropout_seed=dropout_seed)}


class Tagger(keras.layers.Layer):
    """The trained part: the mix of layers, two BiLSTM layers, one linear layer.

    Dropout has the encoder's rate and is applied before each BiLSTM layer and before the linear layer.

    Call:
        vectors: list of float [batch, seq, hidden].
        word_starts: int [batch, seq].
        dropout_seed: see FeatureTaggerModel.

    Returns:
        float32 [batch, seq, num_labels].
    """

    def __init__(self, config: BertConfig, num_labels: int, features: str, lstm_size: int,
                 name: str = "tagger") -> None:
        super().__init__(name=name, dtype="float32")
        self.weighted = features.startswith("weighted_sum")
        self.num_layers = _num_layers(config, features)
        width = config.hidden_size * (self.num_layers if features.startswith("concat") else 1)
        self.widths = (width, 2 * lstm_size)
        self.lstms = [_bilstm(lstm_size, f"bilstm_{index}") for index in range(2)]
        self.dropouts = [Dropout(config.hidden_dropout_prob, f"tagger/{index}") for index in range(3)]
        self.output_dense = Dense(2 * lstm_size, num_labels, config, name="output", dtype="float32")
        self.build()

    def build(self, input_shape: object = None) -> None:
        if self.weighted:
            # Softmax weights and one scale, as ELMo mixes layers (Peters et al. 2018, section 3.2).
            self.layer_weights = self.add_weight(shape=(self.num_layers,), initializer="zeros", name="layer_weights")
            self.layer_scale = self.add_weight(shape=(), initializer="ones", name="layer_scale")
        for lstm, width in zip(self.lstms, self.widths):
            lstm.build((None, None, width))
        self.output_dense.build()

    def call(self, vectors: list[tf.Tensor], word_starts: tf.Tensor,
             dropout_seed: tf.Tensor | None = None) -> tf.Tensor:
        batch, seq = ops.shape(word_starts)
        is_word = word_starts > 0
        # The positions of words come first, in order, then all the others.
        at = ops.arange(seq, dtype="int32")[None, :]
        words = ops.sort(ops.where(is_word, at, at + seq), axis=1)
        mask = words < seq
        hidden = ops.concatenate(self._mixed(vectors), axis=-1)
        hidden = _gathered(hidden, words % seq)
        for lstm, dropout in zip(self.lstms, self.dropouts):
            hidden = lstm(dropout(hidden, dropout_seed), mask=mask)
        hidden = ops.reshape(self.dropouts[2](hidden, dropout_seed), (batch * seq, self.widths[1]))
        logits = ops.reshape(self.output_dense(hidden), (batch, seq, self.output_dense.units))
        # Back from the n-th word to its position.
        index = ops.maximum(ops.cumsum(ops.cast(is_word, "int32"), axis=1) - 1, 0)
        return _gathered(logits, index) * ops.cast(is_word, "float32")[:, :, None]

    def _mixed(self, vectors: list[tf.Tensor]) -> list[tf.Tensor]:
        """The vectors to concatenate for each token: the layers' own, or one weighted sum."""
        vectors = [ops.cast(each, "float32") for each in vectors]
        if not self.weighted:
            return vectors
        weights = ops.softmax(self.layer_weights) * self.layer_scale
        return [sum(weights[index] * each for index, each in enumerate(vectors))]


def _bilstm(units: int, name: str) -> keras.Layer:
    """Forward and backward LSTM (Hochreiter and Schmidhuber 1997), their results concatenated."""
    lstm = keras.layers.LSTM(units, return_sequences=True, name="lstm", dtype="float32")
    return keras.layers.Bidirectional(lstm, name=name, dtype="float32")


def _num_layers(config: BertConfig, features: str) -> int:
    """How many layers a choice of features uses."""
    taken = LAYERS[features]
    if taken is None:
        return 1
    if config.num_hidden_layers < -(taken.start or -1):
        raise BertError(f"--features={features} needs layer {-(taken.start or -1)} from the top, but the model has "
                        f"{config.num_hidden_layers} layers. Choose another of {', '.join(LAYERS)}.")
    return len(range(config.num_hidden_layers)[taken])


def _gathered(x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Vectors at given positions of each row: [batch, seq, size], int [batch, n] to [batch, n, size]."""
    return ops.reshape(gather_positions(x, positions), (*ops.shape(positions), x.shape[-1]))

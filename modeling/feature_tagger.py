"""Token labels by a BiLSTM over the vectors of a frozen encoder (paper, section 5.3)."""

import keras
from keras import ops

from foundation.errors import BertError
from modeling.dropout import Dropout
from modeling.encoder import BertEncoder
from modeling.heads import gather_positions
from modeling.layers import Dense

# Rows of the paper's table 7: which layers are taken, and how several become one vector.
LAYERS = {
    "embeddings": None,
    "second_to_last": slice(-2, -1),
    "last": slice(-1, None),
    "weighted_sum_last_four": slice(-4, None),
    "concat_last_four": slice(-4, None),
    "weighted_sum_all": slice(None),
}


class FeatureTaggerModel(keras.Model):
    """A score of every label at every word, by a two-layer BiLSTM; the encoder is not trained.

    Only the vector of a word's first piece goes into the BiLSTM, so that its steps are words.

    Args:
        config: BertConfig.
        num_labels: int.
        features: a key of LAYERS.
        lstm_size: units of each direction of each layer; the paper's 768.
        skip_padding: see BertEncoder.
        dtype: the encoder's Keras dtype policy. The BiLSTM computes in float32: its state is a long sum.

    Call:
        features: dict with `input_ids`, `input_mask`, `segment_ids` and `word_starts`, int [batch, seq], the last 1
            at the first piece of each word that is labelled; other keys are ignored.
        dropout_seed: int32 [2], one per step and replica; None means no dropout. The encoder has none.

    Returns:
        dict: logits float32 [batch, seq, num_labels], those of a word at its first piece; zero elsewhere.

    Raises:
        BertError: the encoder has fewer layers than `features` takes.
    """

    def __init__(self, config, num_labels, features="concat_last_four", lstm_size=768, skip_padding=False, dtype=None):
        super().__init__(name="feature_tagger", dtype=dtype)
        self.config = config
        self.features = features
        self.bert = BertEncoder(config, skip_padding=skip_padding, dtype=dtype)
        self.bert.trainable = False
        self.tagger = Tagger(config, num_labels, features, lstm_size)
        self.built = True

    def call(self, features, dropout_seed=None):
        encoded = self.bert(features["input_ids"], features["input_mask"], features["segment_ids"])
        vectors = [encoded["embedding_output"]]
        if LAYERS[self.features] is not None:
            vectors = encoded["layer_outputs"][LAYERS[self.features]]
        vectors = [ops.stop_gradient(each) for each in vectors]
        return {"logits": self.tagger(vectors, features["word_starts"], dropout_seed=dropout_seed)}


class Tagger(keras.layers.Layer):
    """What is trained: the mix of layers, two BiLSTM layers, a score a label.

    Dropout is at the encoder's rate, before each BiLSTM layer and before the scores.

    Call:
        vectors: list of float [batch, seq, hidden].
        word_starts: int [batch, seq].
        dropout_seed: as above.

    Returns:
        float32 [batch, seq, num_labels].
    """

    def __init__(self, config, num_labels, features, lstm_size, name="tagger"):
        super().__init__(name=name, dtype="float32")
        self.weighted = features.startswith("weighted_sum")
        self.num_layers = _num_layers(config, features)
        width = config.hidden_size * (self.num_layers if features.startswith("concat") else 1)
        self.widths = (width, 2 * lstm_size)
        self.lstms = [BiLstm(width, lstm_size, f"bilstm_{index}") for index, width in enumerate(self.widths)]
        self.dropouts = [Dropout(config.hidden_dropout_prob, f"tagger/{index}") for index in range(3)]
        self.output_dense = Dense(2 * lstm_size, num_labels, config, name="output", dtype="float32")
        self.build()

    def build(self, input_shape=None):
        if self.weighted:
            # Softmax weights and one scale, as ELMo mixes layers (Peters et al. 2018, section 3.2).
            self.layer_weights = self.add_weight(shape=(self.num_layers,), initializer="zeros", name="layer_weights")
            self.layer_scale = self.add_weight(shape=(), initializer="ones", name="layer_scale")
        for lstm in self.lstms:
            lstm.build()
        self.output_dense.build()

    def call(self, vectors, word_starts, dropout_seed=None):
        batch, seq = ops.shape(word_starts)
        is_word = word_starts > 0
        # The positions of words come first, in order; behind the last word stand the others.
        at = ops.arange(seq, dtype="int32")[None, :]
        words = ops.sort(ops.where(is_word, at, at + seq), axis=1)
        counts = ops.sum(ops.cast(is_word, "int32"), axis=1)
        hidden = ops.concatenate(self._mixed(vectors), axis=-1)
        hidden = _gathered(hidden, words % seq)
        for lstm, dropout in zip(self.lstms, self.dropouts):
            hidden = lstm(dropout(hidden, dropout_seed), counts)
        hidden = ops.reshape(self.dropouts[2](hidden, dropout_seed), (batch * seq, self.widths[1]))
        logits = ops.reshape(self.output_dense(hidden), (batch, seq, self.output_dense.units))
        # Back from the n-th word to its position.
        index = ops.maximum(ops.cumsum(ops.cast(is_word, "int32"), axis=1) - 1, 0)
        return _gathered(logits, index) * ops.cast(is_word, "float32")[:, :, None]

    def _mixed(self, vectors):
        """The vectors whose concatenation is a token's: as they are, or one weighted sum."""
        vectors = [ops.cast(each, "float32") for each in vectors]
        if not self.weighted:
            return vectors
        weights = ops.softmax(self.layer_weights) * self.layer_scale
        return [sum(weights[index] * each for index, each in enumerate(vectors))]


class BiLstm(keras.layers.Layer):
    """Forward and backward LSTM, their results side by side.

    Args:
        width: of a vector.
        units: of each direction.

    Call:
        x: float32 [batch, words, width].
        counts: int32 [batch], how many words there are; vectors behind them change nothing before them.

    Returns:
        float32 [batch, words, 2 * units].
    """

    def __init__(self, width, units, name):
        super().__init__(name=name, dtype="float32")
        self.forward, self.backward = (Lstm(width, units, name) for name in ("forward", "backward"))

    def build(self, input_shape=None):
        self.forward.build()
        self.backward.build()

    def call(self, x, counts):
        at, counts = ops.arange(ops.shape(x)[1], dtype="int32")[None, :], counts[:, None]
        reverse = ops.where(at < counts, counts - 1 - at, at)
        backward = _gathered(self.backward(_gathered(x, reverse)), reverse)
        return ops.concatenate([self.forward(x), backward], axis=-1)


class Lstm(keras.layers.Layer):
    """An LSTM in one direction (Hochreiter and Schmidhuber 1997), with Keras' gates and initial values.

    Keras' own layer holds a random generator among its variables, which a checkpoint would keep, and multiplies its
    inputs a step at a time.

    Call:
        x: float32 [batch, words, width].

    Returns:
        float32 [batch, words, units].
    """

    def __init__(self, width, units, name):
        super().__init__(name=name, dtype="float32")
        self.width, self.units = width, units
        self.steps = keras.layers.RNN(LstmCell(units), return_sequences=True, name="steps", dtype="float32")

    def build(self, input_shape=None):
        self.kernel = self.add_weight(shape=(self.width, 4 * self.units), initializer="glorot_uniform", name="kernel")
        self.bias = self.add_weight(shape=(4 * self.units,), initializer=_forget_bias, name="bias")
        self.steps.build((None, None, 4 * self.units))

    def call(self, x):
        return self.steps(ops.matmul(x, self.kernel) + self.bias)


class LstmCell(keras.layers.Layer):
    """One step, on inputs that are already multiplied by their kernel: float32 [batch, 4 * units]."""

    def __init__(self, units):
        super().__init__(name="cell", dtype="float32")
        self.state_size, self.output_size = (units, units), units

    def build(self, input_shape=None):
        units = self.output_size
        self.recurrent_kernel = self.add_weight(
            shape=(units, 4 * units), initializer="orthogonal", name="recurrent_kernel")

    def call(self, inputs, states, training=None):
        hidden, memory = states
        new, forget, candidate, output = ops.split(inputs + ops.matmul(hidden, self.recurrent_kernel), 4, axis=-1)
        memory = ops.sigmoid(forget) * memory + ops.sigmoid(new) * ops.tanh(candidate)
        hidden = ops.sigmoid(output) * ops.tanh(memory)
        return hidden, (hidden, memory)


def _forget_bias(shape, dtype=None):
    """0, but 1 for the forget gate, the second of four."""
    return ops.cast(ops.arange(shape[0]) // (shape[0] // 4) == 1, dtype)


def _num_layers(config, features):
    """How many layers a choice takes."""
    taken = LAYERS[features]
    if taken is None:
        return 1
    if config.num_hidden_layers < -(taken.start or -1):
        raise BertError(f"--features={features} takes layer {-(taken.start or -1)} from the top, and the model has "
                        f"{config.num_hidden_layers} layers. Choose another of {', '.join(LAYERS)}.")
    return len(range(config.num_hidden_layers)[taken])


def _gathered(x, positions):
    """Vectors at given positions of each row: [batch, seq, size], int [batch, n] to [batch, n, size]."""
    return ops.reshape(gather_positions(x, positions), (*ops.shape(positions), x.shape[-1]))

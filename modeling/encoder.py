"""The encoder: embeddings, post-LN Transformer layers, pooler (paper, section 3; Vaswani et al. 2017).

Layers nest and are named so that each variable's path is its name in the release's checkpoints, for example
`bert/encoder/layer_0/attention/self/query/kernel`.
"""

import keras
import tensorflow as tf
from keras import ops

from modeling.config import BertConfig
from modeling.dropout import Dropout
from modeling.layers import Dense, LayerNorm, activation, add_bias, initializer, matmul_transposed
from modeling.packed_rows import first_tokens, part_positions
from modeling.unpadding import Selection, TokenLayout, layout_of


class Embeddings(keras.layers.Layer):
    """Word + segment + position, LayerNorm, dropout.

    Call:
        input_ids, segment_ids: int [batch, seq].
        layout: which positions are tokens.
        seed: dropout's, or None.
        positions: int [batch, seq], the position of each token; None means 0, 1, 2 and so on.

    Returns:
        float [tokens, hidden].
    """

    def __init__(self, config: BertConfig, name: str = "embeddings", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.config = config
        self.norm = LayerNorm(config.hidden_size, config.layer_norm_eps, dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout_prob, "embeddings")

    def build(self, input_shape: object = None) -> None:
        config = self.config
        self.word_embeddings = self._table(config.vocab_size, "word_embeddings")
        self.token_type_embeddings = self._table(config.type_vocab_size, "token_type_embeddings")
        self.position_embeddings = self._table(config.max_position_embeddings, "position_embeddings")
        self.norm.build()

    def _table(self, rows: int, name: str) -> keras.Variable:
        # Not autocast: a few rows are looked up, then cast.
        return self.add_weight(
            shape=(rows, self.config.hidden_size), initializer=initializer(self.config), name=name, autocast=False
        )

    def call(self, input_ids: tf.Tensor, segment_ids: tf.Tensor, layout: TokenLayout, seed: tf.Tensor | None = None,
             positions: tf.Tensor | None = None) -> tf.Tensor:
        words = ops.take(self.word_embeddings, layout.flatten(input_ids), axis=0)
        segments = ops.take(self.token_type_embeddings, layout.flatten(segment_ids), axis=0)
        places = self._of_positions(layout, positions)
        return self.dropout(self.norm(words + segments + places), seed)

    def _of_positions(self, layout: TokenLayout, positions: tf.Tensor | None) -> tf.Tensor:
        if positions is not None:
            return ops.take(self.position_embeddings, layout.flatten(positions), axis=0)
        table = self.position_embeddings[: layout.seq]
        return layout.flatten(ops.broadcast_to(table, (layout.batch, layout.seq, self.config.hidden_size)))


class SelfAttention(keras.layers.Layer):
    """Scaled dot-product attention of several heads.

    Call:
        hidden: float [tokens, hidden].
        bias: float [batch, 1, 1 or seq, seq], 0 where attended and -10000 where not.
        layout: which positions are tokens.
        seed: dropout's, or None.
        wanted: the positions to compute; None means every token.
        own: float [wanted, hidden], the rows of hidden at these positions.

    Returns:
        float [tokens or wanted, hidden], the heads' results side by side.
    """

    def __init__(self, config: BertConfig, place: str, name: str = "self", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.config = config
        size = config.hidden_size
        self.query = Dense(size, size, config, name="query", dtype=dtype)
        self.key = Dense(size, size, config, name="key", dtype=dtype)
        self.value = Dense(size, size, config, name="value", dtype=dtype)
        self.dropout = Dropout(config.attention_probs_dropout_prob, f"{place}/self")

    def build(self, input_shape: object = None) -> None:
        self.query.build()
        self.key.build()
        self.value.build()

    def call(self, hidden: tf.Tensor, bias: tf.Tensor, layout: TokenLayout, seed: tf.Tensor | None = None,
             wanted: Selection | None = None, own: tf.Tensor | None = None) -> tf.Tensor:
        if wanted is None:
            query, key, value = self._heads(hidden, layout, self.query, self.key, self.value)
        else:
            (query,) = self._heads(own, wanted.layout, self.query)
            key, value = self._heads(hidden, layout, self.key, self.value)
            bias, layout = wanted.take_bias(bias), wanted.layout
        scores = matmul_transposed(query * self.config.head_size**-0.5, key)
        probabilities = self.dropout(ops.softmax(scores + bias), seed)  # [batch, heads, seq, seq]
        context = ops.transpose(ops.matmul(probabilities, value), (0, 2, 1, 3))  # [batch, seq, heads, head_size]
        context = ops.reshape(context, (layout.batch, layout.seq, self.config.hidden_size))
        return layout.flatten(context)

    def _heads(self, x: tf.Tensor, layout: TokenLayout, *projections: Dense) -> list[tf.Tensor]:
        """Each projection of x [tokens, hidden], by heads: [batch, heads, seq, head_size]."""
        # One product with the kernels side by side: x is read once and has one gradient.
        kernel = ops.concatenate([each.kernel for each in projections], axis=1)
        bias = ops.concatenate([each.bias for each in projections])
        joined = layout.restore(add_bias(ops.matmul(x, kernel), bias))
        heads = (layout.batch, layout.seq, len(projections), self.config.num_attention_heads, self.config.head_size)
        return ops.unstack(ops.transpose(ops.reshape(joined, heads), (2, 0, 3, 1, 4)))


class Residual(keras.layers.Layer):
    """The end of each half of a layer: dense, dropout, residual connection, LayerNorm.

    Call:
        x: float [tokens, inputs], the result of the half so far.
        residual: float [tokens, hidden], the input of the half.
        seed: dropout's, or None.
    """

    def __init__(self, inputs: int, config: BertConfig, place: str, name: str = "output",
                 dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.dense = Dense(inputs, config.hidden_size, config, dtype=dtype)
        self.norm = LayerNorm(config.hidden_size, config.layer_norm_eps, dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout_prob, f"{place}/output")

    def build(self, input_shape: object = None) -> None:
        self.dense.build()
        self.norm.build()

    def call(self, x: tf.Tensor, residual: tf.Tensor, seed: tf.Tensor | None = None) -> tf.Tensor:
        return self.norm(self.dropout(self.dense(x), seed) + residual)


class Attention(keras.layers.Layer):
    """The attention half of a layer."""

    def __init__(self, config: BertConfig, place: str, name: str = "attention", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.self_attention = SelfAttention(config, f"{place}/attention", dtype=dtype)
        self.output_block = Residual(config.hidden_size, config, f"{place}/attention", dtype=dtype)

    def build(self, input_shape: object = None) -> None:
        self.self_attention.build()
        self.output_block.build()

    def call(self, hidden: tf.Tensor, bias: tf.Tensor, layout: TokenLayout, seed: tf.Tensor | None = None,
             wanted: Selection | None = None) -> tf.Tensor:
        own = wanted.take(hidden) if wanted else hidden
        attended = self.self_attention(hidden, bias, layout=layout, seed=seed, wanted=wanted, own=own)
        return self.output_block(attended, own, seed=seed)


class Intermediate(keras.layers.Layer):
    """The first dense layer of the feed-forward half, which widens, and its activation."""

    def __init__(self, config: BertConfig, name: str = "intermediate", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.dense = Dense(config.hidden_size, config.intermediate_size, config, dtype=dtype)
        self.activation = activation(config.hidden_act)

    def build(self, input_shape: object = None) -> None:
        self.dense.build()

    def call(self, hidden: tf.Tensor) -> tf.Tensor:
        return self.activation(self.dense(hidden))


class EncoderLayer(keras.layers.Layer):
    """One post-LN Transformer layer.

    Args:
        index: its place in the encoder, from 0.

    Call:
        hidden: float [tokens, hidden].
        bias: float [batch, 1, 1 or seq, seq], 0 where attended and -10000 where not.
        layout: which positions are tokens.
        seed: dropout's, or None.
        wanted: the positions to compute; None means every token.

    Returns:
        float [tokens or wanted, hidden].
    """

    def __init__(self, config: BertConfig, index: int, dtype: str | None = None) -> None:
        super().__init__(name=f"layer_{index}", dtype=dtype)
        self.attention = Attention(config, self.name, dtype=dtype)
        self.intermediate = Intermediate(config, dtype=dtype)
        self.output_block = Residual(config.intermediate_size, config, self.name, dtype=dtype)

    def build(self, input_shape: object = None) -> None:
        self.attention.build()
        self.intermediate.build()
        self.output_block.build()

    def call(self, hidden: tf.Tensor, bias: tf.Tensor, layout: TokenLayout, seed: tf.Tensor | None = None,
             wanted: Selection | None = None) -> tf.Tensor:
        hidden = self.attention(hidden, bias, layout=layout, seed=seed, wanted=wanted)
        return self.output_block(self.intermediate(hidden), hidden, seed=seed)


class Encoder(keras.layers.Layer):
    """The stack of layers. Returns a list with the output of each, float [tokens, hidden]; of the last, where
    `wanted` is given, at these positions alone.
    """

    def __init__(self, config: BertConfig, name: str = "encoder", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.layers = [EncoderLayer(config, index, dtype=dtype) for index in range(config.num_hidden_layers)]

    def build(self, input_shape: object = None) -> None:
        for layer in self.layers:
            layer.build()

    def call(self, hidden: tf.Tensor, bias: tf.Tensor, layout: TokenLayout, seed: tf.Tensor | None = None,
             wanted: Selection | None = None) -> list[tf.Tensor]:
        outputs = []
        for layer in self.layers:
            last = layer is self.layers[-1]
            hidden = layer(hidden, bias, layout=layout, seed=seed, wanted=wanted if last else None)
            outputs.append(hidden)
        return outputs


class Pooler(keras.layers.Layer):
    """tanh of a dense layer on the first token's vector: float [sequences, hidden] to the same."""

    def __init__(self, config: BertConfig, name: str = "pooler", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.dense = Dense(config.hidden_size, config.hidden_size, config, dtype=dtype)

    def build(self, input_shape: object = None) -> None:
        self.dense.build()

    def call(self, first_token: tf.Tensor) -> tf.Tensor:
        return ops.tanh(self.dense(first_token))


class BertEncoder(keras.layers.Layer):
    """Token ids to vectors.

    Args:
        config: BertConfig.
        unpad: compute no dense layer at padding, whose vectors come out as zeros. Faster, but shapes then depend on
            data, which XLA does not allow. The dropout masks for a given seed then differ.
        dtype: Keras dtype policy, such as "float32" or "mixed_bfloat16".

    Call:
        input_ids: int [batch, seq].
        input_mask: int [batch, seq], 1 for a real token and 0 for padding; None means all ones. In packed rows the
            number of each token's part, from 1.
        segment_ids: int [batch, seq]; None means all zeros.
        dropout_seed: int32 [2], one per step and replica; None means no dropout.
        part_starts: int [batch, parts] for packed rows (`modeling.packed_rows`), where each part begins. A token
            then attends to its own part only, and positions restart at each part.
        positions: int [batch, n], the only ones whose final vectors are needed, besides the first of each sequence;
            None means all. The last layer then computes no others.

    Returns:
        dict, in the compute dtype: sequence_output [batch, seq, hidden], or [batch, n, hidden] at `positions`;
        pooled_output [batch, hidden], or [batch * parts, hidden]; without `positions` also embedding_output [batch,
        seq, hidden] and layer_outputs, a list of [batch, seq, hidden] that ends in sequence_output.
    """

    def __init__(self, config: BertConfig, unpad: bool = False, name: str = "bert",
                 dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.config, self.unpad = config, unpad
        self.embeddings = Embeddings(config, dtype=dtype)
        self.encoder = Encoder(config, dtype=dtype)
        self.pooler = Pooler(config, dtype=dtype)
        self.build()

    def build(self, input_shape: object = None) -> None:
        self.embeddings.build()
        self.encoder.build()
        self.pooler.build()

    def call(self, input_ids: tf.Tensor, input_mask: tf.Tensor | None = None, segment_ids: tf.Tensor | None = None,
             dropout_seed: tf.Tensor | None = None, part_starts: tf.Tensor | None = None,
             positions: tf.Tensor | None = None) -> dict:
        input_mask = ops.ones_like(input_ids) if input_mask is None else input_mask
        segment_ids = ops.zeros_like(input_ids) if segment_ids is None else segment_ids
        layout = layout_of(input_mask, self.unpad)
        packed = part_starts is not None
        bias = attention_bias(input_mask, self.config.causal, self.compute_dtype, packed)
        places = part_positions(input_mask, part_starts) if packed else None
        embedded = self.embeddings(input_ids, segment_ids, layout=layout, seed=dropout_seed, positions=places)
        if positions is not None:
            starts = ops.zeros_like(input_ids[:, :1]) if part_starts is None else part_starts
            wanted = Selection(layout, ops.concatenate([starts, ops.cast(positions, starts.dtype)], axis=1))
            return self._at(wanted, ops.shape(starts)[1], embedded, bias, layout, dropout_seed)
        layers = [layout.restore(x) for x in self.encoder(embedded, bias, layout=layout, seed=dropout_seed)]
        embedded = layout.restore(embedded)
        sequence = layers[-1] if layers else embedded
        return {
            "sequence_output": sequence,
            "pooled_output": self.pooler(first_tokens(sequence, part_starts)),
            "embedding_output": embedded,
            "layer_outputs": layers,
        }

    def _at(self, wanted: Selection, starts: int, embedded: tf.Tensor, bias: tf.Tensor, layout: TokenLayout,
            seed: tf.Tensor | None) -> dict:
        """The final vectors at some positions, of which the first `starts` of each row are those to pool."""
        layers = self.encoder(embedded, bias, layout=layout, seed=seed, wanted=wanted)
        vectors = wanted.layout.restore(layers[-1] if layers else wanted.take(embedded))
        firsts = ops.reshape(vectors[:, :starts], (-1, self.config.hidden_size))
        return {"sequence_output": vectors[:, starts:], "pooled_output": self.pooler(firsts)}


def attention_bias(input_mask: tf.Tensor, causal: bool, dtype: str, packed: bool = False) -> tf.Tensor:
    """The term added to attention scores: 0 where a token may be attended to and -10000 where not.

    Args:
        input_mask: int [batch, seq], 1 for a real token; in packed rows the number of its part.
        causal: whether later tokens are masked too.
        packed: whether tokens see their own part only.

    Returns:
        [batch, 1, 1, seq], or [batch, 1, seq, seq] where causal or packed.
    """
    if packed:
        visible = ops.cast(input_mask[:, None, :, None] == input_mask[:, None, None, :], "float32")
    else:
        visible = ops.cast(input_mask, "float32")[:, None, None, :]
    if causal:
        order = ops.arange(ops.shape(input_mask)[1])
        visible = visible * ops.cast(order[:, None] >= order[None, :], "float32")
    return ops.cast(-10000.0 * (1.0 - visible), dtype)

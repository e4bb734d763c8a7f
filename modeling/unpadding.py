"""Tokens of a batch as one long list, with or without the padding.

Everything in an encoder except the attention scores treats each token on its own, so it works on [tokens, hidden];
only attention needs [batch, seq, hidden]. When padding is left out of the list, no dense layer computes it.
"""

import tensorflow as tf
from keras import ops


class PaddedTokens:
    """Every position is in the list, padding too: both directions are a reshape, and shapes stay static.

    Args:
        batch, seq: size of the batch, int or scalar tensors.
    """

    def __init__(self, batch: int | tf.Tensor, seq: int | tf.Tensor) -> None:
        self.batch, self.seq = batch, seq

    def flatten(self, x: tf.Tensor) -> tf.Tensor:
        """[batch, seq, ...] to [batch * seq, ...]."""
        return ops.reshape(x, (-1, *x.shape[2:]))

    def restore(self, x: tf.Tensor) -> tf.Tensor:
        """[batch * seq, ...] to [batch, seq, ...]."""
        return ops.reshape(x, (self.batch, self.seq, *x.shape[1:]))

    def take(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Vectors at some positions of each row: [batch * seq, size], int [batch, n] to [batch * n, size]."""
        return ops.take(x, _flat(positions, self.seq), axis=0)


class UnpaddedTokens:
    """Only real tokens are in the list. Its length depends on the data, so this does not work under XLA.

    Args:
        mask: int [batch, seq], above 0 for a real token.
    """

    def __init__(self, mask: tf.Tensor) -> None:
        self.batch, self.seq = ops.shape(mask)
        flat = ops.reshape(mask, (-1,)) > 0
        # [tokens], the flat position of each token; [batch * seq], each position's token, or -1.
        self.positions = ops.cast(ops.nonzero(flat)[0], "int32")
        self.tokens = ops.where(flat, ops.cumsum(ops.cast(flat, "int32")) - 1, -1)

    def flatten(self, x: tf.Tensor) -> tf.Tensor:
        """[batch, seq, ...] to [tokens, ...]."""
        flat = ops.reshape(x, (-1, *x.shape[2:]))
        return _take_rows(flat, self.positions, self.tokens)

    def restore(self, x: tf.Tensor) -> tf.Tensor:
        """[tokens, ...] to [batch, seq, ...], zero at padding."""
        flat = _take_rows(x, self.tokens, self.positions)
        return ops.reshape(flat, (self.batch, self.seq, *x.shape[1:]))

    def take(self, x: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Vectors at some positions of each row: [tokens, size], int [batch, n] to [batch * n, size]; padding is 0."""
        return _gather(x, ops.take(self.tokens, _flat(positions, self.seq)))


TokenLayout = PaddedTokens | UnpaddedTokens


def layout_of(mask: tf.Tensor, unpad: bool) -> TokenLayout:
    """The list of a batch's tokens.

    Args:
        mask: `input_mask`, int [batch, seq], above 0 for a real token.
        unpad: whether to leave padding out.
    """
    return UnpaddedTokens(mask) if unpad else PaddedTokens(*ops.shape(mask))


class Selection:
    """Some positions of each row. The last layer computes these alone where nothing reads its other vectors.

    Args:
        layout: which positions of the batch are tokens.
        positions: int [batch, n]. A position may be there several times.

    Attributes:
        layout: the selected positions as a batch of their own, [batch, n].
    """

    def __init__(self, layout: TokenLayout, positions: tf.Tensor) -> None:
        self.source, self.positions = layout, positions
        self.layout = PaddedTokens(*ops.shape(positions))

    def take(self, x: tf.Tensor) -> tf.Tensor:
        """[tokens, size] to [batch * n, size]."""
        return self.source.take(x, self.positions)

    def take_bias(self, bias: tf.Tensor) -> tf.Tensor:
        """The attention bias of these positions: [batch, 1, 1 or seq, seq] to [batch, 1, 1 or n, seq]."""
        return bias if bias.shape[2] == 1 else tf.gather(bias, self.positions, axis=2, batch_dims=1)


def _flat(positions: tf.Tensor, seq: int | tf.Tensor) -> tf.Tensor:
    """Positions in rows of `seq`, int [batch, n], as positions in all rows end to end, int [batch * n]."""
    rows = ops.arange(ops.shape(positions)[0], dtype=positions.dtype)
    return ops.reshape(positions + rows[:, None] * seq, (-1,))


def _take_rows(x: tf.Tensor, rows: tf.Tensor, inverse: tf.Tensor) -> tf.Tensor:
    """Rows of x by index, zeros for -1; the gradient takes rows by the inverse index and so scatters nothing."""

    @ops.custom_gradient
    def take(x: tf.Tensor) -> tuple:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            return _gather(upstream, inverse)

        return _gather(x, rows), gradient

    return take(x)


def _gather(x: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    zero = ops.zeros((1, *x.shape[1:]), x.dtype)
    padded = ops.concatenate([x, zero])
    return ops.take(padded, ops.where(rows < 0, ops.shape(x)[0], rows), axis=0)

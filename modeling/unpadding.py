"""Tokens of a batch as one long list, with or without the padding.

All of an encoder but the attention scores treats every token alone, so it works on [tokens, hidden]; only attention
needs [batch, seq, hidden]. Where tokens of padding are left out of the list, no dense layer computes them.
"""

import keras
from keras import ops


class Padded:
    """Every position is a token, padding too: both directions are a reshape, and shapes stay static."""

    def __init__(self, batch, seq):
        self.batch, self.seq = batch, seq

    def pack(self, x):
        """[batch, seq, ...] to [batch * seq, ...]."""
        return ops.reshape(x, (-1, *x.shape[2:]))

    def unpack(self, x):
        """[batch * seq, ...] to [batch, seq, ...]."""
        return ops.reshape(x, (self.batch, self.seq, *x.shape[1:]))


class Unpadded:
    """Only real tokens are in the list; its length depends on the data, so this is not for XLA.

    Args:
        mask: int [batch, seq], 1 for a real token.
    """

    def __init__(self, mask):
        self.batch, self.seq = ops.shape(mask)
        flat = ops.reshape(mask, (-1,)) > 0
        # [tokens], the flat position of each token; [batch * seq], each position's token, or -1.
        self.positions = ops.cast(ops.nonzero(flat)[0], "int32")
        self.tokens = ops.where(flat, ops.cumsum(ops.cast(flat, "int32")) - 1, -1)

    def pack(self, x):
        """[batch, seq, ...] to [tokens, ...]."""
        flat = ops.reshape(x, (-1, *x.shape[2:]))
        return _take_rows(flat, self.positions, self.tokens)

    def unpack(self, x):
        """[tokens, ...] to [batch, seq, ...], zero at padding."""
        flat = _take_rows(x, self.tokens, self.positions)
        return ops.reshape(flat, (self.batch, self.seq, *x.shape[1:]))


def _take_rows(x, rows, inverse):
    """Rows of x by index, zeros for -1; the gradient takes rows by the inverse index and so scatters nothing."""

    @ops.custom_gradient
    def take(x):
        def gradient(upstream):
            return _gather(upstream, inverse)

        return _gather(x, rows), gradient

    return take(x)


def _gather(x, rows):
    zero = ops.zeros((1, *x.shape[1:]), x.dtype)
    padded = ops.concatenate([x, zero])
    return ops.take(padded, ops.where(rows < 0, ops.shape(x)[0], rows), axis=0)


def packing_of(mask, skip_padding):
    """The list of a batch's tokens, by `input_mask` int [batch, seq]."""
    if skip_padding:
        if keras.backend.backend() != "tensorflow":
            raise NotImplementedError("skip_padding needs shapes that depend on data: TensorFlow, without XLA.")
        return Unpadded(mask)
    return Padded(*ops.shape(mask))

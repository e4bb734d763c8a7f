"""Rows that hold several sequences end to end, so that where shapes are static no padding is computed.

A packed batch is one with `part_starts`, int [batch, parts]: where each part of a row begins, 0 for parts that a row
does not have. `input_mask` then numbers the part of each token from 1, and is 0 at padding. A token attends to its own
part, positions restart at each part, and each part has a pooled vector. So a sequence has the outputs that it has in a
row of its own.
"""

import tensorflow as tf
from keras import ops

from modeling.unpadding import PaddedTokens


def part_positions(input_mask: tf.Tensor, part_starts: tf.Tensor) -> tf.Tensor:
    """The position of each token in its part: int [batch, seq], 0 at padding.

    Args:
        input_mask: int [batch, seq], the number of each token's part.
        part_starts: int [batch, parts].
    """
    starts = ops.take_along_axis(part_starts, ops.maximum(input_mask - 1, 0), axis=1)
    places = ops.arange(ops.shape(input_mask)[1], dtype=starts.dtype)
    return ops.where(input_mask > 0, places - starts, 0)


def first_tokens(sequence: tf.Tensor, part_starts: tf.Tensor | None) -> tf.Tensor:
    """The vector of each sequence's first token.

    Args:
        sequence: float [batch, seq, hidden].
        part_starts: int [batch, parts]; None where a row is one sequence.

    Returns:
        float [batch, hidden], or [batch * parts, hidden].
    """
    return sequence[:, 0] if part_starts is None else gather_positions(sequence, part_starts)


def real_sequences(input_mask: tf.Tensor, part_starts: tf.Tensor | None) -> tf.Tensor:
    """1 for each sequence that is there, 0 for absent parts and for rows that only complete a batch.

    Args:
        input_mask: int [batch, seq].
        part_starts: int [batch, parts]; None where a row is one sequence.

    Returns:
        float32 [batch], or [batch * parts].
    """
    if part_starts is None:
        return ops.cast(input_mask[:, 0], "float32")
    number = ops.arange(1, ops.shape(part_starts)[1] + 1, dtype=input_mask.dtype)
    # An absent part begins, for want of another place, at the first: that position is not of its number.
    at_start = ops.take_along_axis(input_mask, part_starts, axis=1)
    return ops.reshape(ops.cast(at_start == number, "float32"), (-1,))


def gather_positions(sequence: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Vectors at given positions of each row: [batch, seq, hidden], int [batch, n] to [batch * n, hidden]."""
    layout = PaddedTokens(*ops.shape(sequence)[:2])
    return layout.take(layout.flatten(sequence), positions)

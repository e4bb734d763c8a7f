"""Batches of pre-training: rows of 128 tokens with the padding of pre-training records, as they come or by length."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

SIZES = {  # layers, hidden size, heads
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "base": (12, 768, 12),
}
VOCABULARY, SEQUENCE, PREDICTIONS, USED_PREDICTIONS = 30522, 128, 20, 19
# 76 % of the rows are full, the rest of uniform lengths.
_SHORT_ROWS, _SHORTEST = 0.24, 20
# A sorted batch is cut to a multiple of this: no kernel gains by less.
_ROUNDING = 8


@dataclasses.dataclass(frozen=True)
class Sample:
    """Some batches of the stream.

    Attributes:
        batches: dicts of int32 and float32 arrays, with the records' keys.
        weights: how many batches of the stream each stands for, in sum 1.
        tokens: real tokens of a batch, the mean.
    """

    batches: Sequence[Mapping[str, Any]]
    weights: Sequence[float]
    tokens: float


def batch_size(size: str) -> int:
    """Rows of a batch."""
    return 8 if size == "base" else 32


def sample(size: str, by_length: bool) -> Sample:
    """Batches whose cost is that of the stream.

    Args:
        size: key of SIZES.
        by_length: sorted in pools of 16 batches and cut to their longest row; 12 of a pool are full batches, of which
            the first here stands for all. Otherwise two batches, each like the stream.
    """
    draw, rows = np.random.default_rng(0), batch_size(size)
    if by_length:
        short = np.array_split(_short_lengths(4 * rows), 4)
        lengths, weights = [np.full(rows, SEQUENCE), *short], [12 / 16, *[1 / 16] * 4]
    else:
        short = _short_lengths(round(_SHORT_ROWS * 2 * rows))
        everything = np.sort(np.concatenate([short, np.full(2 * rows - len(short), SEQUENCE)]))
        lengths, weights = [everything[0::2], everything[1::2]], [1 / 2] * 2
    tokens = sum(weight * each.sum() for weight, each in zip(weights, lengths))
    longest = [min(SEQUENCE, -(-each.max() // _ROUNDING) * _ROUNDING) if by_length else SEQUENCE for each in lengths]
    return Sample([_batch(draw, *each) for each in zip(lengths, longest)], weights, float(tokens))


def useful_operations(size: str) -> float:
    """Floating point operations for a real token in the matrix products of a step, forward and backward."""
    layers, hidden, _ = SIZES[size]
    tokens = sample(size, by_length=False).tokens
    dense = layers * 12 * hidden * hidden  # 4 of attention, 8 of feed-forward
    attention = layers * 2 * SEQUENCE * hidden  # scores and context
    vocabulary = batch_size(size) * PREDICTIONS * hidden * (VOCABULARY + hidden)
    return 3 * 2 * (dense + attention + vocabulary / tokens)


def _short_lengths(count: int) -> np.ndarray:
    # Evenly spread in place of a uniform draw: few batches have the padding of the whole distribution.
    return np.linspace(_SHORTEST, SEQUENCE, count).astype(int)


def _batch(draw: np.random.Generator, lengths: np.ndarray, longest: int) -> dict[str, np.ndarray]:
    rows = len(lengths)
    mask = (np.arange(longest) < lengths[:, None]).astype(np.int32)
    positions = np.sort(
        [draw.choice(np.arange(1, n - 1), PREDICTIONS, replace=n < PREDICTIONS + 2) for n in lengths])
    used = np.minimum(USED_PREDICTIONS, np.maximum(1, np.round(0.15 * lengths).astype(int)))[:, None]
    weights = (np.arange(PREDICTIONS) < used).astype(np.float32)
    return {
        "input_ids": (draw.integers(1000, VOCABULARY, (rows, longest)) * mask).astype(np.int32),
        "input_mask": mask,
        "segment_ids": ((np.arange(longest) >= lengths[:, None] // 2) * mask).astype(np.int32),
        "masked_lm_positions": (np.sort(positions) * weights).astype(np.int32),
        "masked_lm_ids": (draw.integers(1000, VOCABULARY, (rows, PREDICTIONS)) * weights).astype(np.int32),
        "masked_lm_weights": weights,
        "next_sentence_labels": draw.integers(0, 2, (rows, 1)).astype(np.int32),
    }

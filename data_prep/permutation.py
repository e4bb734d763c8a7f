"""A shuffle in constant memory: where each item goes is computed, not stored."""

from collections.abc import Sequence

import numpy as np

_ROUNDS = 6


class Permutation:
    """A pseudo-random bijection of 0 .. size-1, keyed by integers.

    A Feistel network (Luby and Rackoff, 1988) permutes the numbers of twice `bits` bits; a number that falls outside
    0 .. size-1 is permuted again until it falls inside (Black and Rogaway, 2002), fewer than four times on average.

    Args:
        size: how many items.
        key: sequence of integers >= 0.

    Example:
        Permutation(10, key=[12345])(np.arange(10))  # the numbers 0 to 9 in another order
    """

    def __init__(self, size: int, key: Sequence[int]) -> None:
        self.size = size
        self._bits = np.uint64(max(1, ((size - 1).bit_length() + 1) // 2))
        self._low = np.uint64((1 << int(self._bits)) - 1)
        self._keys = np.random.SeedSequence(key).generate_state(_ROUNDS, np.uint64)

    def __call__(self, indices: np.ndarray) -> np.ndarray:
        """Returns where items go: from int64 numbers in 0 .. size-1 to int64 numbers, of the same shape."""
        values = self._network(np.asarray(indices).astype(np.uint64))
        while (outside := values >= self.size).any():
            values[outside] = self._network(values[outside])
        return values.astype(np.int64)

    def _network(self, values: np.ndarray) -> np.ndarray:
        left, right = values >> self._bits, values & self._low
        for key in self._keys:
            left, right = right, left ^ (_hash(right ^ key) & self._low)
        return (left << self._bits) | right


def _hash(values: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64 (Steele et al. 2014), uint64 to uint64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))

"""A data set as arrays that a model reads: sequences of any length, end to end, padded only in batches."""

import dataclasses
from collections.abc import Mapping
from typing import IO

import numpy as np

# The padding of a token column, where it is not 0.
PADDING = {"token_labels": -1}
# In a file: the names of the arrays that must be there.
_COLUMNS = "columns"


def splits_of(lengths: np.ndarray | list[int]) -> np.ndarray:
    """Where rows of these lengths begin, end to end, and where the last ends: int64 [rows + 1]."""
    splits = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=splits[1:])
    return splits


def runs(begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """For each row the indices begin, begin + 1, ..., `length` of them, end to end: int64 [sum of lengths]."""
    shift = np.repeat(begins - splits_of(lengths)[:-1], lengths)
    return shift + np.arange(len(shift))


@dataclasses.dataclass(frozen=True)
class Features:
    """Rows of a data set: each an example, or a window or part of one.

    Attributes:
        tokens: token columns, int32 [total]: `input_ids`, `segment_ids`, and where tokens are labelled `token_labels`,
            -1 where a token does not count.
        row_splits: int64 [rows * sequences_per_row + 1], where each sequence begins in the token columns.
        values: arrays [rows, ...], such as `label_ids` int32 or `start_positions`.
        sequences_per_row: 1, or the number of choices.
    """

    tokens: Mapping[str, np.ndarray]
    row_splits: np.ndarray
    values: Mapping[str, np.ndarray]
    sequences_per_row: int = 1

    def __len__(self) -> int:
        return (len(self.row_splits) - 1) // self.sequences_per_row

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]: length of the longest sequence of each row."""
        return np.diff(self.row_splits).reshape(-1, self.sequences_per_row).max(axis=1)

    def save(self, file: IO[bytes]) -> None:
        """Writes all arrays to an open binary file, as npz."""
        columns = {**{f"tokens/{name}": array for name, array in self.tokens.items()},
                   **{f"values/{name}": array for name, array in self.values.items()}}
        arrays = {"row_splits": self.row_splits, "sequences_per_row": np.array(self.sequences_per_row),
                  _COLUMNS: np.array(sorted(columns)), **columns}
        np.savez(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, file: IO[bytes]) -> "Features":
        """Reads what `save` wrote, from an open binary file.

        Raises:
            ValueError: arrays are missing, or do not belong together. Of a damaged file, any exception of numpy's.
        """
        with np.load(file) as archive:
            arrays = dict(archive)
        names = arrays[_COLUMNS].tolist()
        if sorted(name for name in arrays if "/" in name) != names:
            raise ValueError("columns are missing")

        def columns(kind: str) -> dict[str, np.ndarray]:
            return {name.split("/", 1)[1]: arrays[name] for name in names if name.startswith(f"{kind}/")}

        found = cls(columns("tokens"), arrays["row_splits"], columns("values"), int(arrays["sequences_per_row"]))
        if not found._is_consistent():
            raise ValueError("arrays do not belong together")
        return found

    def _is_consistent(self) -> bool:
        """Whether lengths and types are those that a model reads."""
        splits = self.row_splits
        if splits.dtype != np.int64 or splits.ndim != 1 or not len(splits) or self.sequences_per_row < 1:
            return False
        if splits[0] or (np.diff(splits) < 0).any() or (len(splits) - 1) % self.sequences_per_row:
            return False
        return (all(column.dtype.kind in "ib" and column.shape == (splits[-1],) for column in self.tokens.values())
                and all(value.dtype.kind in "ifb" and value.shape[:1] == (len(self),)
                        for value in self.values.values()))

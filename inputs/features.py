"""What a model reads of a data set, as arrays: sequences of their own lengths end to end, padded only when batched."""

import dataclasses

import numpy as np

# What fills a token column behind the end of a sequence, where it is not 0.
PADDING = {"token_labels": -1}


def splits_of(lengths):
    """Where rows of such lengths begin when they lie end to end, and where the last ends: int64 [rows + 1]."""
    splits = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=splits[1:])
    return splits


def runs(begins, lengths):
    """Indices begin, begin + 1, ... of each row, `length` of them, end to end: int64 [sum of lengths]."""
    shift = np.repeat(begins - splits_of(lengths)[:-1], lengths)
    return shift + np.arange(len(shift))


@dataclasses.dataclass(frozen=True)
class Features:
    """Rows of a data set: an example each, or a window or part of one.

    Attributes:
        tokens: dict of token columns, int32 [total]: `input_ids`, `segment_ids`, and where tokens are labelled
            `token_labels`, -1 where a token does not count.
        row_splits: int64 [rows * sequences_per_row + 1], where each sequence begins in the token columns.
        values: dict of arrays [rows, ...], as `label_ids` int32 or `start_positions`.
        sequences_per_row: 1, or the number of choices.
    """

    tokens: dict
    row_splits: np.ndarray
    values: dict
    sequences_per_row: int = 1

    def __len__(self):
        return (len(self.row_splits) - 1) // self.sequences_per_row

    @property
    def lengths(self):
        """int64 [rows]: positions a row needs, those of its longest sequence."""
        return np.diff(self.row_splits).reshape(-1, self.sequences_per_row).max(axis=1)

    def save(self, file):
        """Writes all arrays to an open binary file, as npz."""
        np.savez(file, row_splits=self.row_splits, sequences_per_row=self.sequences_per_row,
                 **{f"tokens/{name}": array for name, array in self.tokens.items()},
                 **{f"values/{name}": array for name, array in self.values.items()})

    @classmethod
    def load(cls, file):
        """Reads what `save` wrote, from an open binary file."""
        with np.load(file) as arrays:
            def column(kind):
                return {name.split("/", 1)[1]: arrays[name] for name in arrays.files if name.startswith(f"{kind}/")}

            return cls(column("tokens"), arrays["row_splits"], column("values"), int(arrays["sequences_per_row"]))

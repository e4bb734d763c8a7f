"""Rows as every engine reads them, and which batches stand for all: knows neither tasks nor frameworks."""

import numpy as np

from inputs.features import Features


def load(path: str) -> Features:
    """Features from a file."""
    with open(path, "rb") as file:
        return Features.load(file)


def spread(lengths: np.ndarray, batches: np.ndarray, count: int) -> np.ndarray:
    """Numbers int [count] of batches that stand for all: evenly spread over them in the order of their tokens.

    Args:
        lengths: of each row.
        batches: int [batches, rows of a batch], row numbers.
        count: how many to choose.
    """
    order = np.argsort(lengths[batches].sum(axis=1), kind="stable")
    return order[((np.arange(count) + 0.5) / count * len(order)).astype(int)]


def sorted_batches(lengths: np.ndarray, batch_size: int, count: int) -> np.ndarray:
    """Batches int [count, batch_size] that stand for all of a data set sorted by length."""
    order = np.argsort(lengths, kind="stable")
    plan = order[: len(order) // batch_size * batch_size].reshape(-1, batch_size)
    return plan[spread(lengths, plan, count)]


def padded(found: Features, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """Token columns and `input_mask` of some rows, int64 [rows, length of the longest]."""
    begins, lengths = found.row_splits[:-1][chosen], found.lengths[chosen]
    places = np.arange(lengths.max())
    mask = places < lengths[:, None]
    index = np.where(mask, begins[:, None] + places, 0)
    columns = {name: np.where(mask, column[index], 0) for name, column in found.tokens.items()}
    return {**columns, "input_mask": mask.astype(np.int64)}

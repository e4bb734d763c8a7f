"""Prediction files of the families that choose one label, or predict one number, for each row."""

from collections.abc import Sequence

import numpy as np


def results(numbers: np.ndarray) -> str:
    """`test_results.tsv` as the release writes it: a line for each row with its probabilities, or its score.

    Args:
        numbers: float32 [rows, columns].
    """
    return "".join("\t".join(map(str, row)) + "\n" for row in numbers)


def submission(labels: Sequence[str] | None, predictions: np.ndarray,
               score_range: tuple[float, float] | None = None) -> str:
    """A table of predictions as gluebenchmark.com takes it: the number of each row, from 0, and its label or score.

    Args:
        labels: names by id; None for scores.
        predictions: label ids int [rows], or scores float [rows].
        score_range: lowest and highest score; None: any.
    """
    if labels is not None:
        cells = [labels[prediction] for prediction in predictions]
    else:
        lowest, highest = score_range or (None, None)
        cells = [f"{score:.3f}" for score in np.clip(predictions, lowest, highest)]
    return "".join(["index\tprediction\n", *(f"{row}\t{cell}\n" for row, cell in enumerate(cells))])


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Softmax over the last axis, in the type of the logits."""
    from scipy import special  # takes half a second, and most commands do not predict

    return special.softmax(logits, axis=-1)

"""Metrics of multiple choice."""

import numpy as np

from tasks import metrics


def score(labels: np.ndarray, logits: np.ndarray) -> dict[str, float]:
    """Accuracy, the fraction of questions whose right choice has the highest score, and the mean loss.

    Args:
        labels: int32 [rows], the right choices.
        logits: float [rows, choices].
    """
    logits = np.asarray(logits, np.float64)
    return {"accuracy": metrics.accuracy(labels, logits.argmax(axis=-1)),
            "loss": metrics.mean_cross_entropy(labels, logits)}

"""Metrics of a classification or a regression: the release's, and the data set's official ones."""

from collections.abc import Sequence

import numpy as np

from tasks import metrics


def score_labels(names: Sequence[str], labels: np.ndarray, logits: np.ndarray) -> dict[str, float]:
    """The release's `eval_accuracy`, `eval_loss` and `loss`, and the data set's metrics.

    The release's `loss` is a mean of batch means, which differs from `eval_loss` where the last batch is not full;
    here both are the mean over examples.

    Args:
        names: of metrics in `tasks.metrics`.
        labels: int32 [rows].
        logits: float [rows, labels].
    """
    logits = np.asarray(logits, np.float64)
    predictions = logits.argmax(axis=-1)
    loss = metrics.mean_cross_entropy(labels, logits)
    own = {name: metrics.BY_NAME[name](labels, predictions) for name in names if name != "accuracy"}
    return {"eval_accuracy": metrics.accuracy(labels, predictions), **own, "eval_loss": loss, "loss": loss}


def score_numbers(names: Sequence[str], truths: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """`eval_loss` and `loss`, the mean squared error, and the data set's metrics.

    Args:
        names: of metrics in `tasks.metrics`.
        truths, predictions: float [rows].
    """
    predictions = np.asarray(predictions, np.float64)
    loss = float(np.mean(np.square(predictions - truths)))
    return {**{name: metrics.BY_NAME[name](truths, predictions) for name in names}, "eval_loss": loss, "loss": loss}

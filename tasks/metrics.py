"""GLUE's official metrics, by scikit-learn and SciPy, and the cross entropy that all families report.

A metric that is undefined, because predictions or truths are all the same, is 0: no relation was shown.
scikit-learn and SciPy are imported where they are needed: they take seconds, and files are read without them.
"""

import warnings
from collections.abc import Callable

import numpy as np


def accuracy(truths: np.ndarray, predictions: np.ndarray) -> float:
    """Fraction of rows that are right. `truths` and `predictions`: int [rows], as in all but the correlations."""
    from sklearn import metrics

    return float(metrics.accuracy_score(truths, predictions))


def f1(truths: np.ndarray, predictions: np.ndarray) -> float:
    """F1 of label 1, the second of two."""
    from sklearn import metrics

    return float(metrics.f1_score(truths, predictions, zero_division=0.0))


def macro_f1(truths: np.ndarray, predictions: np.ndarray) -> float:
    """Mean F1 of all labels that occur."""
    from sklearn import metrics

    return float(metrics.f1_score(truths, predictions, average="macro", zero_division=0.0))


def matthews(truths: np.ndarray, predictions: np.ndarray) -> float:
    """Matthews correlation, of two or more labels."""
    from sklearn import metrics

    if _constant(truths) or _constant(predictions):
        return 0.0
    return float(metrics.matthews_corrcoef(truths, predictions))


def pearson(truths: np.ndarray, predictions: np.ndarray) -> float:
    """Pearson correlation of two float [rows]."""
    from scipy import stats

    return _correlation(stats.pearsonr, truths, predictions)


def spearman(truths: np.ndarray, predictions: np.ndarray) -> float:
    """Spearman's rank correlation of two float [rows]."""
    from scipy import stats

    return _correlation(stats.spearmanr, truths, predictions)


BY_NAME: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    function.__name__: function for function in (accuracy, f1, macro_f1, matthews, pearson, spearman)}


def mean_cross_entropy(labels: np.ndarray, logits: np.ndarray) -> float:
    """Mean cross entropy, computed in float64.

    Args:
        labels: int [rows].
        logits: float [rows, labels].
    """
    from scipy import special

    log_probabilities = special.log_softmax(np.asarray(logits, np.float64), axis=-1)
    return float(-log_probabilities[np.arange(len(labels)), labels].mean())


def _correlation(function: Callable, truths: np.ndarray, predictions: np.ndarray) -> float:
    from scipy import stats

    if _constant(truths) or _constant(predictions):
        return 0.0
    with warnings.catch_warnings():
        # Scores that hardly differ, early in training, are no reason to warn.
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        return float(function(np.asarray(truths, np.float64), np.asarray(predictions, np.float64)).statistic)


def _constant(values: np.ndarray) -> bool:
    return bool(np.ptp(values) == 0)

"""GLUE's official figures, by scikit-learn and SciPy.

Where a figure is undefined, because predictions or truths are all the same, it is 0: no relation was shown.
"""

import warnings

import numpy as np
from scipy import stats
from sklearn import metrics


def accuracy(truths, predictions):
    """Share of rows that are right. `truths` and `predictions`: int [rows], as in all but the last two."""
    return float(metrics.accuracy_score(truths, predictions))


def f1(truths, predictions):
    """F1 of label 1, the second of two."""
    return float(metrics.f1_score(truths, predictions, zero_division=0.0))


def macro_f1(truths, predictions):
    """Mean F1 of all labels that occur."""
    return float(metrics.f1_score(truths, predictions, average="macro", zero_division=0.0))


def matthews(truths, predictions):
    """Matthews correlation, of two or more labels."""
    if _constant(truths) or _constant(predictions):
        return 0.0
    return float(metrics.matthews_corrcoef(truths, predictions))


def pearson(truths, predictions):
    """Pearson correlation of two float [rows]."""
    return _correlation(stats.pearsonr, truths, predictions)


def spearman(truths, predictions):
    """Spearman's rank correlation of two float [rows]."""
    return _correlation(stats.spearmanr, truths, predictions)


def _correlation(function, truths, predictions):
    if _constant(truths) or _constant(predictions):
        return 0.0
    with warnings.catch_warnings():
        # Scores that hardly differ yet, early in training, are nothing to warn of.
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        return float(function(np.asarray(truths, np.float64), np.asarray(predictions, np.float64)).statistic)


def _constant(values):
    return np.ptp(values) == 0


BY_NAME = {function.__name__: function for function in (accuracy, f1, macro_f1, matthews, pearson, spearman)}

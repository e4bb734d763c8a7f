"""GLUE's metrics against values computed by hand; no crash and no warning where a metric is undefined."""

import warnings

import numpy as np
import pytest

from tasks import metrics

# 3 true positives, 1 false positive, 2 false negatives, 2 true negatives.
TRUTHS = np.array([1, 1, 1, 0, 1, 1, 0, 0], np.int32)
GUESSES = np.array([1, 1, 1, 1, 0, 0, 0, 0], np.int32)


@pytest.mark.parametrize(("name", "expected"), [
    ("accuracy", 5 / 8),
    ("f1", 2 * 3 / (2 * 3 + 1 + 2)),
    ("macro_f1", (6 / 9 + 4 / 7) / 2),
    ("matthews", (3 * 2 - 1 * 2) / np.sqrt(4 * 5 * 3 * 4)),
])
def test_classification_metrics(name, expected):
    assert metrics.BY_NAME[name](TRUTHS, GUESSES) == pytest.approx(expected, abs=1e-12)


def test_correlations():
    truths, guesses = np.array([1, 2, 3, 4], np.float32), np.array([1, 2, 3, 10], np.float32)
    assert metrics.spearman(truths, guesses) == pytest.approx(1, abs=1e-12)
    assert metrics.pearson(truths, guesses) == pytest.approx(14 / np.sqrt(5 * 50), abs=1e-12)


@pytest.mark.parametrize("name", metrics.BY_NAME)
@pytest.mark.parametrize("guesses", [[0, 0, 0], [1, 1, 1]])
@pytest.mark.parametrize("truths", [[0, 0, 1], [1, 1, 1], [0, 0, 0]])
def test_constant_predictions_give_a_value_and_no_warning(name, truths, guesses):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = metrics.BY_NAME[name](np.array(truths), np.array(guesses))
    assert 0 <= value <= 1
    if name in ("matthews", "pearson", "spearman"):
        assert value == 0


def test_a_single_row_and_nearly_constant_scores_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metrics.pearson(np.array([2.0]), np.array([3.0])) == 0
        assert abs(metrics.pearson(np.array([1.0, 2, 3]), np.array([1.0, 1, 1 + 4e-16]))) <= 1

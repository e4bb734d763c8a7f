"""Prediction files as the release and gluebenchmark.com lay them out."""

import numpy as np

from tasks.predictions import probabilities, results, submission


def test_submission_has_words_for_labels_and_brings_scores_into_range():
    assert submission(("entailment", "not_entailment"), np.array([1, 0])) == (
        "index\tprediction\n0\tnot_entailment\n1\tentailment\n")
    assert submission(None, np.array([-0.5, 2.34567, 9], np.float32), (0, 5)) == (
        "index\tprediction\n0\t0.000\n1\t2.346\n2\t5.000\n")
    assert submission(None, np.array([-0.5]), None) == "index\tprediction\n0\t-0.500\n"


def test_results_have_a_line_for_each_row():
    numbers = probabilities(np.array([[0, 0], [0, 200]], np.float32))
    assert results(numbers) == "0.5\t0.5\n0.0\t1.0\n"
    assert numbers.dtype == np.float32

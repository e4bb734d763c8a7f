"""Exact match and F1 as the official scripts count them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.squad import scores as squad_scores


@pytest.mark.parametrize(("text", "expected"), [
    ("The Quick, brown Fox!", "quick brown fox"),
    ("an  apple\na day", "apple day"),
    ("anthem theater", "anthem theater"),
    ("U.S.A.", "usa"),
    ("«été»", "«été»"),
    ("The", ""),
])
def test_texts_are_normalized(text, expected):
    assert squad_scores.normalize(text) == expected


@pytest.mark.parametrize(("predicted", "answer", "exact", "f1"), [
    ("The senate", "senate", 1, 1),
    ("the old senate", "senate", 0, 2 / 3),
    ("of of house", "of house house", 0, 2 / 3),
    ("house", "senate", 0, 0),
    ("", "senate", 0, 0),
    ("the", "a", 1, 0),
])
def test_a_pair_is_scored(predicted, answer, exact, f1):
    assert squad_scores.exact_match(predicted, answer) == exact
    assert squad_scores.f1(predicted, answer) == pytest.approx(f1)


def test_the_best_right_answer_counts():
    metrics = squad_scores.score(["old senate", "x"], [["house", "the senate", "senate old"], ["y"]])
    assert metrics == pytest.approx({"exact_match": 0.0, "f1": 50.0})


def test_no_answer_is_right_where_there_is_none():
    metrics = squad_scores.score_with_negatives(
        ["senate", "house", "duties", ""], [-3.0, 2.0, -1.0, 5.0], [["senate"], ["old house"], [], []], threshold=0.0)
    assert metrics == pytest.approx({
        "null_threshold": 0.0, "exact_match": 50.0, "f1": 50.0, "HasAns_exact": 50.0, "HasAns_f1": 50.0,
        "NoAns_exact": 50.0, "NoAns_f1": 50.0,
        # Answering the first alone is right for three of four.
        "best_exact": 75.0, "best_exact_thresh": -3.0, "best_f1": 75.0, "best_f1_thresh": -3.0})


def test_answers_without_a_word_count_as_in_each_version():
    assert squad_scores.score(["a"], [["the"]]) == {"exact_match": 100.0, "f1": 0.0}
    assert squad_scores.score_with_negatives(["a"], [0.0], [["the"]])["f1"] == 100.0


def test_groups_without_a_question_are_left_out():
    assert "NoAns_f1" not in squad_scores.score_with_negatives(["a"], [0.0], [["b"]])


QUESTIONS = st.lists(st.tuples(st.integers(-50, 50), st.booleans(), st.sampled_from(["senate", "old senate", "x"])),
                     min_size=1, max_size=12, unique_by=lambda question: question[0])


@settings(deadline=None, max_examples=60)
@given(QUESTIONS)
def test_no_threshold_is_better_than_the_tuned_one(questions):
    odds = [float(each[0]) for each in questions]
    answers = [["senate"] if each[1] else [] for each in questions]
    texts = [each[2] for each in questions]
    tuned = squad_scores.score_with_negatives(texts, odds, answers)
    assert tuned["f1"] == pytest.approx(tuned["best_f1"])
    every = [squad_scores.score_with_negatives(texts, odds, answers, threshold)["f1"]
             for threshold in (min(odds) - 1, *odds)]
    assert tuned["f1"] == pytest.approx(max(every))

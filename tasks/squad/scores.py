"""Exact match and F1 as the official SQuAD scripts count them, and the threshold on null odds that is best for F1."""

import collections
import re
import string
from collections.abc import Sequence
from functools import partial

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """Lower-cases a text, drops ASCII punctuation and English articles, and joins its words by single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(predicted: str, answer: str) -> float:
    """Whether two texts are equal once normalized, 0.0 or 1.0."""
    return float(normalize(predicted) == normalize(answer))


def f1(predicted: str, answer: str) -> float:
    """F1 of the words that two texts share once normalized; 0.0 where they share none."""
    ours, theirs = normalize(predicted).split(), normalize(answer).split()
    same = (collections.Counter(ours) & collections.Counter(theirs)).total()
    return 2 * same / (len(ours) + len(theirs)) if same else 0.0


def score(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> dict[str, float]:
    """Metrics of SQuAD 1.1, in percent: each text is scored against the right answer that suits it best.

    Args:
        predictions: a text for each question.
        answers: the right answers to each question.

    Returns:
        exact_match and f1.
    """
    pairs = list(zip(predictions, answers))
    return {"exact_match": _percent([max(map(partial(exact_match, text), right), default=0.0)
                                     for text, right in pairs]),
            "f1": _percent([max(map(partial(f1, text), right), default=0.0) for text, right in pairs])}


def score_with_negatives(predictions: Sequence[str], null_odds: Sequence[float], answers: Sequence[Sequence[str]],
                         threshold: float | None = None) -> dict[str, float]:
    """Metrics of SQuAD 2.0, in percent.

    Args:
        predictions: the best text for each question that is not "".
        null_odds: of each question; above the threshold it is predicted to have no answer.
        answers: the right answers to each question, none where it has no answer.
        threshold: on null odds; None: the one that is best for F1 on these questions.

    Returns:
        exact_match, f1, HasAns_exact, HasAns_f1, NoAns_exact and NoAns_f1 (of the kinds of questions that occur), at
        null_threshold; best_exact, best_exact_thresh, best_f1 and best_f1_thresh, the results of tuning on these
        questions.
    """
    has_answer = [bool(right) for right in answers]
    right = [[answer for answer in each if normalize(answer)] or [""] for each in answers]
    exact = [max(map(partial(exact_match, text), each)) for text, each in zip(predictions, right)]
    # Two texts without a word are equal here, unlike in SQuAD 1.1.
    part = [value if each == [""] else max(map(partial(f1, text), each))
            for value, text, each in zip(exact, predictions, right)]
    best_exact, exact_threshold = best_threshold(exact, null_odds, predictions, has_answer)
    best_f1, f1_threshold = best_threshold(part, null_odds, predictions, has_answer)
    threshold = f1_threshold if threshold is None else threshold

    metrics = {"null_threshold": threshold}
    for prefix, wanted in (("", (True, False)), ("HasAns_", (True,)), ("NoAns_", (False,))):
        for name, values in (("exact" if prefix else "exact_match", exact), ("f1", part)):
            chosen = [float(not right) if odds > threshold else value
                      for value, odds, right in zip(values, null_odds, has_answer) if right in wanted]
            if chosen:
                metrics[prefix + name] = _percent(chosen)
    return metrics | {"best_exact": best_exact, "best_exact_thresh": exact_threshold,
                      "best_f1": best_f1, "best_f1_thresh": f1_threshold}


def best_threshold(scores: Sequence[float], null_odds: Sequence[float], predictions: Sequence[str],
                   has_answer: Sequence[bool]) -> tuple[float, float]:
    """The threshold with the best mean score, as the official script for SQuAD 2.0 finds it.

    It tries the odds of each question, in ascending order, as the threshold; of equally good ones it takes the lowest.
    Where answering no question at all is best, the official 0.0 would answer those with lower odds: here the threshold
    is then below all odds.

    Args:
        scores: of each question, if it is answered.
        null_odds: of each question.
        predictions: for each question, "" where it cannot be answered.
        has_answer: whether each question has an answer.

    Returns:
        the mean score in percent, the threshold.
    """
    current = best = float(sum(not right for right in has_answer))
    order = sorted(range(len(scores)), key=null_odds.__getitem__)
    threshold = min(0.0, null_odds[order[0]] - 1.0) if order else 0.0
    for index in order:
        current += scores[index] if has_answer[index] else -bool(predictions[index])
        if current > best:
            best, threshold = current, null_odds[index]
    return 100.0 * best / max(len(scores), 1), threshold


def _percent(values: Sequence[float]) -> float:
    return 100.0 * sum(values) / max(len(values), 1)

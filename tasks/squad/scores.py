"""Exact match and F1 as the official SQuAD scripts count them, and the threshold on null odds that is best for F1."""

import collections
import re
import string
from functools import partial

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text):
    """Lower-cases a text, drops ASCII punctuation and English articles, and joins its words by single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(predicted, answer):
    """Whether two texts are equal once normalized, 0.0 or 1.0."""
    return float(normalize(predicted) == normalize(answer))


def f1(predicted, answer):
    """F1 of the words that two texts share once normalized; 0.0 where they share none."""
    predicted, answer = normalize(predicted).split(), normalize(answer).split()
    same = (collections.Counter(predicted) & collections.Counter(answer)).total()
    return 2 * same / (len(predicted) + len(answer)) if same else 0.0


def score(predictions, answers):
    """Scores of SQuAD 1.1, in percent: each text against the right answer it is best against.

    Args:
        predictions: list of str.
        answers: list of lists of str, the right answers of each question.

    Returns:
        dict: exact_match, f1.
    """
    pairs = list(zip(predictions, answers))
    return {"exact_match": _percent([max(map(partial(exact_match, text), right), default=0.0)
                                     for text, right in pairs]),
            "f1": _percent([max(map(partial(f1, text), right), default=0.0) for text, right in pairs])}


def score_with_negatives(predictions, null_odds, answers, threshold=None):
    """Scores of SQuAD 2.0, in percent.

    Args:
        predictions: list of str, the best text of each question that is not "".
        null_odds: list of float; a question whose odds are over the threshold is predicted to have no answer.
        answers: list of lists of str, empty where a question has no answer.
        threshold: float; that which is best for F1 where None.

    Returns:
        dict: exact_match, f1, HasAns_exact, HasAns_f1, NoAns_exact, NoAns_f1 (those of which there are questions), at
        null_threshold; best_exact, best_exact_thresh, best_f1, best_f1_thresh, what tuning on these questions gives.
    """
    has_answer = [bool(right) for right in answers]
    right = [[answer for answer in each if normalize(answer)] or [""] for each in answers]
    exact = [max(map(partial(exact_match, text), each)) for text, each in zip(predictions, right)]
    # Two texts without a word are equal here, which SQuAD 1.1 does not say.
    part = [value if each == [""] else max(map(partial(f1, text), each))
            for value, text, each in zip(exact, predictions, right)]
    best_exact, exact_threshold = best_threshold(exact, null_odds, predictions, has_answer)
    best_f1, f1_threshold = best_threshold(part, null_odds, predictions, has_answer)
    threshold = f1_threshold if threshold is None else threshold

    figures = {"null_threshold": threshold}
    for prefix, wanted in (("", (True, False)), ("HasAns_", (True,)), ("NoAns_", (False,))):
        for name, values in (("exact" if prefix else "exact_match", exact), ("f1", part)):
            chosen = [float(not right) if odds > threshold else value
                      for value, odds, right in zip(values, null_odds, has_answer) if right in wanted]
            if chosen:
                figures[prefix + name] = _percent(chosen)
    return figures | {"best_exact": best_exact, "best_exact_thresh": exact_threshold,
                      "best_f1": best_f1, "best_f1_thresh": f1_threshold}


def best_threshold(scores, null_odds, predictions, has_answer):
    """The threshold at which the mean score is best, as the official script for SQuAD 2.0 finds it.

    It goes through the questions by their odds, each a threshold; of equally good ones the least is taken. Where
    answering no question at all is best, the official 0.0 would answer those with odds below: then the threshold is
    below all odds.

    Args:
        scores: list of float, what answering each question gets.
        null_odds: list of float.
        predictions: list of str, "" where a question cannot be answered.
        has_answer: list of bool.

    Returns:
        the mean score in percent, the threshold.
    """
    current = best = sum(not right for right in has_answer)
    order = sorted(range(len(scores)), key=null_odds.__getitem__)
    threshold = min(0.0, null_odds[order[0]] - 1.0) if order else 0.0
    for index in order:
        current += scores[index] if has_answer[index] else -bool(predictions[index])
        if current > best:
            best, threshold = current, null_odds[index]
    return 100.0 * best / max(len(scores), 1), threshold


def _percent(values):
    return 100.0 * sum(values) / max(len(values), 1)

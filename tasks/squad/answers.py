"""Logits to answers: the best spans of each question, their text, and the score of having no answer.

The release's `write_predictions`. The text of an answer is by default what its `get_final_text` gives, which looks for
the answer's pieces in the words around them. The characters that the pieces stand for (`answer_text="offsets"`) are
the same text except where that search goes astray:
    - all of the words are given where a piece is unknown, where lower-casing changes how many characters they have (as
      of a decomposed é), or where they hold a space that does not part words for the release (as U+2009);
    - pieces that stand twice in the words are found at the first place;
    - several spaces in a row come out as one, as does a line feed.
"""

import dataclasses
import json
import math
import os

import numpy as np

from foundation import files
from tasks.squad import files as squad_files
from tokenization.text_rules import TextRules

ANSWER_TEXTS = ("release", "offsets")
# The release's null score of a question of which no window has been seen. Here also the null odds of a question of
# which no window gave an answer, where the release crashes (its issue 476).
NO_SCORE = 1000000


@dataclasses.dataclass(frozen=True)
class AnswerSettings:
    """How answers are chosen (flags of the same names).

    Attributes:
        n_best_size: answers of a question, and start and end positions of a window that are combined.
        max_answer_length: pieces.
        version_2_with_negative: whether having no answer is one of the answers.
        answer_text: "release" or "offsets", as above.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    version_2_with_negative: bool = False
    answer_text: str = "release"


@dataclasses.dataclass(frozen=True)
class Answers:
    """What was found for one question.

    Attributes:
        nbest: list of (text, start logit, end logit), best first; the text "" is having no answer.
        null_odds: score of having no answer, less that of the best answer; None where a question always has one.
    """

    nbest: list
    null_odds: float | None

    @property
    def best(self):
        """The best text that is an answer; "" where there is none."""
        return next((text for text, _, _ in self.nbest if text), "")

    def text(self, threshold):
        """The best text, or "" where the null odds are over the threshold."""
        if self.null_odds is None:
            return self.nbest[0][0]
        return "" if self.null_odds > threshold else self.best


def find_answers(questions, features, outputs, vocabulary, do_lower_case, settings):
    """Finds the answers of all questions.

    Args:
        questions: list of `squad_files.Question`.
        features: what `squad_features.make_features` made of them for predicting.
        outputs: dict, `start_logits` and `end_logits`, each a sequence of float [length of the row, or more].
        vocabulary: Vocabulary of the features.
        do_lower_case: of the tokenizer of the features.
        settings: AnswerSettings.

    Returns:
        list of Answers, one for each question.
    """
    writer = _TextWriter(features, vocabulary, do_lower_case, settings.answer_text)
    rows = np.searchsorted(features.values["example_index"], np.arange(len(questions) + 1))
    return [_answers(question, range(first, end), features, outputs, writer, settings)
            for question, first, end in zip(questions, rows[:-1].tolist(), rows[1:].tolist())]


def _answers(question, rows, features, outputs, writer, settings):
    spans, null = _spans(rows, features, outputs, settings)
    nbest, seen = [], set()
    for row, start, end, start_logit, end_logit in zip(*(column.tolist() for column in spans)):
        if len(nbest) == settings.n_best_size:
            break
        text = writer.text(question, row, start, end) if start else ""
        if text not in seen or not start:
            seen.add(text)
            nbest.append((text, start_logit, end_logit))
    if not settings.version_2_with_negative:
        return Answers(nbest or [("empty", 0.0, 0.0)], None)  # the release's word
    null_score, *null_logits = null
    if "" not in seen:
        nbest.append(("", *null_logits))
    best = next((entry for entry in nbest if entry[0]), None)
    return Answers(nbest, null_score - best[1] - best[2] if best else float(NO_SCORE))


def _spans(rows, features, outputs, settings):
    """Possible spans of a question, best first, and the least null score with its logits.

    Returns:
        Five arrays: row of the features, first and last position in it (0 for having no answer), their logits;
        (null score, start logit, end logit).
    """
    found, null = [np.zeros((3, 0), np.int64)], (NO_SCORE, 0, 0)
    logits = [np.zeros((2, 0))]
    null_row = rows.start
    for row in rows:
        begin, length = features.row_splits[row], features.row_splits[row + 1] - features.row_splits[row]
        start_logits, end_logits = (np.asarray(outputs[name][row], np.float64)
                                    for name in ("start_logits", "end_logits"))
        if start_logits[0] + end_logits[0] < null[0]:
            null = (start_logits[0] + end_logits[0], start_logits[0], end_logits[0])
            null_row = row
        starts, ends = _best(start_logits, settings.n_best_size), _best(end_logits, settings.n_best_size)
        in_context = features.tokens["token_ends"][begin : begin + length] > 0
        is_start = in_context & features.tokens["is_max_context"][begin : begin + length]
        starts, ends = starts[starts < length], ends[ends < length]
        starts, ends = starts[is_start[starts]], ends[in_context[ends]]
        sizes = ends - starts[:, None] + 1
        first, last = np.nonzero((sizes > 0) & (sizes <= settings.max_answer_length))
        first, last = starts[first], ends[last]
        found.append(np.stack([np.full_like(first, row), first, last]))
        logits.append(np.stack([start_logits[first], end_logits[last]]))
    if settings.version_2_with_negative:
        found.append(np.array([[null_row], [0], [0]]))
        logits.append(np.array(null[1:], np.float64)[:, None])
    found, logits = np.concatenate(found, axis=1), np.concatenate(logits, axis=1)
    order = np.argsort(-(logits[0] + logits[1]), kind="stable")
    return (*found[:, order], *logits[:, order]), tuple(map(float, null))


def _best(logits, count):
    """Positions of the greatest logits, the greatest first, of equal ones the first."""
    return np.argsort(-logits, kind="stable")[:count]


class _TextWriter:
    """Texts of spans.

    Args:
        features, vocabulary, do_lower_case, answer_text: as in `find_answers`.
    """

    def __init__(self, features, vocabulary, do_lower_case, answer_text):
        self._features, self._vocabulary, self._answer_text = features, vocabulary, answer_text
        self._rules = TextRules(do_lower_case)
        self._tokenized = {}  # by word: the release's basic tokens of it, joined by spaces
        self._paragraph, self._words, self._word_starts = None, [], []

    def text(self, question, row, start, end):
        """The text of positions start to end, inclusive, of a row."""
        tokens, begin = self._features.tokens, self._features.row_splits[row]
        first, last = int(tokens["token_starts"][begin + start]), int(tokens["token_starts"][begin + end])
        if self._answer_text == "offsets":
            return question.paragraph.context[first : tokens["token_ends"][begin + end]]
        if question.paragraph is not self._paragraph:
            self._paragraph = question.paragraph
            self._words, self._word_starts = squad_files.words(question.paragraph.context)
            self._word_starts = np.array(self._word_starts)
        first, last = np.searchsorted(self._word_starts, (first, last), "right") - 1
        words = self._words[first : last + 1]
        pieces = self._vocabulary.tokens_of(tokens["input_ids"][begin + start : begin + end + 1])
        predicted = " ".join(pieces).replace(" ##", "").replace("##", "")
        tokenized = filter(None, map(self._tokens, words))
        return _find_in_original(predicted, " ".join(words), " ".join(tokenized))

    def _tokens(self, word):
        if word not in self._tokenized:
            self._tokenized[word] = " ".join(self._rules.words(word))
        return self._tokenized[word]


def get_final_text(predicted, original, do_lower_case):
    """The part of a text that word pieces stand for, as the release finds it.

    Args:
        predicted: str, the pieces joined to words, with a space between words.
        original: str, the words of the context that the pieces are of.
        do_lower_case: whether the pieces are lower-cased and without accents.

    Returns:
        str: a part of `original`, or all of it where the pieces are not found.
    """
    return _find_in_original(predicted, original, " ".join(TextRules(do_lower_case).words(original)))


def _find_in_original(predicted, original, tokenized):
    """Looks `predicted` up in the tokenized words, and counts the characters that are no spaces up to there."""
    start = tokenized.find(predicted)
    if start < 0 or not predicted:
        return original
    places = [place for place, character in enumerate(original) if character != " "]
    if len(places) != len(tokenized) - tokenized.count(" "):
        return original
    first = start - tokenized.count(" ", 0, start)
    last = first + len(predicted) - predicted.count(" ") - 1
    return original[places[first] : places[last] + 1]


def write(folder, questions, answers, threshold):
    """Writes the release's `predictions.json`, `nbest_predictions.json` and, with null odds, `null_odds.json`.

    Args:
        folder: str.
        questions: list of `squad_files.Question`.
        answers: list of Answers, one for each question.
        threshold: null odds over which a question has no answer.

    Returns:
        list of str, the paths.
    """
    contents = {
        "predictions": {question.id: found.text(threshold) for question, found in zip(questions, answers)},
        "nbest_predictions": {question.id: _nbest_entries(found.nbest) for question, found in zip(questions, answers)},
    }
    if any(found.null_odds is not None for found in answers):
        contents["null_odds"] = {question.id: found.null_odds for question, found in zip(questions, answers)}
    paths = []
    for name, content in contents.items():
        paths.append(os.path.join(folder, f"{name}.json"))
        files.write_text(paths[-1], json.dumps(content, indent=4) + "\n")
    return paths


def _nbest_entries(nbest):
    """Entries of nbest_predictions.json, with probabilities over the n best."""
    scores = [start_logit + end_logit for _, start_logit, end_logit in nbest]
    powers = [math.exp(score - max(scores)) for score in scores]
    total = sum(powers)
    return [{"text": text, "probability": power / total, "start_logit": start_logit, "end_logit": end_logit}
            for (text, start_logit, end_logit), power in zip(nbest, powers)]

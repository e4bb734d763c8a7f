"""Logits to answers: the best spans of each question, their text, and the score of having no answer.

The release's `write_predictions`. By default the text of an answer is the result of its `get_final_text`, which
searches the words around the answer's pieces for them. The characters that the pieces cover (`answer_text="offsets"`)
are the same text except where that search fails:
    - it returns all of the words where a piece is unknown, where lower-casing changes their number of characters (for
      example of a decomposed é), or where they contain a space that does not separate words in the release (such as
      U+2009);
    - pieces that occur twice in the words are found at the first place;
    - several spaces in a row become one space, as does a line feed.
"""

import dataclasses
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from foundation import files
from inputs.features import Features
from tasks.squad import files as squad_files
from tasks.squad.files import Paragraph, Question, SquadSettings
from tokenization.text_rules import TextRules
from tokenization.vocabulary import Vocabulary

_Outputs = Mapping[str, Sequence[np.ndarray]]  # `start_logits` and `end_logits`, float [length of the row, or more]
_Entry = tuple[str, float, float]  # text, start logit, end logit

# The release's null score of a question before any of its windows is seen. Here also the null odds of a question
# without an answer in any window, where the release crashes (its issue 476).
NO_SCORE = 1000000


@dataclasses.dataclass(frozen=True)
class Answers:
    """The answers found to one question.

    Attributes:
        nbest: texts with start and end logit, best first; the text "" means no answer.
        null_odds: score of no answer minus that of the best answer; None where a question always has one.
    """

    nbest: list[_Entry]
    null_odds: float | None

    @property
    def best(self) -> str:
        """The best text that is an answer; "" where there is none."""
        return next((text for text, _, _ in self.nbest if text), "")

    def text(self, threshold: float) -> str:
        """The best text, or "" where the null odds exceed the threshold."""
        if self.null_odds is None:
            return self.nbest[0][0]
        return "" if self.null_odds > threshold else self.best


def find_answers(questions: Sequence[Question], features: Features, outputs: _Outputs, vocabulary: Vocabulary,
                 do_lower_case: bool, settings: SquadSettings) -> list[Answers]:
    """Finds the answers to all questions.

    Args:
        questions: the examples.
        features: made of them for predicting (`tasks.squad.features.make_features`).
        outputs: `start_logits` and `end_logits`, each a sequence of float [length of the row, or more].
        vocabulary, do_lower_case: of the features' tokenizer.
        settings: how answers are chosen.

    Returns:
        answers to each question.
    """
    writer = _TextWriter(features, vocabulary, do_lower_case, settings.answer_text)
    rows = np.searchsorted(features.values["example_index"], np.arange(len(questions) + 1))
    return [_answers(question, range(first, end), features, outputs, writer, settings)
            for question, first, end in zip(questions, rows[:-1].tolist(), rows[1:].tolist())]


def _answers(question: Question, rows: range, features: Features, outputs: _Outputs, writer: "_TextWriter",
             settings: SquadSettings) -> Answers:
    spans, null = _spans(rows, features, outputs, settings)
    nbest: list[_Entry] = []
    seen = set()
    columns: list[list[Any]] = [column.tolist() for column in spans]
    for row, start, end, start_logit, end_logit in zip(*columns):
        if len(nbest) == settings.n_best_size:
            break
        text = writer.text(question, row, start, end) if start else ""
        if text not in seen or not start:
            seen.add(text)
            nbest.append((text, start_logit, end_logit))
    if not settings.version_2_with_negative:
        return Answers(nbest or [("empty", 0.0, 0.0)], None)  # the release's word
    null_score, null_start, null_end = null
    if "" not in seen:
        nbest.append(("", null_start, null_end))
    best = next((entry for entry in nbest if entry[0]), None)
    return Answers(nbest, null_score - best[1] - best[2] if best else float(NO_SCORE))


def _spans(rows: range, features: Features, outputs: _Outputs,
           settings: SquadSettings) -> tuple[tuple[np.ndarray, ...], tuple[float, float, float]]:
    """Possible spans of a question, best first, and the lowest null score with its logits.

    Returns:
        five arrays: row of the features, first and last position in it (0 for no answer), their logits;
        (null score, start logit, end logit).
    """
    null = (float(NO_SCORE), 0.0, 0.0)
    spans, logits = [np.zeros((3, 0), np.int64)], [np.zeros((2, 0))]
    null_row = rows.start
    for row in rows:
        begin, length = features.row_splits[row], features.row_splits[row + 1] - features.row_splits[row]
        start_logits, end_logits = (np.asarray(outputs[name][row], np.float64)
                                    for name in ("start_logits", "end_logits"))
        if start_logits[0] + end_logits[0] < null[0]:
            null = (float(start_logits[0] + end_logits[0]), float(start_logits[0]), float(end_logits[0]))
            null_row = row
        starts, ends = _best(start_logits, settings.n_best_size), _best(end_logits, settings.n_best_size)
        in_context = features.tokens["token_ends"][begin : begin + length] > 0
        is_start = in_context & features.tokens["is_max_context"][begin : begin + length]
        starts, ends = starts[starts < length], ends[ends < length]
        starts, ends = starts[is_start[starts]], ends[in_context[ends]]
        sizes = ends - starts[:, None] + 1
        first, last = np.nonzero((sizes > 0) & (sizes <= settings.max_answer_length))
        first, last = starts[first], ends[last]
        spans.append(np.stack([np.full_like(first, row), first, last]))
        logits.append(np.stack([start_logits[first], end_logits[last]]))
    if settings.version_2_with_negative:
        spans.append(np.array([[null_row], [0], [0]]))
        logits.append(np.array(null[1:], np.float64)[:, None])
    places, scores = np.concatenate(spans, axis=1), np.concatenate(logits, axis=1)
    order = np.argsort(-(scores[0] + scores[1]), kind="stable")
    return (*places[:, order], *scores[:, order]), null


def _best(logits: np.ndarray, count: int) -> np.ndarray:
    """Positions of the highest logits, the highest first, of equal ones the first."""
    return np.argsort(-logits, kind="stable")[:count]


class _TextWriter:
    """Texts of spans.

    Args:
        features, vocabulary, do_lower_case, answer_text: as in `find_answers`.
    """

    def __init__(self, features: Features, vocabulary: Vocabulary, do_lower_case: bool, answer_text: str) -> None:
        self._features, self._vocabulary, self._answer_text = features, vocabulary, answer_text
        self._rules = TextRules.of_casing(do_lower_case)
        self._tokenized: dict[str, str] = {}  # by word: the release's basic tokens of it, joined by spaces
        self._paragraph: Paragraph | None = None  # the last question's, with its words
        self._words: list[str] = []
        self._word_starts = np.zeros(0, np.int64)

    def text(self, question: Question, row: int, start: int, end: int) -> str:
        """The text of positions start to end, inclusive, of a row."""
        tokens, begin = self._features.tokens, self._features.row_splits[row]
        first, last = int(tokens["token_starts"][begin + start]), int(tokens["token_starts"][begin + end])
        if self._answer_text == "offsets":
            return question.paragraph.context[first : tokens["token_ends"][begin + end]]
        if question.paragraph is not self._paragraph:
            self._paragraph = question.paragraph
            self._words, starts = squad_files.words(question.paragraph.context)
            self._word_starts = np.array(starts)
        first, last = np.searchsorted(self._word_starts, (first, last), "right") - 1
        words = self._words[first : last + 1]
        pieces = self._vocabulary.tokens_of(tokens["input_ids"][begin + start : begin + end + 1])
        predicted = " ".join(pieces).replace(" ##", "").replace("##", "")
        tokenized = filter(None, map(self._tokens, words))
        return _find_in_original(predicted, " ".join(words), " ".join(tokenized))

    def _tokens(self, word: str) -> str:
        if word not in self._tokenized:
            self._tokenized[word] = " ".join(self._rules.words(word))
        return self._tokenized[word]


def get_final_text(predicted: str, original: str, do_lower_case: bool) -> str:
    """The part of a text that word pieces cover, as the release finds it.

    Args:
        predicted: the pieces joined to words, with a space between words.
        original: the words of the context that the pieces are of.
        do_lower_case: whether the pieces are lower-cased and without accents.

    Returns:
        a part of `original`, or all of it where the pieces are not found.
    """
    return _find_in_original(predicted, original, " ".join(TextRules.of_casing(do_lower_case).words(original)))


def _find_in_original(predicted: str, original: str, tokenized: str) -> str:
    """Finds `predicted` in the tokenized words, and the same place in the original by counting all but spaces."""
    start = tokenized.find(predicted)
    if start < 0 or not predicted:
        return original
    places = [place for place, character in enumerate(original) if character != " "]
    if len(places) != len(tokenized) - tokenized.count(" "):
        return original
    first = start - tokenized.count(" ", 0, start)
    last = first + len(predicted) - predicted.count(" ") - 1
    return original[places[first] : places[last] + 1]


def write(folder: str, questions: Sequence[Question], answers: Sequence[Answers], threshold: float) -> list[str]:
    """Writes the release's `predictions.json`, `nbest_predictions.json` and, with null odds, `null_odds.json`.

    Args:
        folder: where to.
        questions: the examples.
        answers: to each question.
        threshold: null odds above which a question has no answer.

    Returns:
        paths of the files.
    """
    contents: dict[str, Any] = {
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


def _nbest_entries(nbest: Sequence[_Entry]) -> list[dict[str, Any]]:
    """Entries of nbest_predictions.json, with probabilities over the n best."""
    scores = [start_logit + end_logit for _, start_logit, end_logit in nbest]
    powers = [math.exp(score - max(scores)) for score in scores]
    total = sum(powers)
    return [{"text": text, "probability": power / total, "start_logit": start_logit, "end_logit": end_logit}
            for (text, start_logit, end_logit), power in zip(nbest, powers)]

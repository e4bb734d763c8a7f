"""Questions and contexts to rows of a model: `[CLS] question [SEP] window [SEP]`, windows with a stride.

The release's `convert_examples_to_features`, over thousands of questions at a time: a context is tokenised once, for
all of its questions, and rows are filled by runs of ids.
"""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inputs.features import Features, runs, splits_of
from tasks.squad.files import SPACES, Question, SquadSettings
from tokenization.text_rules import code_points

if TYPE_CHECKING:
    from tokenization.tokenizer import Pieces, Tokenizer

FIRST_UNIQUE_ID = 1000000000  # the release's
# Characters of contexts encoded at a time, counted again in each window: enough for arrays to be fast, few enough to
# need little memory compared with a whole data set.
_CHUNK = 1 << 20


def make_features(questions: Sequence[Question], tokenizer: "Tokenizer", settings: SquadSettings,
                  training: bool) -> Features:
    """Makes the rows of questions, those of a question one after the other.

    Args:
        questions: for training those that are `tasks.squad.files.trainable`.
        tokenizer: makes the word pieces.
        settings: the sizes of windows.
        training: add answer positions, and leave out the columns that only predicting needs.

    Returns:
        one row for each window. Token columns `input_ids`, `segment_ids`; for predicting also `token_starts` and
        `token_ends`, the characters of the context that a piece covers (0 and 0 where it is not of the context), and
        `is_max_context`, bool: no other window of the question has more context around this piece.
        Values, int32 [rows]: `unique_ids`, `example_index` (into `questions`), `doc_span_index`; for training
        `start_positions`, `end_positions` (0, which is [CLS], where the window does not hold the answer) and
        `is_impossible`.
    """
    overlap = max(1, settings.max_seq_length // settings.doc_stride)
    sizes = np.cumsum([0] + [len(question.paragraph.context) * overlap for question in questions])
    bounds = [0, *(1 + np.flatnonzero(np.diff(sizes[:-1] // _CHUNK))), len(questions)]
    chunks = [_encode(questions[first:end], first, tokenizer, settings, training)
              for first, end in itertools.pairwise(bounds)]
    tokens, chunk_lengths, chunk_values = zip(*chunks)
    lengths, values = np.concatenate(chunk_lengths), _joined(chunk_values)
    values["unique_ids"] = FIRST_UNIQUE_ID + np.arange(len(lengths), dtype=np.int32)
    return Features(_joined(tokens), splits_of(lengths), values)


def _joined(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _encode(questions: Sequence[Question], first: int, tokenizer: "Tokenizer", settings: SquadSettings,
            training: bool) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, np.ndarray]]:
    """Token columns, row lengths int64 [rows] and values of one chunk, whose first question has index `first`."""
    paragraphs = list(dict.fromkeys(question.paragraph for question in questions))
    index = {paragraph: number for number, paragraph in enumerate(paragraphs)}
    paragraph = np.array([index[question.paragraph] for question in questions], np.int64)
    contexts = [each.context for each in paragraphs]
    pieces = tokenizer.encode_lines_with_offsets(contexts)
    query_ids, query_splits = tokenizer.encode_lines([question.text for question in questions])
    query_lengths = np.minimum(np.diff(query_splits), settings.max_query_length)

    windows = _cut(np.diff(pieces.row_splits)[paragraph], query_lengths, settings)
    lengths = query_lengths[windows.question] + windows.length + 3
    splits = splits_of(lengths)
    vocabulary = tokenizer.vocabulary

    # Each row: [CLS], the question, [SEP], its window of the context, [SEP].
    ids = np.empty(splits[-1], np.int32)
    ids[splits[:-1]] = vocabulary.cls_id
    ids[splits[1:] - 1] = vocabulary.sep_id
    window_at = splits[:-1] + query_lengths[windows.question] + 2
    ids[window_at - 1] = vocabulary.sep_id
    asked = query_lengths[windows.question]
    ids[runs(splits[:-1] + 1, asked)] = query_ids[runs(query_splits[:-1][windows.question], asked)]
    context_at = runs(window_at, windows.length)
    source = runs(pieces.row_splits[paragraph][windows.question] + windows.start, windows.length)
    ids[context_at] = pieces.ids[source]
    segments = np.zeros(splits[-1], np.int32)
    segments[runs(window_at, windows.length + 1)] = 1

    tokens = {"input_ids": ids, "segment_ids": segments}
    values = {"example_index": (first + windows.question).astype(np.int32),
              "doc_span_index": windows.number.astype(np.int32)}
    if training:
        begins, ends = _answer_pieces(questions, paragraph, contexts, pieces, tokenizer)
        values |= _positions(windows, window_at - splits[:-1], begins, ends)
        impossible = np.array([question.is_impossible for question in questions], np.int32)
        values["is_impossible"] = impossible[windows.question]
    else:
        for name, column in (("token_starts", pieces.starts[source]), ("token_ends", pieces.ends[source]),
                             ("is_max_context", _is_max_context(windows))):
            tokens[name] = np.zeros(splits[-1], column.dtype)
            tokens[name][context_at] = column
    return tokens, lengths, values


class _Windows(NamedTuple):
    """Windows of the contexts of a chunk, each array int64 [windows].

    Fields:
        question: which of the chunk's questions.
        number: which of the question's windows.
        start, length: the pieces of the context that it holds.
        stride: pieces from one window of the question to the next.
    """

    question: np.ndarray
    number: np.ndarray
    start: np.ndarray
    length: np.ndarray
    stride: np.ndarray


def _cut(context_lengths: np.ndarray, query_lengths: np.ndarray, settings: SquadSettings) -> _Windows:
    """Windows of contexts and questions of these many pieces; both int64 [questions]."""
    room = settings.max_seq_length - 3 - query_lengths
    stride = np.minimum(settings.doc_stride, room)  # no piece is skipped
    rest = np.maximum(context_lengths - room, 0)
    counts = np.where(context_lengths > 0, 1 + -(-rest // stride), 0)
    question = np.repeat(np.arange(len(counts)), counts)
    index = runs(np.zeros(len(counts), np.int64), counts)
    start = index * stride[question]
    length = np.minimum(room[question], context_lengths[question] - start)
    return _Windows(question, index, start, length, stride[question])


def _is_max_context(windows: _Windows) -> np.ndarray:
    """Whether a window has the most context around each of its pieces, bool [sum of lengths].

    Context is the smaller number of pieces, to the left or to the right, plus 0.01 of the window's length; of windows
    with equal context, the first counts (the release's `_check_is_max_context`).
    """
    row = np.repeat(np.arange(len(windows.start)), windows.length)
    place = runs(windows.start, windows.length)
    bonus = 0.01 * windows.length
    end = windows.start + windows.length - 1
    counts = np.bincount(windows.question)[windows.question] if len(row) else windows.number
    own = np.minimum(place - windows.start[row], end[row] - place) + bonus[row]
    is_max = np.ones(len(row), bool)
    # A window overlaps only a few before and after it: a short loop over them, with arrays over all pieces.
    for step in range(1, int(((windows.length - 1) // windows.stride).max(initial=0)) + 1):
        for sign in (-1, 1):
            number = windows.number + sign * step
            exists = (number >= 0) & (number < counts)
            other = np.where(exists, np.arange(len(number)) + sign * step, 0)[row]
            holds = exists[row] & (place >= windows.start[other]) & (place <= end[other])
            score = np.minimum(place - windows.start[other], end[other] - place) + bonus[other]
            is_max &= ~(holds & (score >= own if sign < 0 else score > own))
    return is_max


def _answer_pieces(questions: Sequence[Question], paragraph: np.ndarray, contexts: Sequence[str],
                   pieces: "Pieces", tokenizer: "Tokenizer") -> np.ndarray:
    """First and last piece of each answer in its context, int64 [2, questions]; -1 where there is none.

    An answer covers whole words, as white space separates them, or the pieces of them that are exactly its own pieces
    (the release's `_improve_answer_span`: of "1895-1943", only 1895).
    """
    context_at = splits_of([len(context) + 1 for context in contexts])
    points = code_points("".join(context + "\n" for context in contexts))
    is_space = np.isin(points, code_points(SPACES))
    word = np.cumsum(~is_space & np.concatenate([[True], is_space[:-1]]))
    counts = np.diff(pieces.row_splits)
    word_of_piece = word[np.repeat(context_at[:-1], counts) + pieces.starts]

    answered = np.array([not question.is_impossible for question in questions], bool)
    answers = [_answer(question) for question in questions if not question.is_impossible]
    first = context_at[paragraph[answered]] + np.array([start for _, start in answers], np.int64)
    last = first + np.array([len(text) - 1 for text, _ in answers], np.int64)
    begins = np.searchsorted(word_of_piece, word[first], "left")
    ends = np.searchsorted(word_of_piece, word[last], "right") - 1
    own_ids, own_splits = tokenizer.encode_lines([text for text, _ in answers])
    for number, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist())):
        own = own_ids[own_splits[number] : own_splits[number + 1]]
        place = _find(own, pieces.ids[begin : end + 1])
        if place >= 0:
            begins[number], ends[number] = begin + place, begin + place + len(own) - 1
    base = pieces.row_splits[paragraph[answered]]
    spans = np.full((2, len(questions)), -1, np.int64)
    spans[:, answered] = begins - base, ends - base
    return spans


def _answer(question: Question) -> tuple[str, int]:
    """The text and the first character of the answer to train on; `tasks.squad.files.trainable` has checked both."""
    assert question.answers and question.answers[0][1] is not None
    return question.answers[0][0], question.answers[0][1]


def _find(sought: np.ndarray, ids: np.ndarray) -> int:
    """Where an int32 array first occurs in another; -1 where it does not, or is empty."""
    sought_bytes, bytes_ = sought.tobytes(), ids.tobytes()
    place = bytes_.find(sought_bytes) if sought_bytes else -1
    while place % 4 and place >= 0:
        place = bytes_.find(sought_bytes, place + 1)
    return place // 4


def _positions(windows: _Windows, window_at: np.ndarray, begins: np.ndarray,
               ends: np.ndarray) -> dict[str, np.ndarray]:
    """Labels of windows; `window_at` is where in its row a window begins."""
    begin, end = begins[windows.question] - windows.start, ends[windows.question] - windows.start
    holds = (begins[windows.question] >= 0) & (begin >= 0) & (end < windows.length)
    return {"start_positions": np.where(holds, begin + window_at, 0).astype(np.int32),
            "end_positions": np.where(holds, end + window_at, 0).astype(np.int32)}

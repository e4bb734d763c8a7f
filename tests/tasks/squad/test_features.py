"""SQuAD windows, as recorded of the release."""

import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundation.errors import BertError
from inputs.features import Features
from tasks.squad import features as squad_features
from tasks.squad import files as squad_files
from tasks.squad.files import Paragraph, Question, SquadSettings
from tests.tasks.squad import golden as squad_golden

TRAIN, EVAL, LONG = "train_128_48", "eval_128_48", "train_384_128"


@pytest.fixture(scope="module")
def recorded():
    return json.loads(squad_golden.text("golden_features.json"))


def made_as(recorded, training):
    questions = squad_files.read(squad_golden.QUESTIONS)
    if recorded["is_training"]:
        questions, _ = squad_files.trainable(questions, True, squad_golden.QUESTIONS)
    windows = SquadSettings(**{name: recorded[name] for name in ("max_seq_length", "doc_stride", "max_query_length")})
    return questions, squad_features.make_features(questions, squad_golden.tokenizer(), windows, training)


def rows(features, column):
    return [part.tolist() for part in np.split(features.tokens[column], features.row_splits[1:-1])]


@pytest.mark.parametrize("setting", [TRAIN, EVAL, LONG])
def test_windows_are_the_release_s(recorded, setting):
    _, features = made_as(recorded[setting], recorded[setting]["is_training"])
    expected = recorded[setting]["features"]
    assert rows(features, "input_ids") == [each["input_ids"] for each in expected]
    assert [sum(row) for row in rows(features, "segment_ids")] == [each["n_seg1"] for each in expected]
    for ours, theirs in (("unique_ids", "unique_id"), ("example_index",) * 2, ("doc_span_index",) * 2):
        assert features.values[ours].tolist() == [each[theirs] for each in expected]


@pytest.mark.parametrize("setting", [TRAIN, LONG])
def test_answer_positions_are_the_release_s(recorded, setting):
    _, features = made_as(recorded[setting], training=True)
    expected = recorded[setting]["features"]
    assert features.values["start_positions"].tolist() == [each["start_position"] for each in expected]
    assert features.values["end_positions"].tolist() == [each["end_position"] for each in expected]
    assert features.values["is_impossible"].tolist() == [each["is_impossible"] for each in expected]


@pytest.mark.parametrize("setting", [TRAIN, EVAL, LONG])
def test_pieces_know_their_words_and_their_best_window_as_in_the_release(recorded, setting):
    questions, features = made_as(recorded[setting], training=False)
    columns = zip(*(rows(features, name) for name in ("token_starts", "token_ends", "is_max_context")), strict=True)
    for (starts, ends, is_max), expected in zip(columns, recorded[setting]["features"], strict=True):
        in_context = np.array(ends) > 0
        word_starts = squad_files.words(questions[expected["example_index"]].paragraph.context)[1]
        words = np.searchsorted(word_starts, np.array(starts)[in_context], "right") - 1
        assert words.tolist() == expected["tok_to_orig"]
        assert "".join(str(int(flag)) for flag in np.array(is_max)[in_context]) == expected["max_ctx"]


def test_features_do_not_depend_on_how_many_are_made_at_a_time(recorded, monkeypatch):
    whole = [made_as(recorded[TRAIN], training)[1] for training in (True, False)]
    monkeypatch.setattr(squad_features, "_CHUNK", 3000)
    for training, expected in zip((True, False), whole, strict=True):
        _, parts = made_as(recorded[TRAIN], training)
        np.testing.assert_array_equal(parts.row_splits, expected.row_splits)
        for kind in ("tokens", "values"):
            ours, theirs = getattr(parts, kind), getattr(expected, kind)
            assert ours.keys() == theirs.keys()
            for name in ours:
                np.testing.assert_array_equal(ours[name], theirs[name])


def test_features_are_saved_and_loaded(recorded):
    _, features = made_as(recorded[EVAL], training=False)
    file = io.BytesIO()
    features.save(file)
    loaded = Features.load(io.BytesIO(file.getvalue()))
    assert loaded.tokens["is_max_context"].dtype == bool
    np.testing.assert_array_equal(loaded.tokens["token_ends"], features.tokens["token_ends"])


def ask(context, text="what is it ?", answers=(("the", 0),), is_impossible=False):
    return Question(text, text, Paragraph("", context), answers, is_impossible)


def test_empty_context_has_no_window():
    questions = [ask(""), ask("the duties"), ask(" \n ")]
    for some in (questions, [questions[0]], []):
        features = squad_features.make_features(some, squad_golden.tokenizer(), SquadSettings(), training=False)
        assert len(features) == sum(each.paragraph.context == "the duties" for each in some)
        assert set(features.tokens) == {"input_ids", "segment_ids", "token_starts", "token_ends", "is_max_context"}


def test_window_without_the_answer_points_to_cls():
    context = "the duties of the senate of the house of the country"
    windows = SquadSettings(max_seq_length=10, doc_stride=3, max_query_length=2)
    answer = ("senate of the house", context.index("senate"))
    features = squad_features.make_features([ask(context, answers=(answer,))], squad_golden.tokenizer(), windows, True)
    # "senate" is piece 4; windows of five pieces, from 0, 3 and 6, follow [CLS], 2 of the question and [SEP].
    assert features.values["start_positions"].tolist() == [0, 5, 0]
    assert features.values["end_positions"].tolist() == [0, 8, 0]


def test_answer_is_narrowed_to_its_own_pieces():
    context = "(of-the-senate) duties"
    features = squad_features.make_features(
        [ask(context, answers=(("the", 4),)), ask(context, answers=(("of-the", 1),))],
        squad_golden.tokenizer(), SquadSettings(), True)
    pieces = [squad_golden.tokenizer().vocabulary.tokens_of(row) for row in rows(features, "input_ids")]
    begins, ends = features.values["start_positions"], features.values["end_positions"]
    assert [row[begin : end + 1] for row, begin, end in zip(pieces, begins, ends, strict=True)] == [
        ["the"], ["of", "-", "the"]]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 20))
def test_each_piece_is_in_the_best_of_its_windows(length, room, stride):
    windows = squad_features._cut(np.array([length, 7]), np.array([3, 3]), SquadSettings(
        max_seq_length=room + 6, doc_stride=stride, max_query_length=3))
    spans = [(int(first), int(size)) for question, first, size in
             zip(windows.question, windows.start, windows.length, strict=True) if question == 0]
    flags = np.split(squad_features._is_max_context(windows), np.cumsum(windows.length)[:-1])
    for piece in range(length):
        scores = [(min(piece - first, first + size - 1 - piece) + 0.01 * size, -number)
                  for number, (first, size) in enumerate(spans) if first <= piece < first + size]
        best = -max(scores)[1]
        assert [number for number, (first, size) in enumerate(spans)
                if first <= piece < first + size and flags[number][piece - first]] == [best]


@pytest.mark.parametrize(("values", "message"), [
    ((64, 16, 64), "--max_seq_length=64 leaves no room for a context after --max_query_length=64"),
    ((67, 16, 64), "--max_seq_length=67 leaves no room"),
    ((67, 16, 0), "--max_query_length=0: must be at least 1"),
    ((128, 0, 64), "--doc_stride=0: must be at least 1"),
])
def test_impossible_windows_are_refused(values, message):
    with pytest.raises(BertError, match=message):
        SquadSettings(**dict(zip(("max_seq_length", "doc_stride", "max_query_length"), values)))

"""The tokenizer without TensorFlow gives the ids of the other one, and of the release."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenization.hard_text import PIECES, SPECIAL, texts, words
from tokenization import word_table
from tokenization.text_rules import CODE_POINTS
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary
from tokenization.word_table import WordTable


def test_ids_are_the_recorded_ones(vocabulary, recorded_lines, casing):
    table = WordTable(vocabulary, do_lower_case=casing == "uncased")
    ids, row_splits = table.encode_lines([line["text"] for line in recorded_lines])
    assert ids.dtype == np.int32 and row_splits.dtype == np.int64
    for line, start, end in zip(recorded_lines, row_splits, row_splits[1:]):
        assert ids[start:end].tolist() == line[casing], line["text"]


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def both(request):
    vocabulary = Vocabulary(PIECES)
    return (WordTable(vocabulary, request.param, max_input_chars_per_word=8),
            Tokenizer(vocabulary, request.param, max_input_chars_per_word=8))


@settings(deadline=None, max_examples=300)
@given(st.lists(texts() | words(), max_size=5))
def test_ids_are_those_of_the_native_tokenizer(both, lines):
    for ours, theirs in zip(*(each.encode_lines(lines) for each in both)):
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("around", ["ab{}bc", ".{}"])
def test_every_code_point_is_treated_alike(both, around):
    # Beyond the third plane nearly all are alike.
    points = [chr(point) for point in (*range(0x30000), *range(0x30000, CODE_POINTS, 61), *range(0xE0000, 0xE1000))]
    points.remove("\n")
    texts = [around.format(point) for point in points]
    lines = [" ".join(texts[start : start + 100]) for start in range(0, len(texts), 100)]
    for ours, theirs in zip(*(each.encode_lines(lines) for each in both)):
        np.testing.assert_array_equal(ours, theirs)


def test_small_slices_and_a_full_table_change_nothing(vocabulary, recorded_lines, casing, monkeypatch):
    lines = [line["text"] for line in recorded_lines]
    expected = WordTable(vocabulary, casing == "uncased").encode_lines(lines)
    monkeypatch.setattr(word_table, "_SLICE", 300)
    monkeypatch.setattr(word_table, "_MAX_WORDS", 20)
    for part, whole in zip(WordTable(vocabulary, casing == "uncased").encode_lines(lines), expected):
        np.testing.assert_array_equal(part, whole)


def test_no_lines_and_empty_lines():
    table = WordTable(Vocabulary(PIECES))
    ids, row_splits = table.encode_lines([])
    assert len(ids) == 0 and row_splits.tolist() == [0]
    ids, row_splits = table.encode_lines(["", "\u200b", "ab", "  ", ""])
    assert table.vocabulary.tokens_of(ids) == ["ab"] and row_splits.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(("length", "known"), [(200, True), (201, False)])
def test_a_word_of_more_than_200_characters_is_unknown(length, known):
    table = WordTable(Vocabulary([*SPECIAL, "a", "##a"]))
    assert len(table.encode_lines(["a" * length])[0]) == (length if known else 1)

"""The offline tokenizer: the release's ids, and offsets into the original text."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundation.errors import BertError
from tests.tokenization import release
from tests.tokenization.hard_text import PIECES, SPECIAL, texts, words
from tokenization import tokenizer as tokenizer_module
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def tokenizer(vocabulary, casing):
    return Tokenizer(vocabulary, do_lower_case=casing == "uncased")


@pytest.fixture(scope="module")
def small():
    return Tokenizer(Vocabulary(PIECES), max_input_chars_per_word=4)


def covered(tokenizer, text):
    ids, starts, ends = tokenizer.encode_with_offsets(text)
    return [(token, text[start:end]) for token, start, end in zip(tokenizer.vocabulary.tokens_of(ids), starts, ends)]


def test_ids_are_the_recorded_ones(tokenizer, recorded_lines, casing):
    ids, row_splits = tokenizer.encode_lines([line["text"] for line in recorded_lines])
    assert ids.dtype == np.int32 and row_splits.dtype == np.int64
    for line, start, end in zip(recorded_lines, row_splits, row_splits[1:]):
        assert ids[start:end].tolist() == line[casing], line["text"]


def test_one_text_at_a_time_gives_the_same_ids(tokenizer, recorded_lines, casing):
    for line in recorded_lines[::40]:
        assert tokenizer.encode(line["text"]).tolist() == line[casing]


def test_batches_of_any_size_give_the_same(tokenizer, recorded_lines, monkeypatch):
    lines = [line["text"] for line in recorded_lines[::9]]
    whole = tokenizer.encode_lines_with_offsets(lines)
    monkeypatch.setattr(tokenizer_module, "_SLICE", 700)
    for part, expected in zip(tokenizer.encode_lines_with_offsets(lines), whole):
        np.testing.assert_array_equal(part, expected)
    for part, expected in zip(tokenizer.encode_lines(lines), whole):
        np.testing.assert_array_equal(part, expected)


def test_no_lines_and_empty_lines(small):
    ids, row_splits = small.encode_lines([])
    assert len(ids) == 0 and row_splits.tolist() == [0]
    ids, row_splits = small.encode_lines(["", "\u200b", "ab", "  ", ""])
    assert small.vocabulary.tokens_of(ids) == ["ab"] and row_splits.tolist() == [0, 0, 0, 1, 1, 1]
    assert [len(part) for part in small.encode_with_offsets("")] == [0, 0, 0]


def test_a_word_does_not_run_on_into_the_next_line(small):
    ids, row_splits = small.encode_lines(["ab", "c", "ΑΣ", "Α"])
    assert np.diff(row_splits).tolist() == [1, 1, 1, 1]
    assert small.vocabulary.tokens_of(ids)[:2] == ["ab", "c"]


def test_tokenize_names_the_pieces(small):
    assert small.tokenize("ABC, abcd\x00 zz") == ["abc", "[UNK]", "abc", "##d", "[UNK]"]


def test_special_tokens_in_text_are_split_as_any_text():
    tokenizer = Tokenizer(Vocabulary([*SPECIAL, "[", "]", "mask"]))
    assert tokenizer.tokenize("[MASK]") == ["[", "mask", "]"]


@pytest.mark.parametrize(("length", "known"), [(200, True), (201, False)])
@pytest.mark.parametrize("letter", ["a", "é", "각", "a\u0301", "a\u200b"])
def test_a_word_of_more_than_200_characters_is_unknown(letter, length, known):
    """Characters are counted after the text rules: a syllable of three jamo counts three, a stripped accent none."""
    letters = ["a", "e", *"\u1100\u1161\u11a8"]
    tokenizer = Tokenizer(Vocabulary([*SPECIAL, *letters, *(f"##{one}" for one in letters)]))
    normal = 3 if letter == "각" else 1
    word = letter * (length // normal) + "a" * (length % normal)
    pieces = tokenizer.tokenize(f"a {word}.{word} a")
    assert len(pieces) == (2 * length + 3 if known else 5)
    ids, starts, ends = tokenizer.encode_with_offsets(f"a {word} a")
    assert (starts[1], starts[-1]) == (2, len(word) + 3)
    assert known or (len(ids) == 3 and word.removesuffix("\u200b") == f"a {word} a"[starts[1] : ends[1]])


def test_offsets_point_into_the_original_text():
    tokenizer = Tokenizer(Vocabulary([*SPECIAL, "cafe", "re", "##sume", "##s", "i", "##st", ".", "中"]))
    text = " \x00Café re\u0301sume\u0301s  \u200bİst中. zz\u0301z"
    assert covered(tokenizer, text) == [
        ("cafe", "Café"), ("re", "re\u0301"), ("##sume", "sume\u0301"), ("##s", "s"), ("i", "İ"), ("##st", "st"),
        ("中", "中"), (".", "."), ("[UNK]", "zz\u0301z")]


def test_pieces_of_one_syllable_cover_that_syllable():
    tokenizer = Tokenizer(Vocabulary([*SPECIAL, "\u1112", "##\u1161", "##\u11ab", "a"]))
    assert covered(tokenizer, "a 한") == [("a", "a"), ("\u1112", "한"), ("##\u1161", "한"), ("##\u11ab", "한")]


def test_offsets_after_disputed_punctuation_and_stand_ins(small):
    assert covered(small, "a\u166db \u1b4ea\u1b4e") == [
        ("a", "a"), ("\u166d", "\u166d"), ("b", "b"), ("\u1b4ea", "\u1b4ea"), ("##\u1b4e", "\u1b4e")]


def test_offsets_of_recorded_lines_cover_each_word_once(tokenizer, recorded_lines):
    """In order, within the line, and what lies between the pieces is white space, dropped or a stripped accent."""
    lines = [line["text"] for line in recorded_lines]
    pieces = tokenizer.encode_lines_with_offsets(lines)
    assert pieces.starts.dtype == pieces.ends.dtype == np.int32
    between = release.WHITESPACE | release.SPLITS | release.CONTROL | release.REMOVED | release.NONSPACING
    for text, start, end in zip(lines, pieces.row_splits, pieces.row_splits[1:]):
        starts, ends = pieces.starts[start:end], pieces.ends[start:end]
        assert (starts < ends).all() and (np.diff(starts) >= 0).all() and (np.diff(ends) >= 0).all()
        gaps = zip(np.concatenate([[0], ends]), np.append(starts, len(text)))
        assert all(release.has(character, between) for first, last in gaps for character in text[first:last])


def test_a_lone_surrogate_makes_its_word_unknown(small):
    assert small.tokenize("ab a\ud800b ab") == ["ab", "[UNK]", "ab"]


def test_travels_to_another_process(small):
    copy = pickle.loads(pickle.dumps(small))
    assert copy.max_input_chars_per_word == 4 and copy.tokenize("abcd abcde") == ["abc", "##d", "[UNK]"]


def test_a_piece_longer_than_tensorflow_text_holds_is_named():
    with pytest.raises(BertError, match="line 6: a word piece of more than 256 bytes"):
        Tokenizer(Vocabulary([*SPECIAL, "a" * 257]))


@pytest.fixture(scope="module")
def small_tokenizers():
    vocabulary = Vocabulary(PIECES)
    return {(lower, limit): Tokenizer(vocabulary, lower, limit) for lower in (True, False) for limit in (200, 4)}


@settings(deadline=None, max_examples=100)
@given(lines=st.lists(st.one_of(texts(), words()), max_size=6))
@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize("limit", [200, 4])
def test_pieces_are_those_of_the_release(do_lower_case, limit, lines, small_tokenizers):
    tokenizer = small_tokenizers[do_lower_case, limit]
    ids, row_splits = tokenizer.encode_lines(lines)
    for text, start, end in zip(lines, row_splits, row_splits[1:]):
        expected = release.tokenize(text, tokenizer.vocabulary.ids, do_lower_case, limit)
        assert tokenizer.vocabulary.tokens_of(ids[start:end]) == expected

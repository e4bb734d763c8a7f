"""Texts and pairs as token columns: the recorded ones, and the release's way of cutting."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inputs import text_pairs
from tests.tokenization import released_vocabulary
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary


@pytest.fixture(scope="module")
def recorded(golden):
    return json.loads((golden / "squad" / "golden_classifier_features_64.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(Vocabulary(released_vocabulary.tokens("uncased")))


@pytest.fixture(scope="module")
def letters():
    return Tokenizer(Vocabulary([*SPECIAL_TOKENS, "a", "b"]))


def test_rows_are_the_recorded_ones(recorded, tokenizer):
    rows, room = recorded["rows"], recorded["max_seq_length"]
    tokens, row_splits = text_pairs.pair_features(
        tokenizer, [row["text_a"] for row in rows], [row["text_b"] or "" for row in rows], room)
    assert {name: column.dtype for name, column in tokens.items()} == {"input_ids": np.int32, "segment_ids": np.int32}
    assert row_splits.dtype == np.int64 and len(row_splits) == len(rows) + 1
    for row, start, end in zip(rows, row_splits, row_splits[1:]):
        assert sum(row["input_mask"]) == end - start
        for name in tokens:
            assert tokens[name][start:end].tolist() == row[name][: end - start]


def test_single_texts_need_no_second_list(recorded, tokenizer):
    rows = [row for row in recorded["rows"] if not row["text_b"]]
    tokens, row_splits = text_pairs.pair_features(tokenizer, [row["text_a"] for row in rows], None, 64)
    lengths = [sum(row["input_mask"]) for row in rows]
    assert np.diff(row_splits).tolist() == lengths and not tokens["segment_ids"].any()
    assert tokens["input_ids"].tolist() == [token for row, n in zip(rows, lengths) for token in row["input_ids"][:n]]


def released_row(first, second, max_seq_length):
    """Ids and segments of one row, a token at a time as the release cuts."""
    first, second = list(first), list(second)
    is_pair = bool(second)
    while len(first) + len(second) > max_seq_length - (3 if is_pair else 2):
        (first if len(first) > len(second) else second).pop()
    tail = [*second, "[SEP]"] if second else []
    return ["[CLS]", *first, "[SEP]", *tail], [0] * (len(first) + 2) + [1] * len(tail)


@settings(deadline=None, max_examples=60)
@given(pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6), room=st.integers(3, 16))
def test_cut_as_the_release_cuts_a_token_at_a_time(letters, pairs, room):
    tokens, row_splits = text_pairs.pair_features(
        letters, [" ".join("a" * n) for n, _ in pairs], [" ".join("b" * n) for _, n in pairs], room)
    assert len(row_splits) == len(pairs) + 1
    for (n, m), start, end in zip(pairs, row_splits, row_splits[1:]):
        pieces, segments = released_row("a" * n, "b" * m, room)
        assert letters.vocabulary.tokens_of(tokens["input_ids"][start:end]) == pieces
        assert tokens["segment_ids"][start:end].tolist() == segments


def test_no_rows(letters):
    for second in (None, []):
        tokens, row_splits = text_pairs.pair_features_of_many(letters, [], second, 16, num_workers=2)
        assert row_splits.tolist() == [0] and tokens["input_ids"].shape == tokens["segment_ids"].shape == (0,)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_chunks_and_workers_change_nothing(letters, num_workers):
    first = ["a " * (n % 7) for n in range(60)]
    second = ["b " * (n % 5) for n in range(60)]
    expected, expected_splits = text_pairs.pair_features(letters, first, second, 8)
    tokens, row_splits = text_pairs.pair_features_of_many(letters, first, second, 8, num_workers, characters=50)
    np.testing.assert_array_equal(row_splits, expected_splits)
    for name in expected:
        np.testing.assert_array_equal(tokens[name], expected[name])

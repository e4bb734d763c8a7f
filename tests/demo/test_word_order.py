"""The demo's labelled set: half of the rows have each label, shuffling keeps the words, splits share no sentence."""

import pytest

from demo import word_order
from foundation.errors import BertError

SENTENCES = [" ".join(f"w{row}x{word}" for word in range(8 + row % 13)) for row in range(60)]


def test_half_of_the_sentences_are_shuffled_and_keep_their_words():
    rows = word_order.labelled(SENTENCES, 40, seed=0)
    known = {frozenset(sentence.split()): sentence for sentence in SENTENCES}
    assert [label for _, label in rows].count("shuffled") == 20 and len(rows) == 40
    for text, label in rows:
        assert (text == known[frozenset(text.split())]) == (label == "whole")


def test_sentences_that_are_too_short_or_too_long_are_left_out():
    assert word_order.labelled(["too short", " ".join(["long"] * 30)], 10, seed=0) == []


def test_splits_share_no_sentence(tmp_path):
    word_order.write_files(str(tmp_path), SENTENCES[:30], SENTENCES[30:])
    words = {split: [frozenset(line.split("\t")[0].split()) for line in
                     (tmp_path / f"{split}.tsv").read_text().splitlines()[1:]] for split in ("train", "dev", "test")}
    together = [each for rows in words.values() for each in rows]
    assert len(set(together)) == len(together) == 60


def test_text_without_sentences_of_medium_length_is_reported(tmp_path):
    with pytest.raises(BertError, match="too few sentences of 8 to 20 words for a labelled set"):
        word_order.write_files(str(tmp_path), ["one two"], ["three"])

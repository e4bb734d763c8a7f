"""Sentences as rows: every word is one row's own word, whatever its length and its neighbours'."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.ner import features as ner_features
from tasks.ner.files import Sentence
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

LABELS = ("O", "B-X", "I-X")
CONTROL = "\u200b"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(Vocabulary([*SPECIAL_TOKENS, "a", "##a", "b", "c", "d", "e", "f"]))


def sentence(words, tags="", document=0):
    return Sentence(tuple(words.split(" ")), tuple(tags.split()) or None, document, "f", 1)


def rows(features, tokenizer):
    """Each row's pieces, own words' first ones marked by * and their label."""
    shown = [f"{'*' * start}{tokenizer.vocabulary.tokens[piece]}{'' if label < 0 else '/' + LABELS[label]}"
             for piece, start, label in zip(*(features.tokens[name].tolist()
                                              for name in ("input_ids", "word_starts", "token_labels")))]
    return [" ".join(shown[begin:end]) for begin, end in zip(features.row_splits, features.row_splits[1:])]


def test_the_first_piece_of_a_word_has_its_label(tokenizer):
    features = ner_features.make_features([sentence("aaa b", "B-X O"), sentence("b", "I-X")], tokenizer, LABELS, 16)
    assert rows(features, tokenizer) == ["[CLS] *a/B-X ##a ##a *b/O [SEP]", "[CLS] *b/I-X [SEP]"]
    assert features.tokens["segment_ids"].tolist() == [0] * 9


def test_a_word_without_pieces_is_unknown(tokenizer):
    sentences = [sentence(f"{CONTROL} a {CONTROL} {CONTROL}", "O B-X O I-X")]
    features = ner_features.make_features(sentences, tokenizer, LABELS, 16)
    assert rows(features, tokenizer) == ["[CLS] *[UNK]/O *a/B-X *[UNK]/O *[UNK]/I-X [SEP]"]


def test_without_tags_words_are_marked_and_not_labelled(tokenizer):
    features = ner_features.make_features([sentence("a b")], tokenizer, LABELS, 16)
    assert rows(features, tokenizer) == ["[CLS] *a *b [SEP]"]


def test_a_long_sentence_is_cut_evenly_and_each_part_has_the_others_as_context(tokenizer):
    features = ner_features.make_features([sentence("a b c d e f", "O O O B-X I-X O")], tokenizer, LABELS, 7)
    assert rows(features, tokenizer) == ["[CLS] *a/O *b/O *c/O d e [SEP]", "[CLS] b c *d/B-X *e/I-X *f/O [SEP]"]


def test_parts_end_between_words_and_a_word_too_long_for_a_row_loses_its_end(tokenizer):
    features = ner_features.make_features([sentence("b aaa aaaaaa c")], tokenizer, LABELS, 6)
    assert rows(features, tokenizer) == [
        "[CLS] *b *a ##a ##a [SEP]", "[CLS] *a ##a ##a ##a [SEP]", "[CLS] *c [SEP]"]


def test_document_context_fills_both_sides_within_the_document(tokenizer):
    sentences = [sentence(*each) for each in (("a b",), ("c",), ("d e f",), ("b", "", 1), ("a", "", 1))]
    features = ner_features.make_features(sentences, tokenizer, LABELS, 6, document_context=True)
    assert rows(features, tokenizer) == [
        "[CLS] *a *b c d [SEP]", "[CLS] b *c d e [SEP]", "[CLS] c *d *e *f [SEP]",
        "[CLS] *b a [SEP]", "[CLS] b *a [SEP]"]


def test_context_is_of_whole_words(tokenizer):
    sentences = [sentence("aaa b"), sentence("c"), sentence("aaa")]
    features = ner_features.make_features(sentences, tokenizer, LABELS, 7, True)
    assert rows(features, tokenizer)[1] == "[CLS] b *c aaa [SEP]".replace("aaa", "a ##a ##a")


WORDS = st.lists(st.sampled_from(["a", "aa", "aaaaaaaa", "b", CONTROL, "é"]), min_size=1, max_size=9)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(WORDS, st.booleans()), min_size=1, max_size=6), st.integers(3, 20), st.booleans())
def test_every_word_is_labelled_once_in_order_in_rows_that_fit(tokenizer, drawn, max_seq_length, context):
    documents = np.cumsum([new for _, new in drawn]).tolist()
    rng = np.random.default_rng(0)
    sentences = [Sentence(tuple(words), tuple(rng.choice(LABELS, len(words))), document, "f", 1)
                 for (words, _), document in zip(drawn, documents)]
    features = ner_features.make_features(sentences, tokenizer, LABELS, max_seq_length, context)
    starts = features.tokens["word_starts"] > 0
    assert [LABELS[label] for label in features.tokens["token_labels"][starts]] == [
        tag for each in sentences for tag in each.tags]
    assert (features.tokens["token_labels"][~starts] == -1).all()
    assert features.lengths.max() <= max_seq_length
    first_pieces = [([*tokenizer.encode(word), tokenizer.vocabulary.unk_id])[0] for each in sentences
                    for word in each.words]
    assert features.tokens["input_ids"][starts].tolist() == first_pieces

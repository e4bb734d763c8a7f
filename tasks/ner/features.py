"""Sentences of words to rows of word pieces: long ones in several rows, optionally with context around them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from inputs.features import Features, splits_of
from tasks.ner.files import Sentence

if TYPE_CHECKING:
    from tokenization.tokenizer import Tokenizer

_Spans = tuple[np.ndarray, np.ndarray]  # beginnings and ends (exclusive), int64 [rows] each


def make_features(sentences: Sequence[Sentence], tokenizer: "Tokenizer", labels: Sequence[str], max_seq_length: int,
                  document_context: bool = False) -> Features:
    """Makes rows `[CLS] context words context [SEP]`; each word is the own word of exactly one row, in order.

    A sentence that is too long for a row is split between words into as few parts as possible, of similar size. The
    remaining room of a row is filled from both sides: with the rest of its sentence or, with `document_context`, with
    its document ("maximal document context": paper, section 5.3). A word without word pieces becomes `[UNK]`.

    Args:
        sentences: whole documents where context is used.
        tokenizer: makes the word pieces.
        labels: the tags by id.
        max_seq_length: at least 3.
        document_context: see above.

    Returns:
        rows with token columns `input_ids`, `segment_ids`, `word_starts`, 1 at the first piece of a row's own
        words, and `token_labels`, their labels there and -1 elsewhere (everywhere, if sentences have no tags).
    """
    capacity = max_seq_length - 2
    pieces, begins = _pieces(sentences, tokenizer, capacity)
    sentence_ends = np.cumsum([len(sentence.words) for sentence in sentences])
    sentence_begins = np.concatenate([[0], sentence_ends[:-1]])
    rows = [(begin, end, index)
            for index, (first, last) in enumerate(zip(sentence_begins.tolist(), sentence_ends.tolist()))
            for begin, end in _parts(begins, first, last, capacity)]
    first, last, sentence = np.array(rows, np.int64).T
    if document_context:
        sentence_begins, sentence_ends = _documents(sentences, sentence_begins, sentence_ends)

    own = begins[first], begins[last]
    window = _windows(begins, own, (begins[sentence_begins[sentence]], begins[sentence_ends[sentence]]), capacity)
    row_splits = splits_of(window[1] - window[0] + 2)
    lengths = np.diff(row_splits)
    # The piece at each position; meaningless, but a valid index, at [CLS] and [SEP].
    at = np.arange(row_splits[-1]) - np.repeat(row_splits[:-1] + 1 - window[0], lengths)
    is_own = (at >= np.repeat(own[0], lengths)) & (at < np.repeat(own[1], lengths))
    is_own[row_splits[:-1]] = is_own[row_splits[1:] - 1] = False
    at = np.clip(at, 0, len(pieces) - 1)
    word = np.full(len(pieces), -1)
    word[begins[:-1]] = np.arange(len(begins) - 1)
    word = np.where(is_own, word[at], -1)

    input_ids = pieces[at]
    input_ids[row_splits[:-1]] = tokenizer.vocabulary.cls_id
    input_ids[row_splits[1:] - 1] = tokenizer.vocabulary.sep_id
    tokens = {
        "input_ids": input_ids, "segment_ids": np.zeros_like(input_ids), "word_starts": (word >= 0).astype(np.int32),
        "token_labels": np.where(word >= 0, _label_ids(sentences, labels)[word], -1).astype(np.int32),
    }
    return Features(tokens, row_splits, {})


def _pieces(sentences: Sequence[Sentence], tokenizer: "Tokenizer", most: int) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of all words, int32 [pieces], at most `most` of each, and where those of each word begin, int64
    [words + 1].
    """
    pieces, splits = tokenizer.encode_lines([word for sentence in sentences for word in sentence.words])
    counts = np.diff(splits)
    if not counts.all():
        pieces = np.insert(pieces, splits[:-1][counts == 0], tokenizer.vocabulary.unk_id)
        counts = np.maximum(counts, 1)
    if counts.max() > most:
        pieces = pieces[np.arange(len(pieces)) - np.repeat(np.cumsum(counts) - counts, counts) < most]
        counts = np.minimum(counts, most)
    return pieces, splits_of(counts)


def _parts(begins: np.ndarray, first: int, last: int, capacity: int) -> Iterator[tuple[int, int]]:
    """Splits the words first to last (exclusive) into few parts of similar size: yields (first, last) of each."""
    while begins[last] - begins[first] > capacity:
        left = begins[last] - begins[first]
        size = -(-left // -(-left // capacity))
        end = int(np.searchsorted(begins, begins[first] + size))
        end -= int(begins[end] - begins[first] > capacity)
        yield first, end
        first = end
    yield first, last


def _documents(sentences: Sequence[Sentence], begins: np.ndarray, ends: np.ndarray) -> _Spans:
    """Words of the document of each sentence: first and last (exclusive), int64 [sentences] each."""
    documents = np.array([sentence.document for sentence in sentences])
    heads = np.flatnonzero(np.diff(documents, prepend=-1))
    member = np.searchsorted(heads, np.arange(len(sentences)), "right") - 1
    tails = np.append(heads[1:], len(sentences)) - 1
    return begins[heads][member], ends[tails][member]


def _windows(begins: np.ndarray, own: _Spans, around: _Spans, capacity: int) -> _Spans:
    """Widens rows evenly to both sides by whole words, as far as room and context allow.

    Args:
        begins: int64 [words + 1], the first piece of each word.
        own, around: in pieces, what a row must hold, and what it may hold.
        capacity: pieces of a row.

    Returns:
        in pieces, what each row holds.
    """
    before, behind = own[0] - around[0], around[1] - own[1]
    room = capacity - (own[1] - own[0])
    left = np.minimum(before, np.maximum(room // 2, room - behind))
    first = begins[np.searchsorted(begins, own[0] - left)]
    right = np.minimum(behind, capacity - (own[1] - first))
    return first, begins[np.searchsorted(begins, own[1] + right, "right") - 1]


def _label_ids(sentences: Sequence[Sentence], labels: Sequence[str]) -> np.ndarray:
    """Label of each word, int32 [words]; -1 where sentences have no tags."""
    number = {label: index for index, label in enumerate(labels)}
    return np.array([number[tag] if tag else -1 for sentence in sentences
                     for tag in (sentence.tags or [None] * len(sentence.words))], np.int32)

"""Text to word pieces in batches, with the release's ids and offsets into the original text.

TensorFlow is imported when a Tokenizer is made, not with this module.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tokenization import wordpiece
from tokenization.text_rules import (
    DROP,
    DROPPED,
    NATIVE_SEPARATOR,
    SPACE,
    TextRules,
    character_classes,
    code_points,
    to_utf8,
)
from tokenization.vocabulary import Vocabulary

# Characters tokenised at a time: enough for arrays to be efficient, few enough for a worker's memory.
_SLICE = 1 << 18
_NONE = np.zeros(0, np.int32)


class Pieces(NamedTuple):
    """Word pieces of a batch of lines.

    Fields:
        ids: int32 [total].
        row_splits: int64 [lines + 1], where each line's pieces begin.
        starts, ends: int32 [total], the characters of its line that a piece covers, end exclusive. Accents that
            lower-casing strips belong to the letter before them. Empty where offsets were not asked for.
    """

    ids: np.ndarray
    row_splits: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


class Tokenizer:
    """The release's `FullTokenizer`, over batches of lines.

    Args:
        vocabulary: Vocabulary.
        do_lower_case: lower-case and strip accents, as for the uncased models.
        max_input_chars_per_word: a longer word is `[UNK]`.

    Example:
        tokenizer = Tokenizer(Vocabulary.from_file("vocab.txt"))
        ids, row_splits = tokenizer.encode_lines(["one sentence", "and another"])
        second = ids[row_splits[1] : row_splits[2]]
    """

    def __init__(self, vocabulary: Vocabulary, do_lower_case: bool = True,
                 max_input_chars_per_word: int = wordpiece.MAX_WORD_CHARACTERS) -> None:
        self.vocabulary = vocabulary
        self.do_lower_case = do_lower_case
        self.max_input_chars_per_word = max_input_chars_per_word
        self._rules = wordpiece.native_rules(do_lower_case)
        self._native = wordpiece.native_tokenizer(vocabulary)

    def __reduce__(self) -> "tuple[type[Tokenizer], tuple[Vocabulary, bool, int]]":
        return Tokenizer, (self.vocabulary, self.do_lower_case, self.max_input_chars_per_word)

    def encode_lines(self, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Tokenises lines of text.

        Returns:
            ids: int32 [total].
            row_splits: int64 [lines + 1], where each line's ids begin.
        """
        pieces = self._encode(lines, with_offsets=False)
        return pieces.ids, pieces.row_splits

    def encode_lines_with_offsets(self, lines: list[str]) -> Pieces:
        """Tokenises lines of text and finds the characters of its line that each piece covers."""
        return self._encode(lines, with_offsets=True)

    def encode(self, text: str) -> np.ndarray:
        """Ids of one text, int32 [pieces]."""
        return self.encode_lines([text])[0]

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids of one text and the characters each covers: three int32 [pieces], (ids, starts, ends)."""
        pieces = self.encode_lines_with_offsets([text])
        return pieces.ids, pieces.starts, pieces.ends

    def tokenize(self, text: str) -> list[str]:
        """Pieces of one text."""
        return self.vocabulary.tokens_of(self.encode(text))

    def _encode(self, lines: list[str], with_offsets: bool) -> Pieces:
        parts = [self._encode_slice(part, with_offsets) for part in _slices(lines)]
        if len(parts) == 1:
            return parts[0]
        ids, row_splits, starts, ends = zip(Pieces(_NONE, _NONE, _NONE, _NONE), *parts)
        firsts = np.cumsum([len(part) for part in ids])
        row_splits = [np.zeros(1, np.int64), *(splits[1:] + first for splits, first in zip(row_splits[1:], firsts))]
        return Pieces(*map(np.concatenate, (ids, row_splits, starts, ends)))

    def _encode_slice(self, lines: list[str], with_offsets: bool) -> Pieces:
        """One call of the native tokenizer for all the lines, joined by line feeds: a line feed ends a word."""
        import tensorflow as tf

        points = code_points("\n".join(lines))
        line_starts = np.zeros(len(lines) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)) + 1, out=line_starts[1:])

        normal, source = self._rules.apply(points)
        _hide_long_words(normal, self.max_input_chars_per_word)
        text = to_utf8(normal)
        first_byte = _first_bytes(normal, text)
        ids, starts, ends = self._native.tokenize_with_offsets(tf.constant([text]))
        ids, starts, ends = (part.flat_values.numpy() for part in (ids, starts, ends))

        normal_starts = line_starts if source is None else np.searchsorted(source, line_starts)
        normal_starts = np.minimum(normal_starts, len(normal))
        byte_starts = normal_starts if first_byte is None else first_byte[normal_starts]
        row_splits = np.searchsorted(starts, byte_starts)
        row_splits[-1] = len(ids)
        if not with_offsets:
            return Pieces(ids, row_splits, _NONE, _NONE)

        if first_byte is not None:
            character = np.cumsum(_begins_character(text), dtype=np.int32) - 1
            starts, ends = character[starts], character[ends - 1] + 1
        if source is not None:
            starts, ends = source[starts], source[ends - 1] + 1
            ends = _past_stripped_marks(points, self._rules, ends)
        bases = np.repeat(line_starts[:-1], np.diff(row_splits))
        return Pieces(ids, row_splits, (starts - bases).astype(np.int32), (ends - bases).astype(np.int32))


def _slices(lines: list[str]) -> Iterator[list[str]]:
    """Cuts a list of lines into lists of about `_SLICE` characters."""
    begin = size = 0
    for index, line in enumerate(lines):
        size += len(line) + 1
        if size >= _SLICE:
            yield lines[begin : index + 1]
            begin, size = index + 1, 0
    if begin < len(lines):
        yield lines[begin:]


@functools.cache
def _word_ends() -> np.ndarray:
    """Which normal characters end the word before them, bool [0x110000]."""
    ends = (character_classes() & NATIVE_SEPARATOR) != 0
    ends[SPACE] = True
    return ends


def _hide_long_words(normal: np.ndarray, limit: int) -> None:
    """Overwrites, in place, words of more than `limit` characters so that they are unknown."""
    spaces = np.flatnonzero(normal == SPACE)
    if np.diff(spaces, prepend=-1, append=len(normal)).max() <= limit + 1:
        return
    ends = np.flatnonzero(_word_ends()[normal])
    begins = np.concatenate([[0], ends + 1])
    ends = np.append(ends, len(normal))
    long = np.flatnonzero(ends - begins > limit)
    for begin, end in zip(begins[long], ends[long]):
        normal[begin:end] = wordpiece.UNKNOWN


def _first_bytes(normal: np.ndarray, text: bytes) -> np.ndarray | None:
    """Where each character begins in its UTF-8 form, int64 [m + 1]; None where each is one byte."""
    if len(text) == len(normal):
        return None
    return np.append(np.flatnonzero(_begins_character(text)), len(text))


def _begins_character(text: bytes) -> np.ndarray:
    """Which bytes of UTF-8 begin a character, bool [bytes]."""
    return (np.frombuffer(text, np.uint8) & 0xC0) != 0x80


def _past_stripped_marks(points: np.ndarray, rules: TextRules, ends: np.ndarray) -> np.ndarray:
    """Moves ends past the accents that were stripped there."""
    stripped = (rules.single[points] == DROP) & ((character_classes()[points] & DROPPED) == 0)
    if not stripped.any():
        return ends
    places = np.append(np.where(stripped, len(points), np.arange(len(points))), len(points))
    return np.minimum.accumulate(places[::-1])[::-1][ends]

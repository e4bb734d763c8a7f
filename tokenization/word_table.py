"""Text to word pieces without TensorFlow: every distinct word is cut once and looked up from then on.

The ids are those of `tokenization.tokenizer`. It starts in hundredths of a second where TensorFlow takes seconds, and
running text, whose words repeat, takes no longer; there are no offsets into the text.
"""

import array
import functools
from collections.abc import Callable, Iterator

import numpy as np

from tokenization import wordpiece
from tokenization.text_rules import CODE_POINTS, SEPARATOR, SPACE, TextRules, character_classes, code_points
from tokenization.vocabulary import CONTINUATION, Vocabulary

# Characters at a time: their arrays stay in the processor's cache.
_SLICE = 1 << 16
# Words remembered; then the table starts anew, so that memory is bounded.
_MAX_WORDS = 1 << 18
_IN_WORD, _BLANK, _ALONE = 0, 1, 2


class WordTable:
    """The release's `FullTokenizer` over batches of lines, with a memory for words.

    Args:
        vocabulary: Vocabulary.
        do_lower_case: lower-case and strip accents, as for the uncased models.
        max_input_chars_per_word: a longer word is `[UNK]`.

    Example:
        ids, row_splits = WordTable(Vocabulary.from_file("vocab.txt")).encode_lines(["one sentence", "and another"])
    """

    def __init__(self, vocabulary: Vocabulary, do_lower_case: bool = True,
                 max_input_chars_per_word: int = wordpiece.MAX_WORD_CHARACTERS) -> None:
        self.vocabulary = vocabulary
        self.max_input_chars_per_word = max_input_chars_per_word
        self._rules = TextRules.of_casing(do_lower_case)
        self._cut = _Cutter(vocabulary, max_input_chars_per_word)
        self._words = _Words(self._cut)

    def encode_lines(self, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Tokenises lines of text, as `Tokenizer.encode_lines` does.

        Returns:
            ids: int32 [total].
            row_splits: int64 [lines + 1], where each line's ids begin.
        """
        ids, counts = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
        for part in slices(lines, _SLICE):
            part_ids, part_counts = self._encode_slice(part)
            ids.append(part_ids)
            counts.append(part_counts)
        return np.concatenate(ids), np.cumsum(np.concatenate(counts))

    def _encode_slice(self, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids, and the number of them in each line."""
        words, words_in_line = _split(lines, self._rules)
        if len(self._words) > _MAX_WORDS:
            self._words = _Words(self._cut)
        ids, lengths = self._words.ids(words)
        ends = np.concatenate([[0], np.cumsum(lengths)])[np.cumsum(words_in_line)]
        return ids, np.diff(ends, prepend=0)


def slices(lines: list[str], characters: int) -> Iterator[list[str]]:
    """Cuts a list of lines into lists of about so many characters."""
    begin = size = 0
    for index, line in enumerate(lines):
        size += len(line) + 1
        if size >= characters:
            yield lines[begin : index + 1]
            begin, size = index + 1, 0
    if begin < len(lines):
        yield lines[begin:]


def _split(lines: list[str], rules: TextRules) -> tuple[list[str], np.ndarray]:
    """The words of lines, end to end, and how many each line has, int64 [lines]."""
    normal, source = rules.apply(code_points("\n".join(lines)))
    line_starts = np.zeros(len(lines), np.int64)
    np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines))[:-1] + 1, out=line_starts[1:])
    if source is not None:
        line_starts = np.searchsorted(source, line_starts)

    kinds = _kinds()[normal]
    begins = kinds != _BLANK
    begins[1:] &= (kinds[1:] == _ALONE) | (kinds[:-1] != _IN_WORD)
    words_before = np.concatenate([[0], np.cumsum(begins)])
    counts = np.diff(words_before[line_starts], append=words_before[-1])

    alone = np.flatnonzero(kinds == _ALONE)
    spaced = np.insert(normal, np.repeat(alone, 2) + np.tile([0, 1], len(alone)), SPACE)
    return spaced.astype("<u4", copy=False).tobytes().decode("utf-32-le", "surrogatepass").split(), counts


@functools.cache
def _kinds() -> np.ndarray:
    """What each normal character is to the words around it, uint8 [0x110000]."""
    kinds = np.where(character_classes() & SEPARATOR, _ALONE, _IN_WORD).astype(np.uint8)
    kinds[[point for point in range(CODE_POINTS) if chr(point).isspace()]] = _BLANK
    return kinds


class _Words(dict[str, int]):
    """Words by number, in the order in which they were first looked up, and the pieces of each.

    Args:
        cut: from a word to its pieces.
    """

    def __init__(self, cut: Callable[[str], list[int]]) -> None:
        super().__init__()
        self._cut = cut
        self._pieces = array.array("i")
        self._starts = array.array("q")
        self._lengths = array.array("q")

    def __missing__(self, word: str) -> int:
        cut = self._cut(word)
        self._starts.append(len(self._pieces))
        self._lengths.append(len(cut))
        self._pieces.extend(cut)
        self[word] = number = len(self)
        return number

    def ids(self, words: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The pieces of words, int32 end to end, and how many each has, int64."""
        numbers = np.fromiter(map(self.__getitem__, words), np.int64, len(words))
        # Views of arrays, which cannot grow as long as there are views.
        starts, lengths = (np.frombuffer(each, np.int64)[numbers] for each in (self._starts, self._lengths))
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)
        return np.frombuffer(self._pieces, np.int32)[places], lengths


class _Cutter:
    """The release's `WordpieceTokenizer`: the longest piece that fits, again and again.

    Args:
        vocabulary: Vocabulary.
        max_characters: a longer word is `[UNK]`.
    """

    def __init__(self, vocabulary: Vocabulary, max_characters: int) -> None:
        self._max_characters = max_characters
        self._unknown = [vocabulary.unk_id]
        self._first = {token: index for token, index in vocabulary.ids.items() if not token.startswith(CONTINUATION)}
        self._later = {token.removeprefix(CONTINUATION): index for token, index in vocabulary.ids.items()
                       if token.startswith(CONTINUATION)}
        self._longest = max(map(len, self._first))
        self._longest_later = max(map(len, self._later), default=0)

    def __call__(self, word: str) -> list[int]:
        if len(word) > self._max_characters:
            return self._unknown
        pieces: list[int] = []
        start, size = 0, len(word)
        known, longest = self._first, self._longest
        while start < size:
            for end in range(min(size, start + longest), start, -1):
                piece = known.get(word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start, known, longest = end, self._later, self._longest_later
                    break
            else:
                return self._unknown
        return pieces

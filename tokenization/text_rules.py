"""The release's text rules as one table of code points: cleaning, lower-casing, accents, where words end.

The original asks Python's `unicodedata`, so its result changes with the Unicode version of the interpreter. Here each
answer is read from `text_rules.npz`, recorded under Unicode 11 (`tokenization.make_text_rules` writes it), and
applied to whole batches of text at once. The same arrays serve numpy (`TextRules.apply`) and TensorFlow
(`tokenization.graph`).

Rules, in the release's order (`BasicTokenizer`):
    1. NUL, U+FFFD, control and format characters are removed; white space becomes a space;
    2. a CJK ideograph is a word of its own;
    3. uncased only: `str.lower()`, then canonical decomposition (NFD), then nonspacing marks (Mn) are removed;
    4. a punctuation character is a word of its own.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping
from typing import Self

import numpy as np

# Bits of `character_classes()`, by code point.
WHITESPACE = 1  # becomes a space
DROPPED = 2  # removed before anything else looks at the text
SEPARATOR = 4  # punctuation or CJK ideograph: a word of its own
CASED = 8  # this and the next two decide on the final sigma and on the order of marks
CASE_IGNORABLE = 16
NONSTARTER = 32
NATIVE_SEPARATOR = 64  # what tensorflow-text takes for a word of its own

CODE_POINTS = 0x110000
SPACE = 0x20
DROP = -1  # in `TextRules.single`: no output; a sequence is -2 and below
CAPITAL_SIGMA, FINAL_SIGMA, SMALL_SIGMA = 0x3A3, 0x3C2, 0x3C3

Sequences = dict[int, tuple[int, ...]]  # code points to what they become

_TABLE = pathlib.Path(__file__).with_name("text_rules.npz")


@functools.cache
def _table() -> dict[str, np.ndarray]:
    with np.load(_TABLE) as table:
        return dict(table)


@functools.cache
def character_classes() -> np.ndarray:
    """The class bits of every code point, uint8 [0x110000]."""
    table = _table()
    return np.repeat(table["class_bits"], np.diff(table["class_starts"], append=CODE_POINTS))


def code_points(text: str) -> np.ndarray:
    """A text's code points, uint32 [length]."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def to_utf8(points: np.ndarray) -> bytes:
    """Code points (no surrogates) as UTF-8 bytes."""
    return points.astype("<u4", copy=False).tobytes().decode("utf-32-le").encode("utf-8")


@dataclasses.dataclass(frozen=True, eq=False)
class TextRules:
    """The character rules of one casing, as arrays.

    Attributes:
        do_lower_case: lower-case and strip accents, as for the uncased models.
        single: int32 [0x110000], what a code point becomes: a code point, DROP, or -2 - k for sequence k. Sequences
            hold all that is rare: more than one output, or an output that depends on its neighbours.
        sequence_starts, sequence_lengths: int32 [sequences], where sequence k is in `sequence_values`.
        sequence_values: int32 [sum of lengths].

    Example:
        TextRules.of_casing(do_lower_case=True).words("It's Café!")  # ["it", "'", "s", "cafe", "!"]
    """

    do_lower_case: bool
    single: np.ndarray
    sequence_starts: np.ndarray
    sequence_lengths: np.ndarray
    sequence_values: np.ndarray

    @classmethod
    @functools.cache
    def of_casing(cls, do_lower_case: bool) -> Self:
        """The release's rules, made once per casing."""
        classes = character_classes()
        single = np.arange(CODE_POINTS, dtype=np.int32)
        single[(classes & WHITESPACE) != 0] = SPACE
        single[(classes & DROPPED) != 0] = DROP
        sequences: Sequences = {}
        if do_lower_case:
            table = _table()
            for code_point, lowered in zip(table["lower_from"], np.split(table["lower_to"], table["lower_splits"])):
                sequences[int(code_point)] = tuple(lowered.tolist())
            sequences.update(_hangul_syllables())
            sequences.update({int(point): (int(point),) for point in table["combining_points"]})
        return cls._with_sequences(do_lower_case, single, sequences)

    @classmethod
    def _with_sequences(cls, do_lower_case: bool, single: np.ndarray, sequences: Sequences) -> Self:
        """Writes sequences into the arrays; a sequence of one code point or none goes into `single`."""
        in_context = {CAPITAL_SIGMA, *_table()["combining_points"].tolist()}
        rare: list[tuple[int, ...]] = []
        for point, outputs in sequences.items():
            if len(outputs) > 1 or (do_lower_case and point in in_context):
                single[point] = -2 - len(rare)
                rare.append(outputs)
            else:
                single[point] = outputs[0] if outputs else DROP
        lengths = np.array([len(outputs) for outputs in rare], np.int32)
        return cls(
            do_lower_case,
            single,
            sequence_starts=np.cumsum(lengths, dtype=np.int32) - lengths,
            sequence_lengths=lengths,
            sequence_values=np.array([point for outputs in rare for point in outputs], np.int32),
        )

    def replacing(self, outputs: Mapping[int, tuple[int, ...]]) -> Self:
        """These rules, followed by a replacement of output characters.

        Args:
            outputs: output code points to the code points that replace them.
        """
        sequences: Sequences = {}
        for index in np.flatnonzero(self.single < DROP):
            values = self._sequence(-2 - self.single[index])
            sequences[int(index)] = tuple(point for value in values for point in outputs.get(value, (value,)))
        for index in np.flatnonzero(np.isin(self.single, list(outputs))):
            sequences[int(index)] = outputs[int(self.single[index])]
        return self._with_sequences(self.do_lower_case, self.single.copy(), sequences)

    def _sequence(self, k: int) -> list[int]:
        start = self.sequence_starts[k]
        return self.sequence_values[start : start + self.sequence_lengths[k]].tolist()

    def apply(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Cleans and normalises text, without splitting words at punctuation and ideographs.

        Args:
            points: uint32 [n], code points.

        Returns:
            normal: int32 [m], the code points of the normal form.
            source: int64 [m], for each the index of the character it comes from, ascending; None means 0, 1, 2 ...
        """
        normal = self.single[points]
        least = normal.min(initial=0)
        if least >= 0:
            return normal, None
        if least == DROP:
            kept = np.flatnonzero(normal != DROP)
            return normal[kept], kept
        if self.do_lower_case:
            _lower_sigmas(points, normal)
        normal, source = self._expand(normal)
        if self.do_lower_case:
            normal, source = _order_marks(points, normal, source)
        return normal, source

    def _expand(self, normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Replaces the numbers of sequences by the sequences and leaves out what is dropped."""
        rare = np.flatnonzero(normal < DROP)
        sequences = -2 - normal[rare]
        lengths = (normal != DROP).astype(np.int32)
        lengths[rare] = self.sequence_lengths[sequences]
        source = np.repeat(np.arange(len(normal)), lengths)
        expanded = normal[source]
        # Output i of a sequence that starts at output `first` is value i - first of that sequence.
        places = np.flatnonzero(expanded < DROP)
        first = (np.cumsum(lengths) - lengths)[rare]
        shift = np.repeat(self.sequence_starts[sequences] - first, lengths[rare])
        expanded[places] = self.sequence_values[places + shift]
        return expanded, source

    def words(self, text: str) -> list[str]:
        """Splits text like the release's `BasicTokenizer`."""
        normal, _ = self.apply(code_points(text))
        separators = np.flatnonzero(character_classes()[normal] & SEPARATOR)
        spaced = np.insert(normal, np.repeat(separators, 2) + np.tile([0, 1], len(separators)), SPACE)
        return spaced.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass").split()


def _hangul_syllables() -> Sequences:
    """The canonical decomposition of every Hangul syllable (Unicode standard, section 3.12)."""
    decomposed: Sequences = {}
    for index in range(19 * 21 * 28):
        lead, rest = divmod(index, 21 * 28)
        vowel, tail = divmod(rest, 28)
        jamo = (0x1100 + lead, 0x1161 + vowel)
        decomposed[0xAC00 + index] = (*jamo, 0x11A7 + tail) if tail else jamo
    return decomposed


def _lower_sigmas(points: np.ndarray, normal: np.ndarray) -> None:
    """Writes lower-case sigmas as `str.lower()` does: the final form after a cased letter and not before one.

    Case-ignorable characters in between do not count. No other rule of lower-casing depends on neighbours.
    """
    sigmas = np.flatnonzero(points == CAPITAL_SIGMA)
    if not sigmas.size:
        return
    classes = character_classes()[points]
    seen = np.flatnonzero((classes & (CASE_IGNORABLE | DROPPED)) == 0)
    cased = np.concatenate([[False], (classes[seen] & CASED) != 0, [False]])
    place = np.searchsorted(seen, sigmas) + 1
    normal[sigmas] = np.where(cased[place - 1] & ~cased[place + 1], FINAL_SIGMA, SMALL_SIGMA)


@functools.cache
def combining_classes() -> np.ndarray:
    """Canonical combining classes of the spacing marks that have one, uint8 [0x110000]; 0 for all other characters.

    Nonspacing marks, which are dropped, have 0 too.
    """
    table = _table()
    classes = np.zeros(CODE_POINTS, np.uint8)
    classes[table["combining_points"]] = table["combining_classes"]
    return classes


def _order_marks(points: np.ndarray, normal: np.ndarray, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Puts spacing marks into canonical order like NFD: by combining class, between two starters.

    `source` stays ascending: the marks of a run share its characters.
    """
    combining = combining_classes()[normal]
    if not combining.any():
        return normal, source
    starters = (character_classes()[points] & (NONSTARTER | DROPPED)) == 0
    runs = np.cumsum(starters)[source]
    return normal[np.lexsort((combining, runs))], source

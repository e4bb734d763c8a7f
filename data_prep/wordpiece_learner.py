"""Learns word pieces from counted words.

Pairs of neighbouring pieces are joined, the most frequent first (byte-pair encoding: Sennrich et al. 2016), until
there are a fifth more pieces than wanted. Then every word is cut as BERT's tokenizer will cut it, longest match first,
and the least used pieces are removed: mostly intermediate pieces that further joins have made useless.
"""

import collections
import dataclasses
import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence

from tokenization.vocabulary import CONTINUATION

_SURPLUS = 1.2
# The words after the most frequent ones cost memory and time and change nothing.
_MAX_WORDS = 250_000
_MAX_WORD_LENGTH = 100

Pair = tuple[int, int]


@dataclasses.dataclass
class Learned:
    """Word pieces, and how well they fit the words that they were learned from.

    Attributes:
        characters: the alphabet, first the forms that begin words, then those that continue them (`##a`).
        pieces: the most used first.
        pieces_per_word: mean over running words.
        unknown_share: the share of running words that hold a character outside the alphabet.
    """

    characters: list[str]
    pieces: list[str]
    pieces_per_word: float
    unknown_share: float


def learn(word_counts: Mapping[str, int], size: int, *, min_frequency: int, character_coverage: float) -> Learned:
    """Learns at most `size` pieces, characters included.

    Args:
        word_counts: how often each word occurs.
        size: how many pieces to learn: exactly this many if the words hold as many, but never fewer than the alphabet.
        min_frequency: two pieces that are neighbours more rarely are not joined.
        character_coverage: the share of running characters that the alphabet covers; a word with a rarer character
            will be `[UNK]`.

    Returns:
        Learned.
    """
    alphabet = _alphabet(word_counts, character_coverage)
    known = {word: count for word, count in word_counts.items() if alphabet.issuperset(word)}
    ranked = sorted((word for word in known if len(word) <= _MAX_WORD_LENGTH), key=lambda word: (-known[word], word))
    frequent = ranked[:_MAX_WORDS]
    characters = _characters(alphabet, frequent)
    wanted = max(0, size - len(characters))
    joined = _join_pairs(characters, frequent, known, len(characters) + int(_SURPLUS * wanted), min_frequency)
    use = _count_use(frequent, known, {*characters, *joined})
    joined.sort(key=lambda piece: (-use[piece], piece))
    pieces = joined[:wanted]

    final_use = _count_use(frequent, known, {*characters, *pieces})
    running = sum(word_counts.values())
    return Learned(
        characters,
        pieces,
        sum(final_use.values()) / max(1, sum(known[word] for word in frequent)),
        1 - sum(known.values()) / max(1, running),
    )


def _alphabet(word_counts: Mapping[str, int], coverage: float) -> set[str]:
    """The most frequent characters that together make up the share `coverage` of the running text."""
    counts: collections.Counter[str] = collections.Counter()
    for word, count in word_counts.items():
        for character in word:
            counts[character] += count
    missing = sum(counts.values()) * coverage
    alphabet: set[str] = set()
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if missing <= 0:
            break
        alphabet.add(character)
        missing -= count
    return alphabet


def _characters(alphabet: set[str], words: Iterable[str]) -> list[str]:
    """The alphabet as pieces; characters that are always words of their own have no `##` form."""
    inside: set[str] = set().union(*(word for word in words if len(word) > 1))
    return sorted(alphabet) + [CONTINUATION + character for character in sorted(inside)]


def _join_pairs(characters: list[str], words: Sequence[str], counts: Mapping[str, int], size: int, min_frequency: int
                ) -> list[str]:
    """Joins the most frequent pair again and again.

    Args:
        characters: the pieces to begin with.
        words: the words to join pieces in.
        counts: the frequency of each word.
        size: the number of pieces to stop at, characters included.
        min_frequency: the frequency of a pair to stop below.

    Returns:
        The new pieces, in the order of joining.
    """
    names = list(characters)
    ids = {name: index for index, name in enumerate(names)}
    cut = [[ids[CONTINUATION * (at > 0) + character] for at, character in enumerate(word)] for word in words]
    frequency = [counts[word] for word in words]
    pairs: dict[Pair, int] = collections.defaultdict(int)
    places: dict[Pair, set[int]] = collections.defaultdict(set)  # the words that hold, or once held, a pair
    for index, pieces in enumerate(cut):
        for pair in itertools.pairwise(pieces):
            pairs[pair] += frequency[index]
            places[pair].add(index)
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(heap)
    while heap and len(names) < size:
        count, pair = heapq.heappop(heap)
        if -count < min_frequency:
            break
        if pairs[pair] != -count:  # other joins have used some of them: it is put back with what is left
            if pairs[pair] >= min_frequency:
                heapq.heappush(heap, (-pairs[pair], pair))
            continue
        name = names[pair[0]] + names[pair[1]].removeprefix(CONTINUATION)
        joined = ids.setdefault(name, len(names))
        if joined == len(names):
            names.append(name)
        grown: set[Pair] = set()
        for index in sorted(places.pop(pair)):
            cut[index] = _join_in_word(cut[index], pair, joined, index, frequency[index], pairs, places, grown)
        del pairs[pair]
        for neighbours in grown:
            heapq.heappush(heap, (-pairs[neighbours], neighbours))
    return names[len(characters) :]


def _join_in_word(pieces: list[int], pair: Pair, joined: int, index: int, frequency: int, pairs: dict[Pair, int],
                  places: dict[Pair, set[int]], grown: set[Pair]) -> list[int]:
    """Joins a pair wherever it occurs in one word, and updates the counts of the pairs around it."""
    left, right = pair
    result: list[int] = []
    at = 0
    while at < len(pieces):
        if pieces[at] != left or at + 1 == len(pieces) or pieces[at + 1] != right:
            result.append(pieces[at])
            at += 1
            continue
        neighbours = []
        if result:
            neighbours.append(((result[-1], left), (result[-1], joined)))
        if at + 2 < len(pieces):
            neighbours.append(((right, pieces[at + 2]), (joined, pieces[at + 2])))
        for old, new in neighbours:
            pairs[old] -= frequency
            pairs[new] += frequency
            places[new].add(index)
            grown.add(new)
        result.append(joined)
        at += 2
    return result


def _count_use(words: Iterable[str], counts: Mapping[str, int], pieces: set[str]) -> collections.Counter[str]:
    """How often each piece is used when the words are cut longest match first."""
    use: collections.Counter[str] = collections.Counter()
    longest = max(map(len, pieces), default=0)
    for word in words:
        count = counts[word]
        start = 0
        while start < len(word):
            prefix = CONTINUATION if start else ""
            for end in range(min(len(word), start + longest), start, -1):
                piece = prefix + word[start:end]
                if piece in pieces:
                    use[piece] += count
                    start = end
                    break
            else:
                raise ValueError(f"{word!r} holds a character outside the alphabet")
    return use

"""A vocabulary of word pieces, one per line; the line's number, counted from 0, is the piece's id."""

import functools
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from foundation import vocab_file
from foundation.errors import BertError

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"

_UNUSED = re.compile(r"\[unused\d+\]")


def unused(number: int) -> str:
    """The name of an unused slot."""
    return f"[unused{number}]"


class Vocabulary:
    """Word pieces by id and ids by word piece.

    Args:
        tokens: the pieces in the order of their ids.
        origin: the file they come from, for messages.

    Attributes:
        tokens: tuple of str.
        origin: as given.
        ids: dict of str to int.

    Raises:
        BertError: no tokens, a token twice, or a special token missing.

    Example:
        vocabulary = Vocabulary.from_file("vocab.txt")
        vocabulary.ids_of(["run", "##ning"])
    """

    def __init__(self, tokens: Sequence[str], origin: str = "vocabulary") -> None:
        self.tokens = tuple(tokens)
        self.origin = origin
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self._check()

    @classmethod
    def from_file(cls, path: str) -> Self:
        """Reads a vocabulary as the release does: UTF-8, a piece per line, white space around it stripped.

        Args:
            path: local or remote.

        Raises:
            BertError: the file does not exist, is not UTF-8, or is not a vocabulary (above).
        """
        return cls(vocab_file.read(path), path)

    def _check(self) -> None:
        if not self.tokens:
            raise BertError(f"{self.origin}: empty. A vocabulary has one word piece per line.")
        if len(self.ids) < len(self.tokens):
            first: dict[str, int] = {}
            for line, token in enumerate(self.tokens, 1):
                if first.setdefault(token, line) != line:
                    name = repr(token) if token else "an empty line"
                    raise BertError(f"{self.origin}, line {line}: {name} is on line {first[token]} already. Remove one "
                                    "of the two.")
        missing = [token for token in SPECIAL_TOKENS if token not in self.ids]
        if missing:
            raise BertError(f"{self.origin}: no line holds {' or '.join(missing)}. Add a line for each special token.")

    @property
    def size(self) -> int:
        """The number of pieces."""
        return len(self.tokens)

    @property
    def pad_id(self) -> int:
        return self.ids[PAD]

    @property
    def unk_id(self) -> int:
        return self.ids[UNK]

    @property
    def cls_id(self) -> int:
        return self.ids[CLS]

    @property
    def sep_id(self) -> int:
        return self.ids[SEP]

    @property
    def mask_id(self) -> int:
        return self.ids[MASK]

    @functools.cached_property
    def continuation(self) -> np.ndarray:
        """bool [size], the pieces that continue a word (`##ing`)."""
        return np.array([token.startswith(CONTINUATION) for token in self.tokens])

    @functools.cached_property
    def replacement_ids(self) -> np.ndarray:
        """int32, ascending: every id except those of special and `[unused]` tokens. Masking draws from them."""
        return np.array([index for index, token in enumerate(self.tokens)
                         if token not in SPECIAL_TOKENS and not _UNUSED.fullmatch(token)], np.int32)

    @functools.cached_property
    def sha256(self) -> str:
        """64 hex digits over the tokens, each with a line feed after it: usually those of the file itself."""
        return hashlib.sha256("".join(f"{token}\n" for token in self.tokens).encode()).hexdigest()

    def __len__(self) -> int:
        return self.size

    def __contains__(self, token: str) -> bool:
        return token in self.ids

    def ids_of(self, tokens: Iterable[str]) -> np.ndarray:
        """Ids of pieces, int32 [pieces]; a piece that is not in the vocabulary is `[UNK]`."""
        return np.array([self.ids.get(token, self.unk_id) for token in tokens], np.int32)

    def tokens_of(self, ids: Iterable[int]) -> list[str]:
        """Pieces of ids."""
        return [self.tokens[index] for index in ids]

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[str, ...], str]]:
        return type(self), (self.tokens, self.origin)

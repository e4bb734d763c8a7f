"""A vocabulary of word pieces: one a line, its number is its id."""

import hashlib
import re

import numpy as np

from foundation import files
from foundation.errors import BertError

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"

_UNUSED = re.compile(r"\[unused\d+\]")


class Vocabulary:
    """Word pieces by id and ids by word piece.

    Args:
        tokens: list of str in the order of their ids.
        origin: the file they come from, for messages.

    Attributes:
        tokens: tuple of str.
        ids: dict of str to int.
        size: int.
        pad_id, unk_id, cls_id, sep_id, mask_id: int.
        continuation: bool [size], the pieces that continue a word (`##ing`).
        replacement_ids: int32, ascending; every id but the special and the `[unused]` ones, from which masking draws.
        sha256: 64 hex digits over the tokens, each with a line feed after it: of the file itself where that is how
            it is written.

    Raises:
        BertError: no tokens, a token twice, or a special token missing.
    """

    def __init__(self, tokens, origin="vocabulary"):
        self.tokens = tuple(tokens)
        self.origin = origin
        if not self.tokens:
            raise BertError(f"{origin}: empty. A vocabulary has one word piece a line.")
        self.ids = {}
        for index, token in enumerate(self.tokens):
            first = self.ids.setdefault(token, index)
            if first != index:
                name = repr(token) if token else "an empty line"
                raise BertError(
                    f"{origin}, line {index + 1}: {name} stands on line {first + 1} already. Remove one of the two.")
        missing = [token for token in SPECIAL_TOKENS if token not in self.ids]
        if missing:
            raise BertError(f"{origin}: no line holds {' or '.join(missing)}. Add a line for each special token.")
        self.size = len(self.tokens)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = map(self.ids.get, SPECIAL_TOKENS)
        self.continuation = np.array([token.startswith(CONTINUATION) for token in self.tokens])
        self.replacement_ids = np.array(
            [index for index, token in enumerate(self.tokens)
             if token not in SPECIAL_TOKENS and not _UNUSED.fullmatch(token)], np.int32)
        self.sha256 = hashlib.sha256("".join(f"{token}\n" for token in self.tokens).encode()).hexdigest()

    @classmethod
    def from_file(cls, path):
        """Reads a vocabulary as the release does: UTF-8, a piece a line, white space around it stripped.

        Args:
            path: str, local or remote.

        Returns:
            Vocabulary.

        Raises:
            BertError: the file is not there, not UTF-8, or not a vocabulary (above).
        """
        data = files.read_bytes(path)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise BertError(
                f"{path}, line {line}: byte {error.start} is not UTF-8 (0x{data[error.start]:02x}). "
                "Re-encode the file.") from None
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        return cls([line.strip() for line in lines], path)

    @classmethod
    def from_tokens(cls, tokens):
        """Makes a vocabulary of a list of str."""
        return cls(tokens)

    def __len__(self):
        return self.size

    def __contains__(self, token):
        return token in self.ids

    def ids_of(self, tokens):
        """Ids of pieces, int32 [pieces]; a piece that is not in the vocabulary is `[UNK]`."""
        return np.array([self.ids.get(token, self.unk_id) for token in tokens], np.int32)

    def tokens_of(self, ids):
        """Pieces of ids, list of str."""
        return [self.tokens[index] for index in ids]

    def __reduce__(self):
        return Vocabulary, (self.tokens, self.origin)

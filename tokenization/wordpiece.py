"""tensorflow-text's WordPiece, made to follow the release.

Its `FastWordpieceTokenizer` finds the same longest matches in linear time, but splits words at the punctuation of its
own Unicode version. Where that differs from the release's, the text is changed so that it does not matter:

- a separator that it does not know gets spaces around it;
- what it wrongly takes for a separator is replaced by a stand-in, in the text and in its copy of the vocabulary.

Stand-ins are code points that the release's cleaning drops, so no text holds them by itself.
"""

import typing

from foundation.errors import BertError
from tokenization.text_rules import (
    DROPPED,
    NATIVE_SEPARATOR,
    SEPARATOR,
    SPACE,
    WHITESPACE,
    TextRules,
    character_classes,
)
from tokenization.vocabulary import CONTINUATION, UNK, Vocabulary

if typing.TYPE_CHECKING:
    import tensorflow_text as tf_text

# The release's limit: a longer word is [UNK].
MAX_WORD_CHARACTERS = 200

UNKNOWN = 0xE0001  # in no piece of the vocabulary: a word that holds it is [UNK]
_STAND_INS = range(0xE0020, 0xE0080)  # the tag characters (Cf)
# No word is too long for the native side: the limit, in characters, is applied before.
_UNLIMITED_BYTES = 2**31 - 1
_LONGEST_PIECE = 256  # bytes of UTF-8


def native_rules(do_lower_case: bool) -> TextRules:
    """The text rules of a casing, with an output that tensorflow-text splits as the release would."""
    surrogates = dict.fromkeys(range(0xD800, 0xE000), (UNKNOWN,))
    return TextRules.of_casing(do_lower_case).replacing({**_respelling(), **surrogates})


def _respelling() -> dict[int, tuple[int, ...]]:
    """What replaces each character on which the release and tensorflow-text differ."""
    classes = character_classes()
    ours, theirs = (classes & SEPARATOR) != 0, (classes & NATIVE_SEPARATOR) != 0
    reaches_words = (classes & (WHITESPACE | DROPPED)) == 0
    spaced = {int(point): (SPACE, int(point), SPACE) for point in (reaches_words & ours & ~theirs).nonzero()[0]}
    wrong = (reaches_words & theirs & ~ours).nonzero()[0]
    stand_ins = dict(zip(wrong.tolist(), _STAND_INS, strict=False))
    if len(stand_ins) < len(wrong):
        raise ValueError(f"{len(wrong)} characters need a stand-in, and there are {len(_STAND_INS)}.")
    return {**spaced, **{point: (stand_in,) for point, stand_in in stand_ins.items()}}


def native_pieces(vocabulary: Vocabulary) -> list[str]:
    """The vocabulary that tensorflow-text is given, with the same ids.

    A piece that no text can reach is replaced by an unreachable name of its own.

    Raises:
        BertError: a piece is longer than tensorflow-text can hold.
    """
    stand_ins = {point: chr(outputs[0]) for point, outputs in _respelling().items() if len(outputs) == 1}
    classes = character_classes()

    def reachable(piece: str) -> bool:
        body = piece.removeprefix(CONTINUATION)
        bits = [classes[ord(character)] for character in body]
        if not body or any(bit & (DROPPED | WHITESPACE) for bit in bits):
            return False
        return not any(bit & SEPARATOR for bit in bits) or len(piece) == 1

    pieces = [
        piece.translate(stand_ins) if reachable(piece) or piece == UNK else f"[{index}]"
        for index, piece in enumerate(vocabulary.tokens)
    ]
    for index, piece in enumerate(pieces):
        if len(piece.removeprefix(CONTINUATION).encode()) > _LONGEST_PIECE:
            raise BertError(
                f"{vocabulary.origin}, line {index + 1}: a word piece of more than {_LONGEST_PIECE} bytes. Remove it.")
    return pieces


def native_tokenizer(vocabulary: Vocabulary) -> "tf_text.FastWordpieceTokenizer":
    """Builds tensorflow-text's tokenizer for text to which `native_rules` and the length limit have been applied."""
    import tensorflow as tf
    import tensorflow_text as tf_text

    return tf_text.FastWordpieceTokenizer(
        native_pieces(vocabulary),
        suffix_indicator=CONTINUATION,
        unknown_token=UNK,
        max_bytes_per_word=_UNLIMITED_BYTES,
        token_out_type=tf.int32,
    )

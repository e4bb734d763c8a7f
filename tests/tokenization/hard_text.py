"""Text and a vocabulary that tokenizers get wrong."""

from hypothesis import strategies as st

from tests.tokenization import release

# Characters that lower-casing and reordering depend on, dropped ones, and some that Unicode versions class differently.
TROUBLE = "ΣσςAaİ'.:·\u00ad\u0301\u0345\u034f\u0315\u0bc0\u1b44\u302e\U0001d15e\U0001d165\U0001d16d한가中豈丽ೋෝ\u166d"
TROUBLE += " \n\t\u2028\u3000\x00\x01\x0b\x85\u200b\ufeff\ufffd!#éÉ"

LETTERS = [letter for letter in TROUBLE if letter not in " \n\t"] + list("abcdeσςا\u1112\u1161\u11ab")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Pieces that no word can hold: of several words, empty, with dropped characters, like the names given to such pieces.
_UNREACHABLE = ["", "##", "##.", "a.b", "don't", "x y", "a\u200bb", "\U000e0001", "##\U000e0020", "[0]", "##[6]"]
# Characters on which tensorflow-text's punctuation differs from the release's.
_DISPUTED = ["\u166d", "\u061d", "\u1b4e", "##\u1b4e", "\u1b4ea", "##\u2e52", "\U000119e2"]
_LONGER = ["ab", "abc", "##bc", "σας", "##ας"]
PIECES = list(dict.fromkeys(
    [*SPECIAL, *_UNREACHABLE, *_DISPUTED, *LETTERS, *(f"##{letter}" for letter in LETTERS), *_LONGER]))


def texts():
    """Strings of trouble and of assigned characters from many scripts, for the reference in `release`."""
    settled = release.settled(0, 0x3100) + release.settled(0xA000, 0xB000) + release.settled(0x1D100, 0x1D200)
    return st.text(st.one_of(st.sampled_from(TROUBLE), st.sampled_from(settled)), max_size=24)


def words():
    """Strings of the characters that `PIECES` has, and spaces."""
    return st.text(st.sampled_from([*LETTERS, " "]), max_size=40)

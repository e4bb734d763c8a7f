"""Writes `text_rules.npz` from the recorded character tables: `python -m tokenization.make_text_rules`.

Run it again only when tensorflow-text changes which characters it takes for punctuation; a test then fails.
"""

import json
import pathlib
from typing import Any

import numpy as np

from tokenization import text_rules
from tokenization.vocabulary import CONTINUATION, UNK

_ROOT = pathlib.Path(__file__).parent
_RECORDED = _ROOT.parent / "tests" / "golden" / "tokenization"


def native_separators() -> np.ndarray:
    """The code points that tensorflow-text's WordPiece takes for words of their own, bool [0x110000]."""
    import tensorflow as tf
    import tensorflow_text as tf_text

    letter = "\ue000"
    tokenizer = tf_text.FastWordpieceTokenizer(
        [UNK, letter, CONTINUATION + letter], token_out_type=tf.int32, max_bytes_per_word=100)
    points = [point for point in range(text_rules.CODE_POINTS) if not 0xD800 <= point < 0xE000 and point != 0xE000]
    pieces = tokenizer.tokenize(tf.constant([letter + chr(point) + letter for point in points]))
    separators = np.zeros(text_rules.CODE_POINTS, bool)
    separators[points] = pieces.row_lengths().numpy() == 3  # letter, unknown, letter
    return separators


def build(recorded: pathlib.Path = _RECORDED) -> dict[str, np.ndarray]:
    """Makes the arrays of the table from the recorded files.

    Args:
        recorded: folder with `char_classes_unicode11.npz`, `lower_strip_map_unicode11.json` and
            `casing_and_order_unicode11.npz`.

    Returns:
        The arrays by name. Class bits are kept as runs: `class_starts` is where each begins.
    """
    bits = np.load(recorded / "char_classes_unicode11.npz")["bits"]
    order = np.load(recorded / "casing_and_order_unicode11.npz")
    lowered = json.loads((recorded / "lower_strip_map_unicode11.json").read_text("utf-8"))
    lowered = {int(point, 16): [ord(character) for character in value] for point, value in lowered.items()}

    dropped = (bits & (2 | 16)) != 0
    nonspacing = (bits & 32) != 0
    parts = {
        text_rules.WHITESPACE: ((bits & (1 | 128)) != 0) & ~dropped,
        text_rules.DROPPED: dropped,
        text_rules.SEPARATOR: (bits & (4 | 8)) != 0,
        text_rules.CASED: (order["bits"] & 1) != 0,
        text_rules.CASE_IGNORABLE: (order["bits"] & 2) != 0,
        text_rules.NONSTARTER: (order["bits"] & 4) != 0,
        text_rules.NATIVE_SEPARATOR: native_separators(),
    }
    classes = np.zeros(text_rules.CODE_POINTS, np.uint8)
    for bit, has in parts.items():
        classes[has] |= bit
    starts = np.flatnonzero(np.diff(classes, prepend=~classes[0]))

    # White space and dropped characters never reach lower-casing.
    points = [point for point in sorted(lowered) if not (dropped[point] or parts[text_rules.WHITESPACE][point])]
    combining = np.flatnonzero((order["combining"] != 0) & ~nonspacing)
    return {
        "class_starts": starts.astype(np.int32),
        "class_bits": classes[starts],
        "lower_from": np.array(points, np.int32),
        "lower_to": np.array([value for point in points for value in lowered[point]], np.int32),
        "lower_splits": np.cumsum([len(lowered[point]) for point in points])[:-1].astype(np.int32),
        "combining_points": combining.astype(np.int32),
        "combining_classes": order["combining"][combining],
    }


def main() -> None:
    """Writes the table."""
    arrays: dict[str, Any] = {**build()}
    np.savez_compressed(_ROOT / "text_rules.npz", **arrays)


if __name__ == "__main__":
    main()

"""The release's tokenizer in plain Python, one character at a time: slow, and independent of `tokenization`.

Character classes are the recorded ones (Unicode 11). Lower-casing and decomposition are those of the Python that
runs; `settled` lists the code points on which these are the same.
"""

import functools
import json
import pathlib
import unicodedata

import numpy as np

RECORDED = pathlib.Path(__file__).parents[1] / "golden" / "tokenization"
WHITESPACE, CONTROL, PUNCTUATION, CJK, REMOVED, NONSPACING, UNASSIGNED, SPLITS = (1 << bit for bit in range(8))


@functools.cache
def recorded_classes():
    with np.load(RECORDED / "char_classes_unicode11.npz") as arrays:
        return arrays["bits"].tolist()


def has(character, bits):
    return bool(recorded_classes()[ord(character)] & bits)


def lower_and_strip(word):
    decomposed = unicodedata.normalize("NFD", word.lower())
    return "".join(character for character in decomposed if not has(character, NONSPACING))


def basic_words(text, do_lower_case):
    """What the release's BasicTokenizer returns."""
    characters = []
    for character in text:
        if has(character, CONTROL | REMOVED):
            continue
        if has(character, CJK):
            characters += [" ", character, " "]
        else:
            characters.append(" " if has(character, WHITESPACE | SPLITS) else character)
    words = []
    for word in "".join(characters).split(" "):
        if do_lower_case:
            word = lower_and_strip(word)
        part = ""
        for character in word:
            if has(character, PUNCTUATION):
                words += [part, character]
                part = ""
            else:
                part += character
        words.append(part)
    return [word for word in words if word]


def matches(word, vocabulary):
    """Longest pieces from the left, up to the first place where none fits; and whether that was the word's end."""
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = (end for end in range(len(word), start, -1) if prefix + word[start:end] in vocabulary)
        end = next(ends, None)
        if end is None:
            return pieces, False
        pieces.append(prefix + word[start:end])
        start = end
    return pieces, True


def tokenize(text, vocabulary, do_lower_case=True, limit=200):
    """What the release's FullTokenizer returns."""
    tokens = []
    for word in basic_words(text, do_lower_case):
        pieces, whole = matches(word, vocabulary) if len(word) <= limit else ([], False)
        tokens += pieces if whole else ["[UNK]"]
    return tokens


def settled(low, high):
    """Code points assigned in Unicode 11 that the Python that runs lower-cases as recorded, list of str."""
    lowered = json.loads((RECORDED / "lower_strip_map_unicode11.json").read_text("utf-8"))
    with np.load(RECORDED / "casing_and_order_unicode11.npz") as arrays:
        casing = arrays["bits"]

    def agrees(character):
        if 0xAC00 <= ord(character) < 0xD7A4:
            return True
        before_sigma = (character + "Σ").lower().endswith("ς"), ("A" + character + "Σ").lower().endswith("ς")
        cased, ignorable = bool(casing[ord(character)] & 1), bool(casing[ord(character)] & 2)
        same = lower_and_strip(character) == lowered.get(f"{ord(character):x}", character)
        return same and before_sigma == (cased, cased or ignorable)

    points = (chr(point) for point in range(low, high) if not 0xD800 <= point < 0xE000)
    return [character for character in points if not has(character, UNASSIGNED) and agrees(character)]

"""The table of text rules, against the recorded tables of the release, code point by code point."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings

from tests.tokenization import hard_text, release
from tokenization import make_text_rules
from tokenization.text_rules import CODE_POINTS, DROP, SPACE, TextRules, code_points

UNCASED, CASED = TextRules.of_casing(True), TextRules.of_casing(False)


@pytest.fixture(scope="module")
def recorded(golden):
    return np.load(golden / "tokenization" / "char_classes_unicode11.npz")["bits"]


def outputs(rules, text):
    return "".join(map(chr, rules.apply(code_points(text))[0]))


def test_table_is_what_the_recorded_files_and_this_tensorflow_text_give():
    with np.load(make_text_rules._ROOT / "text_rules.npz") as shipped:
        built = make_text_rules.build()
        assert sorted(shipped) == sorted(built)
        for name, array in built.items():
            np.testing.assert_array_equal(shipped[name], array, err_msg=name)


@pytest.mark.parametrize("rules", [UNCASED, CASED])
def test_each_code_point_is_cleaned_as_recorded(rules, recorded):
    dropped = (recorded & (release.CONTROL | release.REMOVED)) != 0
    np.testing.assert_array_equal(rules.single[dropped], DROP)
    blank = ((recorded & (release.WHITESPACE | release.SPLITS)) != 0) & ~dropped
    np.testing.assert_array_equal(rules.single[blank], SPACE)


def test_each_code_point_is_lower_cased_and_stripped_as_recorded(golden, recorded):
    lowered = json.loads((golden / "tokenization" / "lower_strip_map_unicode11.json").read_text("utf-8"))
    cleaned = release.CONTROL | release.REMOVED | release.WHITESPACE | release.SPLITS
    points = [point for point in range(CODE_POINTS) if not recorded[point] & cleaned]
    points = [point for point in points if not 0xAC00 <= point < 0xD7A4]
    # An ideograph after each separates them.
    text = np.stack([points, np.full(len(points), ord("中"))], 1).astype(np.uint32).ravel()
    normal, source = UNCASED.apply(text)
    starts = np.searchsorted(source, 2 * np.arange(len(points) + 1))
    changed = np.flatnonzero((np.diff(starts) != 2) | (normal[np.minimum(starts[:-1], len(normal) - 1)] != points))
    for place in changed:
        found = "".join(map(chr, normal[starts[place] : starts[place + 1] - 1]))
        assert found == lowered[f"{points[place]:x}"], hex(points[place])
    expected = {point for point in points if f"{point:x}" in lowered}
    assert {points[place] for place in changed} == expected


def test_hangul_syllables_become_jamo():
    assert outputs(UNCASED, "한가") == "\u1112\u1161\u11ab\u1100\u1161"
    assert outputs(CASED, "한가") == "한가"


@pytest.mark.parametrize("rules", [UNCASED, CASED])
def test_words_end_at_each_separator_as_recorded(rules, recorded):
    points = np.array([point for point in range(CODE_POINTS) if not 0xD800 <= point < 0xE000 and point != 0xE000])
    words = rules.words("".join(f"a{chr(point)}b\n\ue000 " for point in points))
    counts = np.diff(np.flatnonzero(np.array(words) == "\ue000"), prepend=-1) - 1
    # What a code point becomes decides: U+1FEF is no punctuation, and the grave accent it decomposes into is.
    becomes = rules.single[points]
    separates = (becomes >= 0) & ((recorded[becomes] & (release.PUNCTUATION | release.CJK)) != 0)
    np.testing.assert_array_equal(counts, np.select([becomes == SPACE, separates], [2, 3], 1))


@pytest.mark.parametrize(("text", "lowered"), [
    ("ΟΔΟΣ ΣΟΦΟΣ.", "οδος σοφος."),  # at a word's end
    ("Σ ΑΣΑ", "σ ασα"),  # alone, and inside
    ("ΑΣ'Α ΑΣ' 'Σ'", "ασ'α ας' 'σ'"),  # an apostrophe is looked through
    ("Α\x01Σ\u00ad", "ας"),  # dropped characters do not count
    ("ΑΣ中Α", "ας中α"),  # an ideograph ends a word
])
def test_sigma_is_final_where_str_lower_makes_it_so(text, lowered):
    assert outputs(UNCASED, text) == lowered


def test_spacing_marks_are_put_in_canonical_order():
    assert outputs(UNCASED, "a\u302e\U0001d165b") == "a\U0001d165\u302eb"
    assert outputs(UNCASED, "a\u302e\u0bc0\U0001d165") == "a\u302e\U0001d165"  # a dropped starter divides the run
    assert outputs(CASED, "a\u302e\U0001d165b") == "a\u302e\U0001d165b"


def test_source_names_the_character_each_output_comes_from():
    normal, source = UNCASED.apply(code_points("\x00É\u0301한b"))
    assert list(map(chr, normal)) == ["e", "\u1112", "\u1161", "\u11ab", "b"]
    assert source.tolist() == [1, 3, 3, 3, 4]
    assert UNCASED.apply(code_points("Éb"))[1] is None


@settings(deadline=None, max_examples=300)
@given(hard_text.texts())
@example("\u1b44\U0001d15e\u302e\U0001d165")
def test_words_are_those_of_the_release(text):
    assert UNCASED.words(text) == release.basic_words(text, True)
    assert CASED.words(text) == release.basic_words(text, False)

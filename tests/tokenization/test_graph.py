"""The tokenizer inside a graph: the same ids as offline, in a function and in a SavedModel."""

import json
import subprocess
import sys

import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.tokenization import released_vocabulary
from tests.tokenization.hard_text import PIECES, SPECIAL, texts, words
from tokenization.graph import GraphTokenizer
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary

STRINGS = [tf.TensorSpec([None], tf.string)]


@pytest.fixture(scope="module")
def small():
    """Pairs of tokenizers, offline and in a graph, of both casings."""
    vocabulary = Vocabulary(PIECES)
    return [
        (Tokenizer(vocabulary, lower, 4), tf.function(GraphTokenizer(vocabulary, lower, 4), input_signature=STRINGS))
        for lower in (True, False)
    ]


def test_ids_are_the_recorded_ones(vocabulary, recorded_lines, casing):
    tokenize = tf.function(GraphTokenizer(vocabulary, do_lower_case=casing == "uncased"), input_signature=STRINGS)
    ids = tokenize(tf.constant([line["text"] for line in recorded_lines]))
    assert ids.dtype == tf.int32 and ids.shape.rank == 2
    for line, found in zip(recorded_lines, ids.to_list()):
        assert found == line[casing], line["text"]


def test_works_outside_a_function():
    tokenizer = GraphTokenizer(Vocabulary(PIECES))
    pieces = [PIECES.index(piece) for piece in ("abc", "e", "σας")]
    assert tokenizer(["ABC É", "", "ΣΑΣ"]).to_list() == [pieces[:2], [], pieces[2:]]


def test_empty_batch(small):
    for _, tokenize in small:
        assert tokenize(tf.zeros([0], tf.string)).to_list() == []


@pytest.mark.parametrize("word", ["a" * 200, "é" * 200, "각" * 66, "a\u0301" * 200, "\u1b4e" * 200])
@pytest.mark.parametrize("end", ["", "a"])
def test_the_limit_on_a_word_is_that_of_the_offline_path(word, end, long_words):
    offline, tokenize = long_words
    text = f"a {word}{end},{word} 中{word}{end}{end}{end}"
    assert tokenize(tf.constant([text])).to_list() == [offline.encode(text).tolist()]


@pytest.fixture(scope="module")
def long_words():
    letters = ["a", "e", "\u1b4e", ",", *"\u1100\u1161\u11a8"]
    vocabulary = Vocabulary([*SPECIAL, *letters, *(f"##{letter}" for letter in letters)])
    return Tokenizer(vocabulary), tf.function(GraphTokenizer(vocabulary), input_signature=STRINGS)


def test_bytes_that_are_not_utf8_are_left_out(small):
    for offline, tokenize in small:
        assert tokenize(tf.constant([b"a\xffb c"])).to_list() == [offline.encode("ab c").tolist()]


@settings(deadline=None, max_examples=100)
@given(lines=st.lists(st.one_of(texts(), words(), st.text()), max_size=6))
@example(lines=["a\u302e\U0001d165", "a\u302e", "\U0001d165", "a\u0bc0\x01\u302e\U0001d165", "ΑΣ", "ΑΣ\x01Α'Σ"])
def test_ids_are_those_of_the_offline_path_on_any_text(small, lines):
    for offline, tokenize in small:
        ids, row_splits = offline.encode_lines(lines)
        found = tokenize(tf.constant(lines, tf.string))
        assert found.flat_values.numpy().tolist() == ids.tolist()
        assert found.row_splits.numpy().tolist() == row_splits.tolist()


def test_saved_model_gives_the_same_ids_in_a_fresh_process(recorded_lines, tmp_path):
    module = GraphTokenizer(Vocabulary(released_vocabulary.tokens("uncased")))
    serve = tf.function(lambda texts: {"ids": module(texts).to_tensor()}, input_signature=STRINGS)
    tf.saved_model.save(module, str(tmp_path / "model"), signatures={"serving_default": serve})
    lines = recorded_lines[::60]
    program = (
        "import sys, json, tensorflow as tf, tensorflow_text\n"
        "serve = tf.saved_model.load(sys.argv[1]).signatures['serving_default']\n"
        "print(json.dumps(serve(tf.constant(json.loads(sys.argv[2])))['ids'].numpy().tolist()))\n")
    argument = json.dumps([line["text"].replace("\0", "") for line in lines])
    command = [sys.executable, "-c", program, str(tmp_path / "model"), argument]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = json.loads(output.splitlines()[-1])
    assert [row[: len(line["uncased"])] for row, line in zip(rows, lines)] == [line["uncased"] for line in lines]

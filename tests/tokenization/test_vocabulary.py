"""Vocabulary files: what is read from them, and the messages about bad ones."""

import pickle
import re

import numpy as np
import pytest

from foundation import files
from foundation.errors import BertError
from tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

TOKENS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "run", "##ning", "##s"]


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_ids_are_line_numbers(tmp_path):
    vocabulary = Vocabulary.from_file(write(tmp_path / "vocab.txt", "\n".join(TOKENS) + "\n"))
    assert vocabulary.tokens == tuple(TOKENS)
    assert vocabulary.size == len(vocabulary) == 9
    assert vocabulary.ids["run"] == 6 and "run" in vocabulary and "walk" not in vocabulary
    special = vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id
    assert special == (0, 2, 3, 4, 5)
    assert vocabulary.ids_of(["run", "walk", "##s"]).tolist() == [6, 2, 8]
    assert vocabulary.tokens_of(np.array([6, 7])) == ["run", "##ning"]


def test_lines_are_stripped_as_in_the_release(tmp_path):
    text = "\r\n".join(TOKENS) + "\r\n\u3000walk \r\nlast"
    vocabulary = Vocabulary.from_file(write(tmp_path / "vocab.txt", text))
    assert vocabulary.tokens == (*TOKENS, "walk", "last")


def test_only_a_line_feed_ends_a_line(tmp_path):
    vocabulary = Vocabulary.from_file(write(tmp_path / "vocab.txt", "\n".join(TOKENS) + "\na\u2028b\n"))
    assert vocabulary.tokens[9:] == ("a\u2028b",)


def test_continuation_marks_pieces_inside_a_word():
    assert np.flatnonzero(Vocabulary(TOKENS).continuation).tolist() == [7, 8]


def test_replacements_leave_out_special_and_unused_tokens():
    vocabulary = Vocabulary([*TOKENS, "[unused17]", "[unused]"])
    assert vocabulary.replacement_ids.tolist() == [6, 7, 8, 10]
    assert vocabulary.replacement_ids.dtype == np.int32


def test_sha256_is_that_of_the_file(tmp_path):
    path = write(tmp_path / "vocab.txt", "\n".join(TOKENS) + "\n")
    assert Vocabulary.from_file(path).sha256 == files.sha256(path)


def test_reads_through_the_file_systems_of_tensorflow():
    files.write_text("ram://tokenization/vocab.txt", "\n".join(TOKENS))
    assert Vocabulary.from_file("ram://tokenization/vocab.txt").tokens == tuple(TOKENS)


def test_travels_to_another_process():
    vocabulary = pickle.loads(pickle.dumps(Vocabulary(TOKENS)))
    assert vocabulary.tokens == tuple(TOKENS) and vocabulary.mask_id == 5


@pytest.mark.parametrize("token", SPECIAL_TOKENS)
def test_a_missing_special_token_is_named(tmp_path, token):
    path = write(tmp_path / "vocab.txt", "\n".join(name for name in TOKENS if name != token))
    with pytest.raises(BertError, match=re.escape(f"{path}: no line holds {token}.")):
        Vocabulary.from_file(path)


def test_a_token_twice_is_named_with_both_lines(tmp_path):
    path = write(tmp_path / "vocab.txt", "\n".join([*TOKENS, "run"]))
    with pytest.raises(BertError, match=re.escape(f"{path}, line 10: 'run' is on line 7 already.")):
        Vocabulary.from_file(path)


def test_two_empty_lines_are_one_too_many(tmp_path):
    path = write(tmp_path / "vocab.txt", "\n".join([*TOKENS, "", "", ""]))
    with pytest.raises(BertError, match="line 11: an empty line is on line 10 already"):
        Vocabulary.from_file(path)


def test_an_empty_file_is_named(tmp_path):
    path = write(tmp_path / "vocab.txt", "")
    with pytest.raises(BertError, match=re.escape(f"{path}: empty.")):
        Vocabulary.from_file(path)


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path):
    path = write(tmp_path / "vocab.txt", b"[PAD]\n[UNK]\ncaf\xe9\n")
    with pytest.raises(BertError, match=re.escape(f"{path}, line 3: byte 15 is not UTF-8 (0xe9).")):
        Vocabulary.from_file(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BertError, match=r"vocab\.txt: no such file"):
        Vocabulary.from_file(str(tmp_path / "vocab.txt"))

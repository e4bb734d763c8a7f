"""vocab.txt as lines: what is kept and what is stripped."""

import pytest

from foundation import files, vocab_file
from foundation.errors import BertError


@pytest.mark.parametrize(("data", "tokens"), [
    (b"[PAD]\n[UNK]\n", ["[PAD]", "[UNK]"]),
    (b"[PAD]\n[UNK]", ["[PAD]", "[UNK]"]),
    (b"[PAD]\r\n\xe3\x80\x80walk \r\n", ["[PAD]", "walk"]),
    ("a\u2028b\n".encode(), ["a\u2028b"]),
    ("\ufeff[PAD]\n".encode(), ["\ufeff[PAD]"]),
    (b"a\n\na\n\n", ["a", "", "a", ""]),
    (b"\n", [""]),
    (b"", []),
])
def test_word_pieces_are_stripped_lines(tmp_path, data, tokens):
    (tmp_path / "vocab.txt").write_bytes(data)
    assert vocab_file.read(str(tmp_path / "vocab.txt")) == tokens


def test_what_is_written_is_read(tmp_path):
    vocab_file.write(str(tmp_path / "x/vocab.txt"), ["[PAD]", "É"])
    assert files.read_bytes(str(tmp_path / "x/vocab.txt")) == "[PAD]\nÉ\n".encode()
    assert vocab_file.read(str(tmp_path / "x/vocab.txt")) == ["[PAD]", "É"]


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"[PAD]\n[UNK]\ncaf\xe9\n")
    with pytest.raises(BertError, match=r"vocab\.txt, line 3: byte 15 is not UTF-8 \(0xe9\)\. Re-encode"):
        vocab_file.read(str(tmp_path / "vocab.txt"))


def test_missing_file_is_named(tmp_path):
    with pytest.raises(BertError, match=r"vocab\.txt: no such file"):
        vocab_file.read(str(tmp_path / "vocab.txt"))

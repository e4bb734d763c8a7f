"""Lines of text: read in blocks, checked, divided into sentences."""

import os
import threading

import numpy as np
import pytest

from extraction import lines
from foundation.errors import BertError


def error(function, *arguments):
    with pytest.raises(BertError) as caught:
        function(*arguments)
    return str(caught.value)


def test_lines_are_divided_into_pairs_as_in_the_release():
    pairs = {"a ||| b\n": ("a", "b"), "a|||b": ("a|||b", ""), " ||| b": ("||| b", ""), "a ||| \n": ("a |||", ""),
             "a ||| b ||| c\r\n": ("a ||| b", "c"), "\n": ("", "")}
    assert {line: lines.split_pair(line) for line in pairs} == pairs


def test_blocks_have_so_many_lines_and_their_bytes(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes("one\ntwö\n\nfour".encode())
    blocks = list(lines.blocks(str(path), 3))
    assert [block for block, _ in blocks] == [["one\n", "twö\n", "\n"], ["four"]]
    np.testing.assert_array_equal(np.concatenate([sizes for _, sizes in blocks]), [4, 5, 1, 4])


@pytest.mark.parametrize("chunk", [1, 3, 1 << 24])
def test_a_file_is_checked_whole(chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "_CHUNK_BYTES", chunk)
    path = tmp_path / "in.txt"
    path.write_bytes("one\ntwö\n".encode())
    lines.check(str(path))
    path.write_bytes("one\ntwö\n".encode() + b"three \xc3")
    assert error(lines.check, str(path)) == f"{path}, line 3: byte 15 is not UTF-8 (0xc3). Re-encode the file."
    path.write_bytes(b"")
    assert error(lines.check, str(path)) == f"{path}: empty. Write a sequence in each line."
    assert error(lines.check, str(tmp_path)) == f"{tmp_path}: no such file (--input_file)."


def test_a_pipe_is_left_unread_by_the_check(tmp_path):
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    lines.check(pipe)
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text("one\n"))
    writer.start()
    assert [block for block, _ in lines.blocks(pipe, 2)] == [["one\n"]]
    writer.join()

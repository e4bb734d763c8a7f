"""Files by path: globs, whole or not at all, one plain line for each mistake."""

import errno
import hashlib
import os
import subprocess
import sys

import pytest
import tensorflow as tf

from foundation import files
from foundation.errors import BertError


def test_match_keeps_the_order_of_patterns_and_names_nothing_twice(tmp_path):
    for name in ("b.txt", "a.txt", "c.tsv"):
        (tmp_path / name).write_text("x")
    found = files.match(f"{tmp_path}/c.tsv,{tmp_path}/*.txt,{tmp_path}/a.txt")
    assert [path.rsplit("/", 1)[1] for path in found] == ["c.tsv", "a.txt", "b.txt"]


@pytest.mark.parametrize("pattern", ["missing.txt", "*.missing", "nowhere/*"])
def test_pattern_without_a_match_is_named_with_its_flag(tmp_path, pattern):
    with pytest.raises(BertError, match=r"no such file, or a glob that matches none \(--input_file\)"):
        files.match(f"{tmp_path}/{pattern}", "input_file")


def test_no_pattern_at_all_is_said():
    with pytest.raises(BertError, match=r"No file given \(--input_file\)"):
        files.match(" , ", "input_file")


def test_text_that_is_not_utf8_is_named_with_its_byte(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"abc\xffdef")
    with pytest.raises(BertError, match=r"a.txt: byte 3 is not UTF-8 \(0xff\)"):
        files.read_text(str(tmp_path / "a.txt"))


def test_mistake_in_json_is_named_with_line_and_column(tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1,\n "b" 2}')
    with pytest.raises(BertError, match=r"a.json, line 2, column 6: not JSON"):
        files.read_json(str(tmp_path / "a.json"))


def test_missing_file_is_named(tmp_path):
    with pytest.raises(BertError, match=r"a.txt: no such file"):
        files.read_text(str(tmp_path / "a.txt"))


def test_file_appears_whole_or_not_at_all(tmp_path):
    path = str(tmp_path / "folder/a.txt")
    files.write_text(path, "before")
    with pytest.raises(RuntimeError), files.atomic(path) as temporary:
        with open(temporary, "w") as file:
            file.write("half")
        raise RuntimeError
    assert [each.name for each in (tmp_path / "folder").iterdir()] == ["a.txt"]
    assert files.read_text(path) == "before"


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"),
                                     tf.errors.ResourceExhaustedError(None, None, "x; No space left on device"),
                                     tf.errors.OutOfRangeError(None, None, "x; File too large")])
def test_full_disk_is_one_plain_line_and_leaves_nothing(tmp_path, failure):
    with pytest.raises(BertError, match=r"a.txt: no space left on the disk"), files.atomic(str(tmp_path / "a.txt")):
        raise failure
    assert not list(tmp_path.iterdir())


def test_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(BertError, match="cannot be written"):
        files.write_text(str(tmp_path / "file/a.txt"), "x")


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
def test_files_and_folders_are_handled_alike_on_every_file_system(tmp_path, remote):
    root = "ram://handled" if remote else str(tmp_path / "handled")
    files.make_folder(f"{root}/inner")
    files.write_text(f"{root}/a.txt", "abc")
    files.copy(f"{root}/a.txt", f"{root}/inner/b.txt")
    files.rename(f"{root}/inner/b.txt", f"{root}/inner/c.txt")
    with files.open_file(f"{root}/inner/c.txt", "a") as file:
        file.write("é\n")
    assert files.read_text(f"{root}/inner/c.txt") == "abcé\n"
    assert files.size(f"{root}/a.txt") == 3
    assert remote or files.modified(f"{root}/a.txt") > 0  # TensorFlow's file system in memory keeps no times
    assert files.names_in(root) == ["a.txt", "inner"] and files.glob(f"{root}/*.txt") == [f"{root}/a.txt"]
    assert files.is_folder(f"{root}/inner") and not files.is_folder(f"{root}/a.txt")
    files.remove(f"{root}/a.txt")
    files.remove_folder(f"{root}/inner")
    assert not files.exists(f"{root}/a.txt") and not files.exists(f"{root}/inner/c.txt")
    with pytest.raises(BertError, match=r"a\.txt: no such file"):
        files.read_bytes(f"{root}/a.txt")


def test_everything_works_on_another_file_system():
    files.write_json("ram://folder/a.json", {"a": 1})
    assert files.read_json("ram://folder/a.json") == {"a": 1}
    assert files.match("ram://folder/*.json") == ["ram://folder/a.json"]
    assert files.sha256("ram://folder/a.json") == hashlib.sha256(b'{\n  "a": 1\n}\n').hexdigest()


@pytest.mark.parametrize(("text", "message"), [
    ("[" * 100_000, "nested too deeply"), ("1" * 5000, "a number of thousands of digits")])
def test_json_without_bounds_is_a_mistake(text, message):
    with pytest.raises(BertError, match=rf"a\.json: .*{message}"):
        files.parse_json(text, "a.json")


def test_leftovers_of_killed_processes_are_removed_and_those_of_living_ones_stay(tmp_path):
    path = str(tmp_path / "a.txt")
    program = ("import os, signal, sys\nfrom foundation import files\n"
               "with files.atomic(sys.argv[1]) as temporary:\n    os.kill(os.getpid(), signal.SIGKILL)")
    subprocess.run([sys.executable, "-c", program, path], env={**os.environ, "PYTHONPATH": os.getcwd()})
    [leftover] = tmp_path.iterdir()
    leftover.write_text("half")
    (tmp_path / f"{leftover.name}-arrays").mkdir()
    (tmp_path / "a.txt.tmp-1").write_text("of another process that was killed")
    with files.atomic(path) as temporary:
        assert [each.name for each in tmp_path.iterdir()] == [os.path.basename(temporary)]
        assert os.path.getsize(temporary) == 0
        files.remove_leftovers(path)
        assert os.path.exists(temporary)
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_processes_that_write_one_file_at_once_have_temporary_files_of_their_own(tmp_path):
    path = str(tmp_path / "a.txt")
    with files.atomic(path) as first:
        with files.atomic(path) as second:
            assert first != second
            with open(second, "w") as file:
                file.write("second")
        assert files.read_text(path) == "second" and os.path.exists(first)
        with open(first, "w") as file:
            file.write("first")
    assert files.read_text(path) == "first" and [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_writing_a_file_searches_no_folder(tmp_path, monkeypatch):
    """It would take a time that grows with the square of the number of files."""
    monkeypatch.setattr(files, "glob", None)
    monkeypatch.setattr(os, "listdir", None)
    monkeypatch.setattr(os, "scandir", None)
    files.write_text(str(tmp_path / "a.txt"), "a")
    assert (tmp_path / "a.txt").read_text() == "a"


@pytest.mark.parametrize("removed", ["before it is opened", "before it is locked"])
def test_a_folder_that_another_process_removes_meanwhile_is_made_again(tmp_path, monkeypatch, removed):
    folder = str(tmp_path / "run")
    module, name = (os, "open") if removed == "before it is opened" else (files.fcntl, "flock")
    original, calls = getattr(module, name), []

    def remove_and_call(*arguments):
        if not calls:
            os.rmdir(folder)
        calls.append(arguments)
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, remove_and_call)
        with files.lock(folder):
            assert os.path.isdir(folder)
    assert len(calls) == 2


def test_an_error_of_the_holder_of_a_folder_is_passed_on(tmp_path):
    with pytest.raises(FileNotFoundError), files.lock(str(tmp_path / "run")):
        raise FileNotFoundError


def test_folder_is_held_by_one_process_at_a_time(tmp_path):
    folder = str(tmp_path / "run")
    with files.lock(folder), pytest.raises(BertError, match="another process is writing there"), files.lock(folder):
        pass
    with files.lock(folder):
        assert os.listdir(folder) == []

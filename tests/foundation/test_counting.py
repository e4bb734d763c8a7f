"""Numbers of things in messages."""

from foundation.counting import counted


def test_one_thing_is_singular():
    assert [counted(number, "file") for number in (0, 1, 2, 1204)] == ["0 files", "1 file", "2 files", "1,204 files"]

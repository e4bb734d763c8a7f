"""The corpus of the demo: the prose of docstrings, and folders of text."""

import pathlib
import sysconfig

import pytest

from demo import corpus
from demo.prose import clean_markup, is_prose, paragraphs
from foundation.errors import BertError

MODULE = '''\
"""A module about the weather of the world.

It reads the reports of the stations, and makes a forecast for each of them.
The forecast is good for a day or two::

    >>> forecast("London")
    'rain'

Usage of the table:

    name      what it is
    ----      ----------
    London    a city
"""
# Copyright 1999 The Authors. All rights reserved to those who wrote this module.

# The stations report once an hour, so there is
# no need to ask them more often than that.
HOUR = 3600  # seconds


class Forecast:
    """forecast(city) -> str"""

    def rain(self, day):
        """Tell whether it will rain in the city on that day.

        :param day: which day it is.

        The answer is a guess, as all answers about the weather of *tomorrow* are.
        """

    def sun(self, day):
        """Tell whether it will rain in the city on that day."""
'''

PROSE = [
    "A module about the weather of the world.",
    "It reads the reports of the stations, and makes a forecast for each of them. "
    "The forecast is good for a day or two:",
    "The stations report once an hour, so there is no need to ask them more often than that.",
    "Tell whether it will rain in the city on that day.",
    "The answer is a guess, as all answers about the weather of tomorrow are.",
    "Tell whether it will rain in the city on that day.",
]


def test_prose_of_a_module_is_in_the_order_of_its_source():
    assert corpus.module_paragraphs(MODULE) == PROSE


@pytest.mark.parametrize("text, prose", [
    ("It is the first line\nof a text. And it is\nthe second of them.",
     ["It is the first line of a text. And it is the second of them."]),
    ("Heading of it\n=============\n\nThis is what the text is about, in a sentence.",
     ["This is what the text is about, in a sentence."]),
    ("- This is the first item of a list.\n- This is the second one\n  of the same list.",
     ["This is the first item of a list.", "This is the second one of the same list."]),
    ("This is shown in the following example::\n\n    x = the_code of it is\n\n    more of it is here.\n\n"
     "And this is what comes after the code.",
     ["And this is what comes after the code."]),
    (">>> this is an example of it\nand this is its output.\n\nThis is the prose that comes after it.",
     ["This is the prose that comes after it."]),
    (".. versionchanged:: 3.2\n   It is now possible to give a list of them.",
     ["It is now possible to give a list of them."]),
    ("S.join(iterable) -> str", []),
    ('with_stmt ::= "with" ( "(" with_stmt_contents ","? ")" ) ":" suite', []),
    ("if x is None: return the_other[0] and y[1]", []),
    ("", []),
])
def test_only_prose_is_extracted(text, prose):
    assert paragraphs(text) == prose


@pytest.mark.parametrize("marked, clean", [
    ("Call :func:`os.path.join` or :class:`~a.B`.", "Call os.path.join or a.B."),
    ("The ``name`` of `this` is *not* **that**.", "The name of this is not that."),
    ('The "with" statement and "len()"  are  "two words".', 'The with statement and len() are "two words".'),
    ("As was shown [1]_, it is so [2].", "As was shown, it is so."),
    ("2 * 3 * 4 and `quoted'", "2 * 3 * 4 and quoted"),
])
def test_markup_around_words_is_removed(marked, clean):
    assert clean_markup(marked) == clean


@pytest.mark.parametrize("text", [
    "Redistribution and use in source and binary forms, with or without modification, are permitted.",
    "This is provided without any warranty of any kind to those that use it.",
    "TODO: this is to be done by someone who has the time for it.",
    "See https://example.com for the rest of it, which is long.",
    "Short one.",
])
def test_licences_notes_and_fragments_are_not_prose(text):
    assert not is_prose(text)


@pytest.fixture
def library(tmp_path):
    """A folder laid out as a standard library."""
    root = tmp_path / "library"
    for name, text in {
        "weather.py": MODULE,
        "again/weather.py": MODULE,
        "test/test_weather.py": MODULE.replace("weather", "tests"),
        "site-packages/other.py": MODULE.replace("weather", "others"),
        "broken.py": 'def f(:\n    """This is a sentence of a file that does not parse."""\n',
        "pydoc_data/topics.py": "topics = {'with': 'The \"with\" statement\\n*****\\n\\nThe with statement is used "
        "to wrap a block. It is\\nevaluated first. Then the block is run as it is.\\n'}\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_topics_and_modules_become_documents_without_repetition(library, tmp_path):
    done = corpus.build(str(tmp_path / "out.txt"), str(library))
    text = (tmp_path / "out.txt").read_text()
    topic, module = text.split("\n\n")
    assert topic.splitlines() == [
        "The with statement is used to wrap a block.", "It is evaluated first.", "Then the block is run as it is.",
    ]
    assert "A module about the weather of the world.\n" in module
    assert "tests" not in text and "others" not in text and ">>>" not in text and "Copyright" not in text
    assert len(set(module.splitlines())) == len(module.splitlines())
    assert (done.documents, done.sentences, done.words) == (2, text.count("\n") - 1, len(text.split()))


def test_library_without_topics_yields_its_modules(library, tmp_path):
    (library / "pydoc_data" / "topics.py").unlink()
    assert corpus.build(str(tmp_path / "out.txt"), str(library)).documents == 1


def test_library_without_sources_is_an_error_and_writes_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BertError, match="no Python sources with documentation"):
        corpus.build(str(tmp_path / "out.txt"), str(tmp_path / "empty"))
    assert not (tmp_path / "out.txt").exists()


def test_package_that_is_not_installed_is_named(library, tmp_path):
    with pytest.raises(BertError, match="no_such_package: no such package"):
        corpus.build(str(tmp_path / "out.txt"), str(library), packages=["no_such_package"])


def test_documentation_of_the_running_python_becomes_clean_prose(tmp_path):
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    (tmp_path / "library").mkdir()
    for name in ("argparse.py", "calendar.py", "datetime.py", "_pydatetime.py", "heapq.py", "logging", "pydoc_data"):
        if (library / name).exists():
            (tmp_path / "library" / name).symlink_to(library / name)
    done = corpus.build(str(tmp_path / "out.txt"), str(tmp_path / "library"))
    text = (tmp_path / "out.txt").read_text()
    assert done.words > 8_000 and done.documents >= 4
    assert ">>>" not in text and "\t" not in text and "\n\n\n" not in text
    assert sum(character.isalpha() or character in " .,\n" for character in text) > 0.93 * len(text)


def test_each_file_of_a_folder_is_a_document_in_the_order_of_names(tmp_path):
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    (folder / "b [2].txt").write_text("The second file. It is short.")  # a name that a glob would not match
    (folder / "a.txt").write_bytes(b"The first file.\xff It has two paragraphs.\n\nThis is one.\n")
    (folder / "deep" / "c.txt").write_text("One document.\nIts end.\n\nAnother document.\nIts end too.\n")
    (folder / "notes.md").write_text("Not a text file.")
    done = corpus.from_folder(str(folder), str(tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text() == (
        "The first file.\nIt has two paragraphs.\nThis is one.\n\n"
        "The second file.\nIt is short.\n\n"
        "One document.\nIts end.\n\nAnother document.\nIts end too.\n"
    )
    assert (done.files, done.documents, done.bad_bytes) == (3, 4, 1)


def test_folder_that_is_missing_or_has_no_text_is_an_error(tmp_path):
    with pytest.raises(BertError, match="no such folder"):
        corpus.from_folder(str(tmp_path / "gone"), str(tmp_path / "out.txt"))
    with pytest.raises(BertError, match=r"holds no \.txt files"):
        corpus.from_folder(str(tmp_path), str(tmp_path / "out.txt"))
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(BertError, match=r"empty\.txt: no text"):
        corpus.from_folder(str(tmp_path), str(tmp_path / "out"))

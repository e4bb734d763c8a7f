"""Readers of the data sets that are known by name - GLUE's, XNLI, SWAG, CODAH - each in its own layout, for `fuzz`."""

import csv
import functools
import io
import os
from collections.abc import Iterable, Iterator

from benchmarks.reliability import mutations
from benchmarks.reliability.fuzz import Reader, bytes_of
from foundation import files
from tasks.classification import glue
from tasks.classification.files import ClassificationFiles, ClassificationSettings
from tasks.classification.glue import GLUE
from tasks.multiple_choice.files import DATA_SETS, MultipleChoiceFiles, MultipleChoiceSettings

_LANGUAGE = "en"
_ROWS = 8


def readers() -> Iterator[Reader]:
    """One for each data set; an input has one of its files mutated."""
    for name in GLUE:
        paths = [path for kind in ("train", "dev", "test") for path in _files_of(name, kind)]
        yield Reader(f"glue: {name}", functools.partial(_make_glue, name), dict.fromkeys(paths, mutations.edited),
                     functools.partial(_read_glue, name))
    for name in ("swag", "codah"):
        yield Reader(name, functools.partial(_make_choices, name),
                     dict.fromkeys(DATA_SETS[name].files.values(), mutations.edited),
                     functools.partial(_read_choices, name))


# --- GLUE and XNLI ---------------------------------------------------------------------------------------------------


def _files_of(name: str, kind: str) -> list[str]:
    """Paths of a data set's files of one kind, in GLUE's folder."""
    data_set = GLUE[name]
    return [f"{data_set.folder}/{path.format(language=_LANGUAGE)}" for path in getattr(data_set, kind).values()]


def _make_glue(name: str, folder: str) -> None:
    for kind in ("train", "dev", "test"):
        for path in _files_of(name, kind):
            files.write_text(os.path.join(folder, path), "".join(_lines(GLUE[name], kind)))


def _lines(data_set: glue.DataSet, kind: str) -> Iterator[str]:
    """A file with the data set's columns, and one more that is not read."""
    columns = getattr(data_set, f"{kind}_columns", None) or data_set.columns
    label = columns.label if kind != "test" else None
    wanted = [column for column in (columns.text_a, columns.text_b, label, columns.language) if column is not None]
    numbered = all(isinstance(column, int) for column in wanted)
    names = [*range(1, 1 + max(map(int, wanted)))] if numbered else ["index", *wanted]
    if columns.header:
        yield "\t".join(f"column {name}" if numbered else str(name) for name in names) + "\n"
    labels = data_set.labels or ("0.5", "3.25", "5")
    for row in range(_ROWS):
        cells = {columns.text_a: f'first {row} is "so"', columns.text_b: f"second {row} naïve",
                 columns.language: _LANGUAGE, label: labels[row % len(labels)]}
        yield "\t".join(cells.get(name, f"other {row}") for name in names) + "\n"


def _read_glue(name: str, folder: str) -> None:
    data = ClassificationFiles(ClassificationSettings(task_name=name, data_dir=folder, language=_LANGUAGE))
    splits = [*(("train",) if GLUE[name].train else ()), *(data.dev_splits if GLUE[name].dev else ()),
              *data.test_splits]
    for split in splits:
        examples = data.read(split)
        cells = _cells(data.path(split), "\t")
        _are_cells((text for example in examples for text in (example.text_a, example.text_b)), cells)
        for example in examples:
            assert (example.label is None) == split.startswith("test")
            assert not isinstance(example.label, int) or 0 <= example.label < len(data.labels or ())


# --- SWAG and CODAH --------------------------------------------------------------------------------------------------


def _make_choices(name: str, folder: str) -> None:
    separator = "," if name == "swag" else "\t"
    for split, file in DATA_SETS[name].files.items():
        rows = [["", "video-id", "fold-ind", "sent1", "sent2", *(f"ending{number}" for number in range(4)), "label"]] \
            if name == "swag" else []
        for row in range(_ROWS):
            before = [str(row), "a", "b", f'the "cat" {row}', "sat"] if name == "swag" else ["i", f"the cat {row}"]
            rows.append([*before, *(f"choice {number}, {row}" for number in range(4)), str(row % 4)])
        if split == "test":
            rows = [row[:-1] for row in rows]
        with io.StringIO(newline="") as text:
            csv.writer(text, delimiter=separator).writerows(rows)
            files.write_text(os.path.join(folder, file), text.getvalue())


def _read_choices(name: str, folder: str) -> None:
    data = MultipleChoiceFiles(MultipleChoiceSettings(task_name=name, data_dir=folder))
    for split in DATA_SETS[name].files:
        for question in data.read(split):
            assert len(question.choices) == 4
            assert (question.label is None) == (split == "test")
            assert question.label is None or 0 <= question.label < 4


# --- What is compared ------------------------------------------------------------------------------------------------


def _cells(path: str, separator: str) -> set[str]:
    """All cells of a plain table."""
    lines = bytes_of(path).decode("utf-8-sig").split("\n")
    return {cell for line in lines for cell in line.removesuffix("\r").split(separator)}


def _are_cells(texts: Iterable[str | None], cells: set[str]) -> None:
    unknown = {text for text in texts if text is not None} - cells
    assert not unknown, f"{sorted(unknown)[0]!r} is no cell of the file"


READERS = tuple(readers())

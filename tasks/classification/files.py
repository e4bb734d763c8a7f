"""Files of labelled texts to examples: which file, columns and labels, of a known data set or of the user's own."""

import dataclasses
import functools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from foundation.errors import BertError
from foundation.settings import DATA, setting
from inputs import tables
from inputs.tables import Column, Table, TableSettings
from tasks import files as task_files
from tasks.classification import glue
from tasks.files import CUSTOM, FileSettings

_MOST_FOUND_LABELS = 50  # a column with more values than this, different in most rows, holds no labels


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationSettings(TableSettings, FileSettings):
    """The data of `run_classifier.py`. None: as the data set (`tasks.classification.glue`) has it."""

    described: ClassVar[tuple[str, ...]] = (
        "task_name", "labels", "regression", "text_a_column", "text_b_column", "label_column", "header", "quoting",
        "language", "max_seq_length")
    task_name: str | None = setting(
        None, group=DATA, released=True,
        help=f"{', '.join(glue.GLUE)}; or custom: your own files, described by the flags below.")
    data_dir: str | None = setting(
        None, group=DATA, released=True, help="Folder of the task's files, or GLUE's with a folder for each task.")
    text_a_column: str | None = setting(
        None, group=DATA, help="Column of the text: its name, its number from 1, or its key in JSON.")
    text_b_column: str | None = setting(None, group=DATA, help="Column of the second text, for pairs.")
    labels: tuple[str, ...] | None = setting(
        None, group=DATA, help="The labels in the order of their ids. Default: those of the training set, sorted.")
    regression: bool = setting(False, group=DATA, help="The label is a number to predict, as in STS-B.")
    language: str = setting("zh", group=DATA, help="Language of XNLI, such as en, de or zh.")
    max_seq_length: int = setting(
        128, at_least=4, group=DATA, released=True,
        help="Maximum word pieces of a sequence, including [CLS] and [SEP].")


class Example(NamedTuple):
    """A row: one text or two, and the id of its label or its score; None where it has none."""

    text_a: str
    text_b: str | None
    label: int | float | None


class ClassificationFiles:
    """The files of a data set, or the user's own under the name `custom`.

    Args:
        settings: which data set, and what differs from it.

    Attributes:
        name: of the task, as in `tasks.classification.glue`.
        data_set: its files, columns, labels and metrics.

    Raises:
        BertError: no such task, or flags that do not go together.
    """

    def __init__(self, settings: ClassificationSettings) -> None:
        self.settings = settings
        self.name = canonical_name(settings.task_name)
        self.data_set = _custom(settings) if self.name == CUSTOM else glue.GLUE[self.name]
        if settings.regression and not self.is_regression:
            raise BertError(f"--regression: {self.name} has labels. Leave the flag out, or use --task_name={CUSTOM}.")

    @property
    def is_regression(self) -> bool:
        """Whether rows have scores in place of labels."""
        return self.data_set.labels is None

    @functools.cached_property
    def dev_splits(self) -> tuple[str, ...]:
        """Names of the dev sets."""
        return self._splits(self.data_set.dev, "dev", self.settings.dev_file)

    @functools.cached_property
    def test_splits(self) -> tuple[str, ...]:
        """Names of the test sets."""
        return self._splits(self.data_set.test, "test", self.settings.test_file)

    @functools.cached_property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the labels by id; None for a regression."""
        if self.is_regression:
            return None
        if self.settings.labels:
            return _checked_labels(self.settings.labels)
        return self.data_set.labels or self._found_labels()

    def path(self, split: str) -> str:
        """The file a split is read from. Raises BertError where it is not given or missing."""
        kind = _kind(split)
        if self.name == CUSTOM or getattr(self.settings, f"{kind}_file"):
            return task_files.find(self.settings, kind)
        name = getattr(self.data_set, kind).get(split)
        if name is None:
            raise BertError(f"{self.name} has no {kind} set. Train mnli, and predict {self.name} with --output_dir of "
                            f"that run; or pass --{kind}_file.")
        return task_files.find(self.settings, kind, self._places(name))

    def read(self, split: str) -> list[Example]:
        """Examples of a split. Raises BertError naming file, line and column of a mistake."""
        table, columns = self._table(split)
        labelled = _kind(split) != "test"
        text_a = _existing(table, "text_a_column", columns.text_a)
        text_b = _existing(table, "text_b_column", columns.text_b) if columns.text_b else None
        label_column = _existing(table, "label_column", columns.label) if labelled else ""
        rows: Sequence[int] = range(len(table))
        if columns.language is not None:
            rows = self._rows_of_language(table, columns.language)
        texts = table.cells if self.data_set.skip_broken else table.texts
        first = texts(text_a)
        second: Sequence[str | None] = texts(text_b) if text_b else [None] * len(table)
        if not labelled:
            return [Example(first[row], second[row], None) for row in rows]
        cells = table.cells(label_column)
        if self.data_set.skip_broken:
            rows = _whole_rows(table, first, second, cells)
        label = self._score if self.is_regression else self._label_id
        return [Example(first[row], second[row], label(table, row, label_column, cells[row])) for row in rows]

    def _splits(self, known: Mapping[str, str], kind: str, given: str | None) -> tuple[str, ...]:
        """The splits of a kind: the first, and of the rest those whose file exists."""
        if given or self.name == CUSTOM:
            return (kind,)
        folder = self.settings.data_dir
        missing = [name for name in known.values() if not folder or not task_files.found_in(folder, self._places(name))]
        if len(missing) == len(known):
            return tuple(known)[:1]
        if missing:
            print(f"{folder}: {' and '.join(missing)} not found; left out.", flush=True)
        return tuple(split for split, name in known.items() if name not in missing)

    def _places(self, name: str) -> list[str]:
        """Where in --data_dir a file of the data set may be: in the folder itself, or in GLUE's folder for the task."""
        language = self.settings.language
        if "/" in language:
            raise BertError(f"--language={language}: not a language; XNLI's are such as en, de or zh.")
        name = name.format(language=language)
        folders = [self.data_set.folder, self.data_set.other_folder]
        return [name, *(f"{folder}/{name}" for folder in folders if folder)]

    def _columns(self, kind: str) -> glue.Columns:
        """Columns of a file: as the flags say, else as the data set has them."""
        columns = getattr(self.data_set, f"{kind}_columns", None) or self.data_set.columns
        settings = self.settings
        given: dict[str, Any] = {"text_a": settings.text_a_column, "text_b": settings.text_b_column,
                                 "label": settings.label_column, "header": settings.header}
        return columns._replace(**{name: value for name, value in given.items() if value is not None})

    def _table(self, split: str) -> tuple[Table, glue.Columns]:
        """A split's table and its columns."""
        kind = _kind(split)
        columns = self._columns(kind)
        skip_broken = self.data_set.skip_broken and kind != "test"
        table = tables.read(self.path(split), tables.Layout(
            self.settings.file_format, columns.header, self.settings.quoting, skip_broken))
        if kind == "test":
            self._look_for_labels(table, columns)
        return table, columns

    def _look_for_labels(self, table: Table, columns: glue.Columns) -> None:
        """Reports that the labels of a test set are not read. Raises BertError where they displace its columns."""
        texts = [column for column in (columns.text_a, columns.text_b) if column]
        if columns.label and table.has(columns.label):
            print(f"{table.place(0, columns.label)}: labels of a test set are not read. To score predictions, "
                  "pass the file as --dev_file with --do_eval.", flush=True)
        missing = [column for column in texts if not table.has(column)]
        training = self._columns("train")
        if missing and columns != training and training.text_a and table.has(training.text_a) and training.label:
            raise BertError(f"{table.path}, line 1: no column {missing[0]!r}. The file seems to be laid out like the "
                            "training set, with labels; a test set has none. To score it, pass it as --dev_file.")
        if missing and columns.label and not columns.header:
            raise BertError(f"{table.path}, line {table.lines[0]}: no column {missing[0]!r}, it has {table.columns()}. "
                            "Without a header, columns are counted as in the training set, the label column included. "
                            "If the test set has no labels, predict in a separate command with its --text_a_column.")

    def _rows_of_language(self, table: Table, column: Column) -> list[int]:
        language = self.settings.language
        cells = table.cells(column)
        rows = [row for row, cell in enumerate(cells) if cell == language]
        if not rows:
            raise BertError(f"{table.path}: no line has language {language!r} (--language). "
                            f"The file has {', '.join(sorted(set(cells))[:30])}.")
        return rows

    def _found_labels(self) -> tuple[str, ...]:
        """The labels of the training set, sorted."""
        if not self.settings.train_file:
            raise BertError("The labels are unknown. Pass them as --labels=no,yes, or pass the --train_file that has "
                            "them.")
        table, columns = self._table("train")
        column = _existing(table, "label_column", columns.label)
        cells = [cell.strip() for cell in table.cells(column)]
        found = _checked_labels(sorted(set(cells) - {""}), f"{table.place(0, column)} and below")
        if len(found) > max(_MOST_FOUND_LABELS, len(cells) // 2):
            raise BertError(f"{table.place(0, column)}: {len(found):,} different labels in {len(cells):,} rows. "
                            "Is it the label column? For numbers pass --regression; otherwise list the --labels.")
        print(f"Labels found in {table.path}: {', '.join(found)}.", flush=True)
        return found

    @functools.cached_property
    def _label_ids(self) -> dict[str, int]:
        ids = {label: index for index, label in enumerate(self.labels or ())}
        return ids | {spelling: ids[label] for spelling, label in self.data_set.spellings.items()}

    def _label_id(self, table: Table, row: int, column: Column, cell: str) -> int:
        index = self._label_ids.get(cell.strip())
        if index is None:
            raise BertError(f"{table.place(row, column)}: {cell!r} is not a label of {self.name}. "
                            f"Labels: {', '.join(self.labels or ())}.")
        return index

    def _score(self, table: Table, row: int, column: Column, cell: str) -> float:
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise BertError(f"{table.place(row, column)}: {cell!r} is not a number; a score must be one.")
        return value


def canonical_name(name: str | None) -> str:
    """A task's name as in `tasks.classification.glue`: `STS-B`, `stsb` and `sts_b` are `sts-b`.

    Raises:
        BertError: no such task.
    """
    names = {re.sub("[-_ ]", "", known): known for known in (*glue.GLUE, CUSTOM)}
    found = names.get(re.sub("[-_ ]", "", (name or "").lower()))
    if found is None:
        given = f"{name!r} is not a task" if name else "No task given, and --output_dir holds no finished run"
        raise BertError(f"{given}. Pass --task_name: {', '.join(glue.GLUE)}, or {CUSTOM} for your own files.")
    return found


def _existing(table: Table, flag: str, column: Column | None) -> Column:
    """The column. Raises BertError where none is given or the table lacks it, naming its flag."""
    if not column:
        raise BertError(f"{table.path}: no --{flag} given. The file has {table.columns()}.")
    if not table.has(column):
        raise BertError(f"{table.path}, line 1: no column {column!r}. It has {table.columns()}. Pass --{flag}.")
    return column


def _whole_rows(table: Table, *columns: Sequence[str | None]) -> list[int]:
    """Rows that have a text in each column; reports how many lines of the file do not."""
    rows = [row for row, texts in enumerate(zip(*columns)) if all(text is None or text.strip() for text in texts)]
    lines = len(table) + len(table.skipped)
    if len(rows) < lines:
        print(f"{table.path}: {lines - len(rows):,} of {lines:,} lines left out: columns or texts are missing.",
              flush=True)
    return rows


def _kind(split: str) -> str:
    """`dev` of `dev_matched`."""
    return split.split("_")[0]


def _custom(settings: ClassificationSettings) -> glue.DataSet:
    """The data set that flags describe."""
    if settings.regression:
        if settings.labels:
            raise BertError("--regression predicts a number and takes no --labels. Leave one of the two out.")
        metrics: tuple[str, ...] = ("spearman", "pearson")
    else:
        metrics = ("accuracy", "macro_f1", "matthews")
    return glue.DataSet("", glue.Columns(), None if settings.regression else (), metrics,
                        train={"train": ""}, dev={"dev": ""}, test={"test": ""})


def _checked_labels(labels: Sequence[str], place: str = "--labels") -> tuple[str, ...]:
    labels = tuple(label.strip() for label in labels)
    if len(labels) < 2 or len(set(labels)) < len(labels) or "" in labels:
        raise BertError(f"{place}: needs at least two labels, all different, not {', '.join(map(repr, labels))}.")
    for label in labels:
        if any("\ud800" <= character <= "\udfff" for character in label):
            raise BertError(f"{place}: the label {label!r} holds half a character (a lone surrogate). Correct it.")
    return labels

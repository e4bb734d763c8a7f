"""Files of labelled texts to examples: which file, columns and labels, of a known data set or of the user's own."""

import dataclasses
import functools
import math
import os
import re
from typing import NamedTuple

from foundation import files
from foundation.errors import BertError
from inputs import tables
from tasks.classification import glue

CUSTOM = "custom"
_MOST_FOUND_LABELS = 50  # a column with more different values than this, in most rows another, holds no labels


@dataclasses.dataclass(frozen=True)
class ClassificationSettings:
    """What `run_classifier.py` is told of its data; None is as the data set (`tasks.classification.glue`) has it.

    A column is named by the header's name, its number from 1, or its key in JSON.
    """

    task_name: str | None = None
    data_dir: str | None = None
    train_file: str | None = None
    dev_file: str | None = None
    test_file: str | None = None
    text_a_column: str | None = None
    text_b_column: str | None = None
    label_column: str | None = None
    header: bool | None = None
    file_format: str = "auto"
    quoting: bool | None = None
    labels: tuple | list | None = None
    regression: bool = False
    language: str = "zh"
    max_seq_length: int = 128


class Example(NamedTuple):
    """A row: one text or two, and its label's id or its score; None where there is none."""

    text_a: str
    text_b: str | None
    label: int | float | None


class ClassificationFiles:
    """The files of a data set, or of the user under the name `custom`.

    Args:
        settings: ClassificationSettings.

    Attributes:
        name: of the task, as `tasks.classification.glue` has it.
        data_set: tasks.classification.glue.DataSet.
        is_regression: whether there are scores in place of labels.

    Raises:
        BertError: no such task, or flags that do not go together.
    """

    def __init__(self, settings):
        self.settings = settings
        self.name = canonical_name(settings.task_name)
        self.data_set = _custom(settings) if self.name == CUSTOM else glue.GLUE[self.name]
        self.is_regression = self.data_set.labels is None
        if settings.regression and not self.is_regression:
            raise BertError(f"--regression: {self.name} has labels. Leave the flag out, or use --task_name={CUSTOM}.")

    @functools.cached_property
    def dev_splits(self):
        return self._splits(self.data_set.dev, "dev", self.settings.dev_file)

    @functools.cached_property
    def test_splits(self):
        return self._splits(self.data_set.test, "test", self.settings.test_file)

    @functools.cached_property
    def labels(self):
        """Names of the labels by id, tuple of str; None for a regression."""
        if self.is_regression:
            return None
        if self.settings.labels:
            return _checked_labels(self.settings.labels)
        return self.data_set.labels or self._found_labels()

    def path(self, split):
        """Where a split is read from. Raises BertError where that is not there."""
        kind = _kind(split)
        given = getattr(self.settings, f"{kind}_file")
        if given:
            if not files.exists(given):
                raise BertError(f"{given}: no such file (--{kind}_file).")
            return given
        if self.name == CUSTOM:
            raise BertError(f"The {kind} set is asked for and not named. Pass --{kind}_file.")
        name = getattr(self.data_set, kind).get(split)
        if name is None:
            raise BertError(f"{self.name} has no {kind} set. Train mnli, and predict {self.name} with --output_dir of "
                            f"that run; or pass --{kind}_file.")
        if not self.settings.data_dir:
            raise BertError(f"{self.name}: where is {name}? Pass --data_dir or --{kind}_file.")
        path = self._in_data_dir(name)
        if not path:
            raise BertError(f"{self.settings.data_dir}: neither {self._local(name)} nor "
                            f"{self.data_set.folder}/{self._local(name)} is there (--data_dir, --{kind}_file).")
        return path

    def read(self, split):
        """Examples of a split, list of Example. Raises BertError naming file, line and column of a mistake."""
        table, columns, labelled = self._table(split)
        rows = range(len(table))
        if columns.language is not None:
            rows = self._rows_of_language(table, columns.language)
        texts = table.cells if self.data_set.skip_broken else table.texts
        first = texts(columns.text_a)
        second = texts(columns.text_b) if columns.text_b else [None] * len(table)
        if not labelled:
            return [Example(first[row], second[row], None) for row in rows]
        cells = table.cells(columns.label)
        if self.data_set.skip_broken:
            rows = _whole_rows(table, first, second, cells)
        label = self._score if self.is_regression else self._label_id
        return [Example(first[row], second[row], label(table, row, columns.label, cells[row])) for row in rows]

    def _splits(self, known, kind, given):
        """The splits of a kind: the first, and of others those whose file is there."""
        if given or self.name == CUSTOM:
            return (kind,)
        if not self.settings.data_dir or not any(map(self._in_data_dir, known.values())):
            return tuple(known)[:1]
        missing = [name for name in known.values() if not self._in_data_dir(name)]
        if missing:
            print(f"{self.settings.data_dir}: {' and '.join(missing)} left out, for want of the file.", flush=True)
        return tuple(split for split, name in known.items() if name not in missing)

    def _local(self, name):
        return name.format(language=self.settings.language)

    def _in_data_dir(self, name):
        """Path of a data set's file, in --data_dir itself or in GLUE's folder for it; None where it is in neither."""
        folders = [folder for folder in ("", self.data_set.folder, self.data_set.other_folder) if folder is not None]
        paths = [os.path.join(self.settings.data_dir, folder, self._local(name)) for folder in folders]
        return next((path for path in paths if files.exists(path)), None)

    def _columns(self, kind):
        """Columns of a file: the data set's, but for what flags say."""
        columns = getattr(self.data_set, f"{kind}_columns", None) or self.data_set.columns
        said = {"text_a": self.settings.text_a_column, "text_b": self.settings.text_b_column,
                "label": self.settings.label_column, "header": self.settings.header}
        return columns._replace(**{name: value for name, value in said.items() if value is not None})

    def _table(self, split):
        """A split's table, its columns, and whether its labels are wanted."""
        kind, path = _kind(split), self.path(split)
        columns, labelled = self._columns(kind), kind != "test"
        table = tables.read(path, tables.Layout(
            self.settings.file_format, columns.header, self.settings.quoting, self.data_set.skip_broken and labelled))
        if not labelled:
            self._look_for_labels(table, columns)
        wanted = {"text_a_column": columns.text_a}
        if columns.text_b:
            wanted["text_b_column"] = columns.text_b
        if labelled:
            wanted["label_column"] = columns.label
        for flag, column in wanted.items():
            if not column:
                raise BertError(f"{path}: which column is it? Pass --{flag}; there are {table.columns()}.")
            if not table.has(column):
                raise BertError(f"{path}, line 1: no column {column!r}. It has {table.columns()}. "
                                f"Name it by --{flag}.")
        return table, columns, labelled

    def _look_for_labels(self, table, columns):
        """A test set has no labels: says so where it seems to have them, and raises where that is in the way."""
        texts = [column for column in (columns.text_a, columns.text_b) if column]
        if columns.label and table.has(columns.label):
            print(f"{table.place(0, columns.label)}: labels of a test set are not looked at. To score predictions, "
                  "pass the file as --dev_file with --do_eval.", flush=True)
        missing = [column for column in texts if not table.has(column)]
        training = self._columns("train")
        if missing and columns != training and table.has(training.text_a) and training.label:
            raise BertError(f"{table.path}, line 1: no column {missing[0]!r}. The file seems to be laid out as the "
                            "training set, with labels; a test set has none. To score it, pass it as --dev_file.")
        if missing and columns.label and not columns.header:
            raise BertError(f"{table.path}, line {table.lines[0]}: no column {missing[0]!r}, it has {table.columns()}. "
                            "Without a header, columns are counted as in the training set, that of labels included; "
                            "where the test set has none, predict by a command of its own with its --text_a_column.")

    def _rows_of_language(self, table, column):
        language = self.settings.language
        cells = table.cells(column)
        rows = [row for row, cell in enumerate(cells) if cell == language]
        if not rows:
            raise BertError(f"{table.path}: no line is of language {language!r} (--language). "
                            f"There are: {', '.join(sorted(set(cells))[:30])}.")
        return rows

    def _found_labels(self):
        """The labels of the training set, sorted."""
        if not self.settings.train_file:
            raise BertError("The labels are not known. Pass --labels=no,yes, or the --train_file that has them.")
        table, columns, _ = self._table("train")
        cells = [cell.strip() for cell in table.cells(columns.label)]
        found = _checked_labels(sorted(set(cells) - {""}), f"{table.place(0, columns.label)} and on")
        if len(found) > max(_MOST_FOUND_LABELS, len(cells) // 2):
            raise BertError(f"{table.place(0, columns.label)}: {len(found):,} different labels in {len(cells):,} rows. "
                            "Is it the label column? For numbers pass --regression; else name the --labels.")
        print(f"Labels found in {table.path}: {', '.join(found)}.", flush=True)
        return found

    @functools.cached_property
    def _label_ids(self):
        ids = {label: index for index, label in enumerate(self.labels)}
        return ids | {spelling: ids[label] for spelling, label in self.data_set.spellings.items()}

    def _label_id(self, table, row, column, cell):
        index = self._label_ids.get(cell.strip())
        if index is None:
            raise BertError(f"{table.place(row, column)}: {cell!r} is no label of {self.name}. "
                            f"Known: {', '.join(self.labels)}.")
        return index

    def _score(self, table, row, column, cell):
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise BertError(f"{table.place(row, column)}: {cell!r} is no number, as a score must be.")
        return value


def canonical_name(name):
    """A task's name as `tasks.classification.glue` has it: `STS-B`, `stsb` and `sts_b` are `sts-b`.

    Raises:
        BertError: no such task.
    """
    names = {re.sub("[-_ ]", "", known): known for known in (*glue.GLUE, CUSTOM)}
    found = names.get(re.sub("[-_ ]", "", (name or "").lower()))
    if found is None:
        given = f"{name!r} is no task" if name else "No task is named, and --output_dir holds no finished run"
        raise BertError(f"{given}. Pass --task_name: {', '.join(glue.GLUE)}, or {CUSTOM} for files of your own.")
    return found


def _whole_rows(table, *columns):
    """Rows that have a text in each column; says how many lines of the file do not."""
    rows = [row for row, texts in enumerate(zip(*columns)) if all(text is None or text.strip() for text in texts)]
    lines = len(table) + len(table.skipped)
    if len(rows) < lines:
        print(f"{table.path}: {lines - len(rows):,} of {lines:,} lines left out, because columns or texts are missing.",
              flush=True)
    return rows


def _kind(split):
    """`dev` of `dev_matched`."""
    return split.split("_")[0]


def _custom(settings):
    """The data set that flags describe."""
    if settings.regression:
        if settings.labels:
            raise BertError("--regression predicts a number and has no --labels. Leave one of the two out.")
        metrics = ("spearman", "pearson")
    else:
        metrics = ("accuracy", "macro_f1", "matthews")
    return glue.DataSet("", glue.Columns(), None if settings.regression else (), metrics,
                        train={"train": None}, dev={"dev": None}, test={"test": None})


def _checked_labels(labels, place="--labels"):
    labels = tuple(label.strip() for label in labels)
    if len(labels) < 2 or len(set(labels)) < len(labels) or "" in labels:
        raise BertError(f"{place}: at least two different labels are wanted, not {', '.join(map(repr, labels))}.")
    return labels

"""Tables of text: TSV as GLUE writes it, CSV with quotes, JSONL. A mistake is reported by file, line and column."""

import csv
import dataclasses
import io
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from foundation import files
from foundation.errors import BertError
from foundation.settings import DATA, Settings, setting

_FORMATS = {".tsv": "tsv", ".txt": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
FORMATS = ("auto", "tsv", "csv", "jsonl")

Column = str | int


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableSettings(Settings):
    """How the user's tables are laid out. None: as the data set has it, or as the format usually has it."""

    label_column: str | None = setting(
        None, group=DATA, help="Column of the label: its name, its number from 1, or its key in JSON.")
    header: bool | None = setting(
        None, group=DATA, help="The first line names the columns. Default: as the task has it, else true.")
    file_format: str = setting(
        "auto", choices=FORMATS, group=DATA, help="Format of the files. auto: by the ending of the file's name.")
    quoting: bool | None = setting(
        None, group=DATA, help="Fields may be in quotes. Default: true for CSV, false for TSV.")


@dataclasses.dataclass(frozen=True)
class Layout:
    """How one table is laid out.

    Attributes:
        file_format: tsv, csv, jsonl, or auto: by the ending of the file's name.
        header: the first line names the columns; no effect on jsonl, which names them in each line.
        quoting: a field may be in quotes and then hold separators, line ends and, doubled, quotes. None: in csv only.
        skip_broken: leave out lines with a wrong number of columns, and count them.
    """

    file_format: str = "auto"
    header: bool = True
    quoting: bool | None = None
    skip_broken: bool = False


class Table:
    """Rows of text.

    A column is given by its name in the header, or by its number counted from 1 (int, or str of digits).

    Args:
        path: the file.
        names: the header; None without one.
        rows: lists of str, all of one length.
        lines: the line of the file on which each row begins.
        skipped: lines left out because their number of columns was wrong.
    """

    def __init__(self, path: str, names: list[str] | None, rows: Sequence[Any], lines: Sequence[int],
                 skipped: Sequence[int] = ()) -> None:
        self.path = path
        self.names = names
        self.rows = rows
        self.lines = lines
        self.skipped = skipped

    def __len__(self) -> int:
        return len(self.rows)

    def has(self, column: Column) -> bool:
        """Whether there is such a column."""
        return self._find(column) is not None

    def cells(self, column: Column) -> list[str]:
        """Texts of a column. Raises BertError where there is no such column."""
        index = self._index(column)
        return [row[index] for row in self.rows]

    def texts(self, column: Column) -> list[str]:
        """As `cells`; raises BertError also where a text is empty or only white space."""
        cells = self.cells(column)
        for row, text in enumerate(cells):
            if not text or text.isspace():
                raise BertError(f"{self.place(row, column)}: empty text. Fill it in or remove the line.")
        return cells

    def place(self, row: int, column: Column) -> str:
        """Where a cell is, for messages: file, line and column."""
        index = self._index(column)
        name = f" ({self.names[index]!r})" if self.names else ""
        return f"{self.path}, line {self.lines[row]}, column {index + 1}{name}"

    def columns(self) -> str:
        """The columns to choose from, for messages."""
        if self.names:
            return ", ".join(map(repr, self.names))
        width = len(self.rows[0])
        return f"columns 1 to {width}" if width > 1 else "column 1"

    def _find(self, column: Column) -> int | None:
        if self.names and isinstance(column, str) and column in self.names:
            if self.names.count(column) > 1:
                raise BertError(f"{self.path}, line 1: {self.names.count(column)} columns are named {column!r}. "
                                "Give the column by its number.")
            return self.names.index(column)
        number = int(column) if isinstance(column, int) or column.isdecimal() else 0
        return number - 1 if 0 < number <= len(self.rows[0]) else None

    def _index(self, column: Column) -> int:
        index = self._find(column)
        if index is None:
            line = 1 if self.names else self.lines[0]
            raise BertError(f"{self.path}, line {line}: no column {column!r}. It has {self.columns()}.")
        return index


class JsonTable(Table):
    """Rows of JSON objects; columns are their keys."""

    def has(self, column: Column) -> bool:
        return column in self.rows[0]

    def cells(self, column: Column) -> list[str]:
        cells = [self._value(row, column) for row in range(len(self))]
        return [cell if isinstance(cell, str) else json.dumps(cell) for cell in cells]

    def texts(self, column: Column) -> list[str]:
        for row in range(len(self)):
            if not isinstance(self._value(row, column), str):
                raise BertError(f"{self.place(row, column)}: {self.rows[row][column]!r} is not a text. "
                                "Put it in quotes.")
        return super().texts(column)

    def place(self, row: int, column: Column) -> str:
        return f"{self.path}, line {self.lines[row]}, key {column!r}"

    def columns(self) -> str:
        return ", ".join(map(repr, self.rows[0]))

    def _value(self, row: int, column: Column) -> Any:
        cells = self.rows[row]
        if column not in cells:
            raise BertError(f"{self.path}, line {self.lines[row]}: no key {column!r}. "
                            f"It has {', '.join(map(repr, cells)) or 'none'}.")
        value = cells[column]
        if value is None or isinstance(value, dict | list):
            raise BertError(f"{self.place(row, column)}: expected a text or a number, not {json.dumps(value)[:40]}.")
        return value


def read(path: str, layout: Layout = Layout()) -> Table:
    """Reads a table.

    Args:
        path: local or remote.
        layout: how the file is laid out.

    Returns:
        a table of at least one row.

    Raises:
        BertError: no such file; not UTF-8; no rows; a wrong number of columns, a quoted field without an end, or bad
            JSON, each with its line.
    """
    file_format: str | None = layout.file_format
    if file_format == "auto":
        file_format = _FORMATS.get(os.path.splitext(path)[1].lower())
    if file_format is None:
        raise BertError(f"{path}: the ending of the name is of no known format. Pass --file_format=tsv, csv or jsonl.")
    text = files.read_edited_text(path)
    if not text.strip():
        raise BertError(f"{path}: empty.")
    if file_format == "jsonl":
        return _json_table(path, text)
    quoting = file_format == "csv" if layout.quoting is None else layout.quoting
    separator = "," if file_format == "csv" else "\t"
    rows, lines = _quoted(path, text, separator) if quoting else _plain(text, separator)
    return _checked(path, rows, lines, layout)


def _plain(text: str, separator: str) -> tuple[list[list[str]], Sequence[int]]:
    """Rows of a file in which a quote is a character like any other, and the line of each."""
    lines = text.split("\n")
    rows = [line.removesuffix("\r").split(separator) for line in lines]
    return rows, range(1, len(rows) + 1)


def _quoted(path: str, text: str, separator: str) -> tuple[list[list[str]], Sequence[int]]:
    """Rows of a file with quoted fields, and the line on which each begins."""
    csv.field_size_limit(sys.maxsize)  # a text may be a whole document
    source = list(io.StringIO(text, newline=""))
    reader = csv.reader(source, delimiter=separator, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    done = 0
    try:
        for row in reader:
            rows.append(row or [""])
            lines.append(done + 1)
            done = reader.line_num
    except csv.Error:
        line, column = _stray_quote("".join(source[done:]), separator)
        raise BertError(
            f"{path}, line {done + line}, column {column}: a quoted field begins here and its closing quote is missing "
            "or is not the field's last character. Double a quote inside a quoted field, or pass --quoting=false."
        ) from None
    return rows, lines


def _stray_quote(text: str, separator: str) -> tuple[int, int]:
    """Line and column, from 1, of the first field whose quotes do not end with it; `text` begins with a row."""
    field = re.compile(rf'(?:"[^"]*(?:""[^"]*)*"|(?!")[^{separator}\r\n]*)({separator}|\r?\n|\r|\Z)')
    begin, column = 0, 1
    while (match := field.match(text, begin)) and match.end() > begin:
        begin = match.end()
        column = column + 1 if match[1] == separator else 1
    return text.count("\n", 0, begin) + 1, column


def _checked(path: str, rows: list[list[str]], line_numbers: Sequence[int], layout: Layout) -> Table:
    """The table of rows that all have the same number of columns."""
    lines = list(line_numbers)
    while rows and rows[-1] == [""]:
        rows.pop(), lines.pop()
    names = None
    if layout.header:
        names = [name.strip() for name in rows.pop(0)]
        del lines[0]
    if not rows:
        raise BertError(f"{path}: only a header, no rows. Pass --header=false if the first line is a row.")
    width = len(names or rows[0])
    wrong = [index for index, row in enumerate(rows) if len(row) != width]
    if wrong and not layout.skip_broken:
        found = rows[wrong[0]]
        if found == [""]:
            raise BertError(f"{path}, line {lines[wrong[0]]}: an empty line. Remove it.")
        reference = "the header has" if names else f"line {lines[0]} has"
        raise BertError(f"{path}, line {lines[wrong[0]]}: {len(found)} column{'s'[:len(found) > 1]} where {reference} "
                        f"{width}. Look for a separator or line end inside a text, or one that is missing.")
    skipped = [lines[index] for index in wrong]
    if wrong:
        kept = [index for index, row in enumerate(rows) if len(row) == width]
        rows, lines = [rows[index] for index in kept], [lines[index] for index in kept]
    return Table(path, names, rows, lines, skipped)


def _json_table(path: str, text: str) -> JsonTable:
    rows, lines = [], text.rstrip().split("\n")
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise BertError(f"{path}, line {number}, column {error.colno}: not JSON ({error.msg}). "
                            "Each line is one JSON object.") from None
        except (ValueError, RecursionError):  # numbers of thousands of digits, thousands of brackets
            raise BertError(f"{path}, line {number}: a number or the nesting is too long to be read.") from None
        if not isinstance(row, dict):
            raise BertError(f"{path}, line {number}: not a JSON object. Each line is one object, with a key for each "
                            "column.")
        rows.append(row)
    return JsonTable(path, None, rows, range(1, len(rows) + 1))

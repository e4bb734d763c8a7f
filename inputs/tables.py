"""Tables of text: TSV as GLUE writes it, CSV with quotes, JSONL; mistakes are told by file, line and column."""

import csv
import dataclasses
import io
import json
import os
import re
import sys

from foundation import files
from foundation.errors import BertError

_FORMATS = {".tsv": "tsv", ".txt": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
FORMATS = ("auto", "tsv", "csv", "jsonl")


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a table is written.

    Attributes:
        file_format: tsv, csv, jsonl, or auto: by the ending of the file's name.
        header: the first line names the columns; not for jsonl, which names them in each line.
        quoting: a field may stand in quotes and then hold separators, line ends and, doubled, quotes. None: in csv.
        skip_broken: leave out lines with a wrong number of columns, and count them.
    """

    file_format: str = "auto"
    header: bool = True
    quoting: bool | None = None
    skip_broken: bool = False


class Table:
    """Rows of text.

    A column is named by the header's name, or by its number counted from 1 (int, or str of digits).

    Attributes:
        path: the file.
        names: list of str, the header; None without one.
        rows: list of rows, each a list of str.
        lines: list of int, the line of the file on which each row begins.
        skipped: list of int, lines left out because their number of columns was wrong.
    """

    def __init__(self, path, names, rows, lines, skipped=()):
        self.path, self.names, self.rows, self.lines, self.skipped = path, names, rows, lines, list(skipped)

    def __len__(self):
        return len(self.rows)

    def has(self, column):
        """Whether there is such a column."""
        return self._find(column) is not None

    def cells(self, column):
        """Texts of a column, list of str [rows]. Raises BertError where there is no such column."""
        index = self._index(column)
        return [row[index] for row in self.rows]

    def texts(self, column):
        """As `cells`; BertError where a text is empty or only white space."""
        cells = self.cells(column)
        for row, text in enumerate(cells):
            if not text or text.isspace():
                raise BertError(f"{self.place(row, column)}: empty text. Fill it in or remove the line.")
        return cells

    def place(self, row, column):
        """Where a cell stands, for messages: file, line and column."""
        index = self._index(column)
        name = f" ({self.names[index]!r})" if self.names else ""
        return f"{self.path}, line {self.lines[row]}, column {index + 1}{name}"

    def columns(self):
        """What there is to choose from, for messages."""
        if self.names:
            return ", ".join(map(repr, self.names))
        width = len(self.rows[0])
        return f"columns 1 to {width}" if width > 1 else "column 1"

    def _find(self, column):
        if self.names and column in self.names:
            if self.names.count(column) > 1:
                raise BertError(f"{self.path}, line 1: {self.names.count(column)} columns are named {column!r}. "
                                "Name the column by its number.")
            return self.names.index(column)
        number = int(column) if isinstance(column, int) or column.isdecimal() else 0
        return number - 1 if 0 < number <= len(self.rows[0]) else None

    def _index(self, column):
        index = self._find(column)
        if index is None:
            line = 1 if self.names else self.lines[0]
            raise BertError(f"{self.path}, line {line}: no column {column!r}. It has {self.columns()}.")
        return index


class JsonTable(Table):
    """Rows of JSON objects; columns are their keys."""

    def has(self, column):
        return column in self.rows[0]

    def cells(self, column):
        cells = [self._value(row, column) for row in range(len(self))]
        return [cell if isinstance(cell, str) else json.dumps(cell) for cell in cells]

    def texts(self, column):
        for row in range(len(self)):
            if not isinstance(self._value(row, column), str):
                raise BertError(f"{self.place(row, column)}: {self.rows[row][column]!r} is no text. Put it in quotes.")
        return super().texts(column)

    def place(self, row, column):
        return f"{self.path}, line {self.lines[row]}, key {column!r}"

    def columns(self):
        return ", ".join(map(repr, self.rows[0]))

    def _value(self, row, column):
        cells = self.rows[row]
        if column not in cells:
            raise BertError(f"{self.path}, line {self.lines[row]}: no key {column!r}. "
                            f"It has {', '.join(map(repr, cells)) or 'none'}.")
        value = cells[column]
        if value is None or isinstance(value, dict | list):
            raise BertError(f"{self.place(row, column)}: a text or number is wanted, not {json.dumps(value)[:40]}.")
        return value


def read(path, layout=Layout()):
    """Reads a table.

    Args:
        path: str, local or remote.
        layout: Layout.

    Returns:
        Table, of at least one row.

    Raises:
        BertError: no such file; not UTF-8; no rows; a wrong number of columns, a quoted field without an end, or bad
            JSON, each with its line.
    """
    file_format = layout.file_format
    if file_format == "auto":
        file_format = _FORMATS.get(os.path.splitext(path)[1].lower())
    if file_format is None:
        raise BertError(f"{path}: cannot tell the format by the name. Pass --file_format=tsv, csv or jsonl.")
    text = files.read_edited_text(path)
    if not text.strip():
        raise BertError(f"{path}: empty.")
    if file_format == "jsonl":
        return _json_table(path, text)
    quoting = file_format == "csv" if layout.quoting is None else layout.quoting
    separator = "," if file_format == "csv" else "\t"
    rows, lines = _quoted(path, text, separator) if quoting else _plain(text, separator)
    return _checked(path, rows, lines, layout)


def _plain(text, separator):
    """Rows of a file in which a quote is a character as any other, and the line each stands on."""
    lines = text.split("\n")
    rows = [line.removesuffix("\r").split(separator) for line in lines]
    return rows, range(1, len(rows) + 1)


def _quoted(path, text, separator):
    """Rows of a file with quoted fields, and the line on which each begins."""
    csv.field_size_limit(sys.maxsize)  # a text may be a whole document
    source = list(io.StringIO(text, newline=""))
    reader = csv.reader(source, delimiter=separator, strict=True)
    rows, lines, done = [], [], 0
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


def _stray_quote(text, separator):
    """Line and column, from 1, of the first field whose quotes do not end with it; `text` begins with a row."""
    field = re.compile(rf'(?:"[^"]*(?:""[^"]*)*"|(?!")[^{separator}\r\n]*)({separator}|\r?\n|\r|\Z)')
    begin, column = 0, 1
    while (match := field.match(text, begin)) and match.end() > begin:
        begin = match.end()
        column = column + 1 if match[1] == separator else 1
    return text.count("\n", 0, begin) + 1, column


def _checked(path, rows, lines, layout):
    """The table of rows that all have one number of columns."""
    rows, lines = list(rows), list(lines)
    while rows and rows[-1] == [""]:
        rows.pop(), lines.pop()
    names = None
    if layout.header:
        names = [name.strip() for name in rows.pop(0)]
        del lines[0]
    if not rows:
        raise BertError(f"{path}: a header and no rows. Where the first line is no header, pass --header=false.")
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


def _json_table(path, text):
    rows, lines = [], text.rstrip().split("\n")
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise BertError(f"{path}, line {number}, column {error.colno}: not JSON ({error.msg}). "
                            "Each line is one JSON object.") from None
        if not isinstance(row, dict):
            raise BertError(f"{path}, line {number}: no JSON object. Each line is one, with a key for each column.")
        rows.append(row)
    return JsonTable(path, None, rows, range(1, len(rows) + 1))

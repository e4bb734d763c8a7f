"""Tables: what is read, and how mistakes are reported."""

import csv
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foundation.errors import BertError
from inputs import tables
from inputs.tables import Layout


@pytest.fixture
def write(tmp_path):
    def writing(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return writing


def error(path, use=lambda table: None, **layout):
    with pytest.raises(BertError) as raised:
        use(tables.read(path, Layout(**layout)))
    return str(raised.value).replace(path, "FILE")


def test_tsv_takes_quotes_as_they_are(write):
    table = tables.read(write("a.tsv", 'text\tlabel\n"One\t1\nsaid "two"" \t0\n'))
    assert table.cells("text") == ['"One', 'said "two"" '] and table.cells("label") == ["1", "0"]
    assert list(table.lines) == [2, 3]


@pytest.mark.parametrize("content", ["a\tb\n1\t2\n3\t4\n", "\ufeffa\tb\r\n1\t2\r\n3\t4", "a \t b\n1\t2\n3\t4\n\n\n"])
def test_byte_order_mark_line_ends_and_empty_last_lines_do_not_matter(write, content):
    table = tables.read(write("a.tsv", content))
    assert table.names == ["a", "b"] and table.rows == [["1", "2"], ["3", "4"]]


def test_only_a_line_feed_ends_a_line_of_tsv(write):
    text = "one\u2028two\x0bthree\x85four"
    assert tables.read(write("a.tsv", f"t\tl\n{text}\t1\n")).cells("t") == [text]


def test_columns_by_number_with_and_without_header(write):
    table = tables.read(write("a.tsv", "x\ty\np\tq\n"), Layout(header=False))
    assert table.cells("2") == ["y", "q"] and table.cells(1) == ["x", "p"]
    table = tables.read(write("b.tsv", "2\ty\np\tq\n"))
    assert table.cells("2") == ["p"] and table.cells(2) == ["q"]  # a name comes before a number
    assert table.has("y") and not table.has("z") and not table.has("3")


def test_csv_with_separators_quotes_and_line_ends_in_fields(write):
    content = 'text,label\n"a, ""b""\nc",1\r\nplain 5" disk,0\n"",2\n'
    table = tables.read(write("a.csv", content))
    assert table.cells("text") == ['a, "b"\nc', 'plain 5" disk', ""]
    assert table.lines == [2, 4, 5]


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.text('ab ",\t\n'), st.text('ab ",\t\n')), min_size=1, max_size=5),
       separator=st.sampled_from(",\t"))
def test_rows_that_python_writes_are_read_back_with_their_lines(write, rows, separator):
    written = io.StringIO()
    writer = csv.writer(written, delimiter=separator, lineterminator="\n")
    begins = []
    for row in [("t", "l"), *rows]:
        begins.append(written.getvalue().count("\n") + 1)
        writer.writerow(row)
    path = write("a.csv" if separator == "," else "a.tsv", written.getvalue())
    table = tables.read(path, Layout(quoting=True))
    assert list(map(tuple, table.rows)) == rows and table.lines == begins[1:]


def test_a_text_of_csv_may_be_long(write):
    assert len(tables.read(write("a.csv", f'text,label\n"{"x" * 200_000}",1\n')).cells("text")[0]) == 200_000


def test_quoting_is_an_option_of_each_format(write):
    assert tables.read(write("a.tsv", 't\tl\n"a\tb"\t1\n'), Layout(quoting=True)).cells("t") == ["a\tb"]
    assert tables.read(write("a.csv", 't,l\n"a,1\n'), Layout("tsv", header=False)).rows[1] == ['"a,1']


def test_jsonl_keys_are_columns(write):
    lines = ['{"t": "a\\tb", "l": 1}', '{"l": true, "t": "c", "more": []}', '{"t":"d","l":"x"}']
    table = tables.read(write("a.jsonl", "\n".join(lines)))
    assert table.texts("t") == ["a\tb", "c", "d"] and table.cells("l") == ["1", "true", "x"]
    assert table.has("l") and not table.has("more")


def test_broken_lines_are_left_out_on_request_and_counted(write):
    table = tables.read(write("a.tsv", "a\tb\n1\t2\n3\n4\t5\t6\n7\t8\n"), Layout(skip_broken=True))
    assert table.rows == [["1", "2"], ["7", "8"]] and table.skipped == [3, 4]
    assert table.place(1, "b") == f"{table.path}, line 5, column 2 ('b')"


@pytest.mark.parametrize(("name", "content", "message"), [
    ("a.tsv", "", "FILE: empty."),
    ("a.csv", " \n\n", "FILE: empty."),
    ("a.tsv", "a\tb\n", "FILE: only a header, no rows. Pass --header=false if the first line is a row."),
    ("a.tsv", "a\tb\n1\t2\n3\n", "FILE, line 3: 1 column where the header has 2. "
     "Look for a separator or line end inside a text, or one that is missing."),
    ("a.csv", "a,b\n1,2,3\n", "FILE, line 2: 3 columns where the header has 2. "
     "Look for a separator or line end inside a text, or one that is missing."),
    ("a.tsv", "a\tb\n1\t2\n\n3\t4\n", "FILE, line 3: an empty line. Remove it."),
    ("a.tsv", b"a\tb\nx\tcaf\xe9\n", "FILE, line 2, byte 6: not UTF-8 (0xe9). Re-encode the file."),
    ("a.tsv", b"\xef\xbb\xbfa\xff\n", "FILE, line 1, byte 2: not UTF-8 (0xff). Re-encode the file."),
    ("a.xlsx", "a", "FILE: the ending of the name is of no known format. Pass --file_format=tsv, csv or jsonl."),
    ("a.jsonl", '{"a": 1}\n{"a": 2,}\n', "FILE, line 2, column 9: not JSON "),
    ("a.jsonl", '{"a": 1}\n\n{"a": 2}\n', "FILE, line 2, column 1: not JSON (Expecting value). "),
    ("a.jsonl", "[1]\n", "FILE, line 1: not a JSON object. "),
    ("a.jsonl", '{"a": 1}\n{"a": ' + "9" * 5000 + "}", "FILE, line 2: a number or the nesting is too long to be read."),
    ("a.jsonl", "[" * 100_000, "FILE, line 1: a number or the nesting is too long to be read."),
], ids=lambda value: value if isinstance(value, str) and len(value) < 200 else "content")
def test_mistakes_of_a_file_are_reported_by_line(write, name, content, message):
    assert error(write(name, content)).startswith(message)


@pytest.mark.parametrize(("content", "place"), [
    ('t,l\na,1\nb,"open\nc,0\n', "line 3, column 2"),  # to the end of the file
    ('t,l\n"a\nb",1\n"x ""y"" z\n\nw",0\nb,"no end', "line 7, column 2"),
    ('t,l\n"said "hi" there",1\n', "line 2, column 1"),
    ('t,l\n"open,1\nb,0\n"c",1\n', "line 2, column 1"),  # closed by the next quote, two lines on
])
def test_a_stray_quote_is_reported_where_its_field_begins(write, content, place):
    assert error(write("a.csv", content)).startswith(f"FILE, {place}: a quoted field begins here and its closing quote")


@pytest.mark.parametrize(("content", "message"), [
    ("t\tl\na\t1\n \t0\n", "FILE, line 3, column 1 ('t'): empty text. Fill it in or remove the line."),
    ("u\tl\na\t1\n", "FILE, line 1: no column 't'. It has 'u', 'l'."),
    ("t\tt\na\t1\n", "FILE, line 1: 2 columns are named 't'. Give the column by its number."),
])
def test_mistakes_of_a_column(write, content, message):
    assert error(write("a.tsv", content), use=lambda table: table.texts("t")) == message


def test_no_such_number_and_no_name_without_header(write):
    table = tables.read(write("a.tsv", "a\tb\n"), Layout(header=False))
    for column in ("3", "0", "t", "-1"):
        with pytest.raises(BertError, match=f"a.tsv, line 1: no column '{column}'. It has columns 1 to 2.$"):
            table.texts(column)


@pytest.mark.parametrize(("line", "message"), [
    ('{"u": "a"}', "FILE, line 2: no key 't'. It has 'u'."),
    ('{"t": ""}', "FILE, line 2, key 't': empty text. "),
    ('{"t": null}', "FILE, line 2, key 't': expected a text or a number, not null."),
    ('{"t": ["a"]}', "FILE, line 2, key 't': expected a text or a number, not [\"a\"]."),
    ('{"t": 3}', "FILE, line 2, key 't': 3 is not a text. Put it in quotes."),
])
def test_mistakes_of_a_key(write, line, message):
    assert error(write("a.jsonl", f'{{"t": "fine"}}\n{line}\n'), use=lambda table: table.texts("t")).startswith(message)

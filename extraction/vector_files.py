"""Files of vectors, written a chunk of lines at a time: the release's JSON lines, npz, Arrow.

A format is a class like those below, and its line in FORMATS.
"""

import contextlib
import functools
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple, Protocol

import numpy as np

from foundation import files
from foundation.errors import BertError
from inputs.features import Features


class Layout(NamedTuple):
    """What is written for each line.

    Attributes:
        names: of the vectors: `layer_-1` and so on, or `pooled_output`.
        hidden_size: numbers of a vector.
        by_token: whether each token has a vector; else each line has one.
        dtype: of the numbers; JSON has its own.
        vocabulary: word pieces by id.
    """

    names: tuple[str, ...]
    hidden_size: int
    by_token: bool
    dtype: np.dtype
    vocabulary: tuple[str, ...]


class VectorWriter(Protocol):
    """A file of one format while it is written."""

    def write(self, first_line: int, features: Features, vectors: Mapping[str, np.ndarray]) -> None:
        """Writes a chunk.

        Args:
            first_line: number of its first line.
            features: its sequences.
            vectors: by the layout's names, float32 [tokens or lines, hidden].
        """
        ...


class VectorFormat(Protocol):
    """A format.

    Attributes:
        ending: of the names of its files.
    """

    ending: str

    def check(self) -> None:
        """Raises BertError where a library is missing."""
        ...

    def open(self, path: str, layout: Layout) -> contextlib.AbstractContextManager[VectorWriter]:
        """Opens a file; it is complete when the context ends without an exception."""
        ...


def format_of(name: str, path: str) -> VectorFormat:
    """The format of a file.

    Args:
        name: of FORMATS, or "auto": by the ending of the file's name, jsonl for an unknown one.
        path: the file.

    Raises:
        BertError: a library is missing.
    """
    if name == "auto":
        ending = os.path.splitext(path)[1]
        name = next((each for each, known in FORMATS.items() if known.ending == ending), "jsonl")
    FORMATS[name].check()
    return FORMATS[name]


class JsonLines:
    """One JSON object a line, as the release's extract_features.py writes: values rounded to 6 decimals.

    `{"linex_index": 0, "features": [{"token": "[CLS]", "layers": [{"index": -1, "values": [...]}, ...]}, ...]}`; with
    one vector a line `{"linex_index": 0, "layers": [{"index": -1, "values": [...]}]}`.
    """

    ending = ".jsonl"

    def check(self) -> None:
        """Needs no library."""

    @contextlib.contextmanager
    def open(self, path: str, layout: Layout) -> "Iterator[_JsonLinesWriter]":
        """Opens a file; see VectorFormat."""
        with files.open_file(path, "w") as file:
            yield _JsonLinesWriter(file, layout)


class _JsonLinesWriter:
    def __init__(self, file: IO[str], layout: Layout) -> None:
        self.file = file
        self.layout = layout
        heads = [f'{{"index": {json.dumps(_index(name))}, "values": [' for name in layout.names]
        # Around and between the vectors of a token or line.
        self.openings = [f'"layers": [{heads[0]}', *(f"]}}, {head}" for head in heads[1:])]
        self.closing = "]}]}"
        self.token_heads = [f'{{"token": {json.dumps(token)}, ' for token in layout.vocabulary]

    def write(self, first_line: int, features: Features, vectors: Mapping[str, np.ndarray]) -> None:
        for row in range(len(features)):
            begin, end = features.row_splits[row : row + 2] if self.layout.by_token else (row, row + 1)
            bodies = self._bodies([vectors[name][begin:end] for name in self.layout.names])
            head = f'{{"linex_index": {first_line + row}, '
            if self.layout.by_token:
                ids = features.tokens["input_ids"][begin:end]
                tokens = ", ".join(self.token_heads[index] + body for index, body in zip(ids, bodies))
                self.file.write(f'{head}"features": [{tokens}]}}\n')
            else:
                self.file.write(f"{head}{bodies[0]}\n")

    def _bodies(self, layers: Sequence[np.ndarray]) -> list[str]:
        """`"layers": [...]}` of each token or line, from float32 [tokens or lines, hidden] of each layer."""
        texts = [_number_lists(values) for values in layers]
        return ["".join([part for pair in zip(self.openings, row) for part in pair]) + self.closing
                for row in zip(*texts)]


def _index(name: str) -> int | str:
    """What the release calls the index of a layer."""
    return int(name.removeprefix("layer_")) if name.startswith("layer_") else name


def _number_lists(values: np.ndarray) -> list[str]:
    """Numbers of each row with commas between, as JSON writes them when rounded to 6 decimals."""
    # A float32 times a million is exact in float64, so this rounds as Python's round() does.
    rounded = np.rint(values.astype(np.float64) * 1e6) / 1e6
    return [json.dumps(row)[1:-1] for row in rounded.tolist()]


class Npz:
    """NumPy's npz, uncompressed: a file for `numpy.load`.

    With a vector for each token `input_ids` and `segment_ids` int32 [tokens], `row_splits` int64 [lines + 1] and each
    of the layout's names [tokens, hidden]; else only the names, [lines, hidden].
    """

    ending = ".npz"

    def check(self) -> None:
        """Needs no library but NumPy."""

    @contextlib.contextmanager
    def open(self, path: str, layout: Layout) -> "Iterator[_NpzWriter]":
        """Opens a file; see VectorFormat."""
        kinds: dict[str, tuple[np.dtype, tuple[int, ...]]] = dict.fromkeys(
            layout.names, (layout.dtype, (layout.hidden_size,)))
        if layout.by_token:
            kinds |= {"input_ids": (np.dtype(np.int32), ()), "segment_ids": (np.dtype(np.int32), ()),
                      "row_splits": (np.dtype(np.int64), ())}
        # A zip holds one array after the other, and sizes are known only at the end: until then each array has its
        # own file.
        folder = f"{path}-arrays"
        files.make_folder(folder)
        try:
            with contextlib.ExitStack() as stack:
                parts = {name: stack.enter_context(files.open_file(os.path.join(folder, name), "wb"))
                         for name in kinds}
                writer = _NpzWriter(parts, {name: dtype for name, (dtype, _) in kinds.items()}, layout)
                yield writer
            with files.open_file(path, "wb") as target, zipfile.ZipFile(_Stream(target), "w") as archive:
                for name, (dtype, shape) in kinds.items():
                    _add_array(archive, name, os.path.join(folder, name), dtype, (writer.lengths[name], *shape))
        finally:
            with contextlib.suppress(*files.errors()):
                files.remove_folder(folder)


class _NpzWriter:
    """Appends to the arrays of an npz, each in a file of its own."""

    def __init__(self, parts: Mapping[str, IO[bytes]], dtypes: Mapping[str, np.dtype], layout: Layout) -> None:
        self.parts = parts
        self.dtypes = dtypes
        self.layout = layout
        self.lengths = dict.fromkeys(parts, 0)
        self.tokens = 0

    def write(self, first_line: int, features: Features, vectors: Mapping[str, np.ndarray]) -> None:
        for name in self.layout.names:
            self._append(name, vectors[name])
        if self.layout.by_token:
            for name in ("input_ids", "segment_ids"):
                self._append(name, features.tokens[name])
            # The first split, 0, is written with the first chunk.
            new = features.row_splits if not self.lengths["row_splits"] else features.row_splits[1:]
            self._append("row_splits", new + self.tokens)
            self.tokens += int(features.row_splits[-1])

    def _append(self, name: str, array: np.ndarray) -> None:
        self.parts[name].write(array.astype(self.dtypes[name]).tobytes())
        self.lengths[name] += len(array)


def _add_array(archive: zipfile.ZipFile, name: str, path: str, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Adds the bytes of an array to an npz, and removes their file."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
        np.lib.format.write_array_header_2_0(entry, {
            "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
        with files.open_file(path, "rb") as part:
            shutil.copyfileobj(part, entry, 1 << 22)
    files.remove(path)


class Arrow:
    """An Arrow IPC file, a record batch for each chunk: for pyarrow, pandas, polars, datasets.

    Columns: `linex_index` int64; with a vector for each token `input_ids` list of int32, `tokens` list of string, and
    each of the layout's names, a list of vectors of fixed size; else only the names, a vector each.
    """

    ending = ".arrow"

    def check(self) -> None:
        """Raises BertError where pyarrow is not installed."""
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise BertError("Arrow files need pyarrow: pip install pyarrow. Or write npz.") from None

    @contextlib.contextmanager
    def open(self, path: str, layout: Layout) -> "Iterator[_ArrowWriter]":
        """Opens a file; see VectorFormat."""
        # Imported here: optional.
        import pyarrow as pa

        vector = pa.list_(pa.from_numpy_dtype(layout.dtype), layout.hidden_size)
        columns = [("linex_index", pa.int64())]
        if layout.by_token:
            columns += [("input_ids", pa.list_(pa.int32())), ("tokens", pa.list_(pa.string()))]
        columns += [(name, pa.list_(vector) if layout.by_token else vector) for name in layout.names]
        schema = pa.schema(columns)
        with (files.open_file(path, "wb") as file,
              pa.ipc.new_file(pa.PythonFile(_Stream(file), mode="w"), schema) as stream):
            yield _ArrowWriter(pa, stream, schema, layout)


class _ArrowWriter:
    """Args: the module pyarrow, its file writer, its schema, Layout."""

    def __init__(self, pa: Any, stream: Any, schema: Any, layout: Layout) -> None:
        self.pa = pa
        self.stream = stream
        self.schema = schema
        self.layout = layout
        self.vocabulary = pa.array(layout.vocabulary)

    def write(self, first_line: int, features: Features, vectors: Mapping[str, np.ndarray]) -> None:
        pa = self.pa
        columns = [pa.array(np.arange(first_line, first_line + len(features)))]
        lists = functools.partial(pa.ListArray.from_arrays, pa.array(features.row_splits.astype(np.int32)))
        if self.layout.by_token:
            ids = pa.array(features.tokens["input_ids"])
            columns += [lists(ids), lists(self.vocabulary.take(ids))]
        for name in self.layout.names:
            numbers = pa.array(vectors[name].astype(self.layout.dtype).reshape(-1))
            column = pa.FixedSizeListArray.from_arrays(numbers, self.layout.hidden_size)
            columns.append(lists(column) if self.layout.by_token else column)
        self.stream.write_batch(pa.record_batch(columns, schema=self.schema))


class _Stream:
    """A file of `foundation.files` for libraries that ask for more than it has; written from front to back."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        """Left to the owner of the file."""

    def tell(self) -> int:
        return self.file.tell()

    def write(self, data: Any) -> int:
        self.file.write(bytes(data))
        return len(data)

    def seek(self, *_: int) -> int:
        raise OSError("written from front to back")


FORMATS: dict[str, VectorFormat] = {"jsonl": JsonLines(), "npz": Npz(), "arrow": Arrow()}

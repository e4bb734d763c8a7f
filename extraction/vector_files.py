"""Files of vectors, written a chunk of lines at a time: the release's JSON lines, npz, Arrow."""

import contextlib
import functools
import json
import os
import shutil
import zipfile
from typing import NamedTuple

import numpy as np

from foundation import files
from foundation.errors import BertError

FORMATS = ("auto", "jsonl", "npz", "arrow")


class Layout(NamedTuple):
    """What is written of each line.

    Fields:
        names: tuple of str: `layer_-1` and so on, or `pooled_output`.
        hidden_size: int.
        by_token: whether a vector is a token's; else it is a line's.
        dtype: of the numbers; JSON has its own.
        vocabulary: tuple of str.
    """

    names: tuple
    hidden_size: int
    by_token: bool
    dtype: np.dtype
    vocabulary: tuple


def writer(output_format, path):
    """Which class writes a file.

    Args:
        output_format: of FORMATS.
        path: the file; its ending decides where the format is "auto".

    Returns:
        JsonLines, Npz or Arrow: called with path and Layout it gives a context manager with
        `write(first_line, features, vectors)`.

    Raises:
        BertError: Arrow without pyarrow.
    """
    if output_format == "auto":
        output_format = {".npz": "npz", ".arrow": "arrow"}.get(os.path.splitext(path)[1], "jsonl")
    if output_format == "arrow":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise BertError("Arrow files need pyarrow: pip install pyarrow. Or write npz.") from None
    return {"jsonl": JsonLines, "npz": Npz, "arrow": Arrow}[output_format]


class JsonLines:
    """One JSON object a line, as the release's extract_features.py writes: values rounded to 6 decimals.

    `{"linex_index": 0, "features": [{"token": "[CLS]", "layers": [{"index": -1, "values": [...]}, ...]}, ...]}`; with
    one vector a line `{"linex_index": 0, "layers": [{"index": -1, "values": [...]}]}`.

    Args:
        path: str.
        layout: Layout.
    """

    def __init__(self, path, layout):
        self.path, self.layout = path, layout
        heads = [f'{{"index": {json.dumps(_index(name))}, "values": [' for name in layout.names]
        # Around and between the vectors of a token or line.
        self.openings = [f'"layers": [{heads[0]}', *(f"]}}, {head}" for head in heads[1:])]
        self.closing = "]}]}"
        self.token_heads = [f'{{"token": {json.dumps(token)}, ' for token in layout.vocabulary]

    def __enter__(self):
        self.file = files.open_file(self.path, "w")
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, first_line, features, vectors):
        """Writes a chunk.

        Args:
            first_line: number of its first line.
            features: Features.
            vectors: dict of the layout's names to float32 [tokens or lines, hidden].
        """
        for row in range(len(features)):
            begin, end = features.row_splits[row : row + 2] if self.layout.by_token else (row, row + 1)
            bodies = self._bodies([vectors[name][begin:end] for name in self.layout.names])
            head = f'{{"linex_index": {first_line + row}, '
            if self.layout.by_token:
                ids = features.tokens["input_ids"][begin:end]
                bodies = ", ".join([self.token_heads[index] + body for index, body in zip(ids, bodies)])
                self.file.write(f'{head}"features": [{bodies}]}}\n')
            else:
                self.file.write(f"{head}{bodies[0]}\n")

    def _bodies(self, layers):
        """`"layers": [...]}` of each token or line; layers is a list of float32 [n, hidden]."""
        texts = [_number_lists(values) for values in layers]
        return ["".join([part for pair in zip(self.openings, row) for part in pair]) + self.closing
                for row in zip(*texts)]


def _number_lists(values):
    """Numbers of each row with commas between, as JSON writes them when rounded to 6 decimals."""
    # A float32 times a million is exact in float64, so this rounds as Python's round() does.
    rounded = np.rint(values.astype(np.float64) * 1e6) / 1e6
    return [json.dumps(row)[1:-1] for row in rounded.tolist()]


class Npz:
    """NumPy's npz, uncompressed: a file for `numpy.load`.

    With a vector a token `input_ids` and `segment_ids` int32 [tokens], `row_splits` int64 [lines + 1] and each of
    the layout's names [tokens, hidden]; else only the names, [lines, hidden].

    Args:
        path: str.
        layout: Layout.
    """

    def __init__(self, path, layout):
        self.path, self.layout, self.folder = path, layout, f"{path}-arrays"
        self.kinds = dict.fromkeys(layout.names, (layout.dtype, (layout.hidden_size,)))
        if layout.by_token:
            self.kinds |= {"input_ids": (np.dtype(np.int32), ()), "segment_ids": (np.dtype(np.int32), ()),
                           "row_splits": (np.dtype(np.int64), ())}

    def __enter__(self):
        # An array's size is known at the end, and a zip holds one after the other: until then each has its own file.
        files.make_folder(self.folder)
        self.parts = {name: files.open_file(self._part(name), "wb") for name in self.kinds}
        self.lengths = dict.fromkeys(self.kinds, 0)
        self.tokens = 0
        if self.layout.by_token:
            self._append("row_splits", np.zeros(1))
        return self

    def __exit__(self, kind, *_):
        try:
            for part in self.parts.values():
                part.close()
            if kind is None:
                self._assemble()
        finally:
            with contextlib.suppress(*files.errors()):
                files.remove_folder(self.folder)

    def write(self, first_line, features, vectors):
        """Writes a chunk; see JsonLines."""
        for name in self.layout.names:
            self._append(name, vectors[name])
        if self.layout.by_token:
            for name in ("input_ids", "segment_ids"):
                self._append(name, features.tokens[name])
            self._append("row_splits", features.row_splits[1:] + self.tokens)
            self.tokens += int(features.row_splits[-1])

    def _append(self, name, array):
        self.parts[name].write(array.astype(self.kinds[name][0]).tobytes())
        self.lengths[name] += len(array)

    def _assemble(self):
        with files.open_file(self.path, "wb") as target, zipfile.ZipFile(_Stream(target), "w") as archive:
            for name, (dtype, rest) in self.kinds.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array_header_2_0(entry, {
                        "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False,
                        "shape": (self.lengths[name], *rest)})
                    with files.open_file(self._part(name), "rb") as part:
                        shutil.copyfileobj(part, entry, 1 << 22)
                files.remove(self._part(name))

    def _part(self, name):
        return os.path.join(self.folder, name)


class _Stream:
    """A gfile for those who ask more of a Python file than a gfile does; written from front to back."""

    closed = False

    def __init__(self, file):
        self.file, self.flush, self.tell = file, file.flush, file.tell

    def write(self, data):
        self.file.write(bytes(data))
        return len(data)

    def seek(self, *_):
        raise OSError("written from front to back")


class Arrow:
    """An Arrow IPC file, a record batch a chunk: for pyarrow, pandas, polars, datasets.

    Columns: `linex_index` int64; with a vector a token `input_ids` list of int32, `tokens` list of string, and each
    of the layout's names, a list of vectors of fixed size; else only the names, a vector each.

    Args:
        path: str.
        layout: Layout.
    """

    def __init__(self, path, layout):
        import pyarrow as pa

        self.path, self.layout, self.pa = path, layout, pa
        self.vocabulary = pa.array(layout.vocabulary)
        vector = pa.list_(pa.from_numpy_dtype(layout.dtype), layout.hidden_size)
        columns = [("linex_index", pa.int64())]
        if layout.by_token:
            columns += [("input_ids", pa.list_(pa.int32())), ("tokens", pa.list_(pa.string()))]
        columns += [(name, pa.list_(vector) if layout.by_token else vector) for name in layout.names]
        self.schema = pa.schema(columns)

    def __enter__(self):
        self.file = files.open_file(self.path, "wb")
        self.writer = self.pa.ipc.new_file(self.pa.PythonFile(_Stream(self.file), mode="w"), self.schema)
        return self

    def __exit__(self, *_):
        self.writer.close()
        self.file.close()

    def write(self, first_line, features, vectors):
        """Writes a chunk; see JsonLines."""
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
        self.writer.write_batch(pa.record_batch(columns, schema=self.schema))


def _index(name):
    return int(name.removeprefix("layer_")) if name.startswith("layer_") else name

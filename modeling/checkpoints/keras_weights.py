"""Checkpoints in Keras' format: one `model.weights.h5`, which `load_weights` of a model in `modeling.models` takes.

Keras names a dataset by the attributes that lead to a layer and by the variable's number in the layer; `dataset_of`
gives that name for each of the release's. A dataset also has the release's name as an attribute, so a file can be read
without its model.

The layout is written by this module and not by `save_weights` of a model made for the purpose. That would need every
variable of the model, but a checkpoint may lack the pooler or a head; hold the weights in memory; and take TensorFlow's
import and seconds of initialisation to convert a file. A test compares the layout with that of `save_weights` for every
model, so a change in Keras does not go unnoticed.
"""

import contextlib
import io
import math
import os
import re
import tempfile
from typing import IO, TYPE_CHECKING, Any

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import hdf5_structure, release_folder
from modeling.checkpoints.format import CheckpointReader, Contents
from modeling.checkpoints.hdf5_structure import Dataset
from modeling.checkpoints.training_state import training_state_in
from modeling.head_table import HEADS

if TYPE_CHECKING:
    import numpy as np

FILE_NAME = "model.weights.h5"

# The release's scopes and the attributes that hold them in this project, in order.
_ATTRIBUTES = (
    (r"^bert/encoder/layer_0/", "bert/encoder/layers/encoder_layer/"),
    (r"^bert/encoder/layer_(\d+)/", r"bert/encoder/layers/encoder_layer_\1/"),
    (r"/attention/self/", "/attention/self_attention/"),
    (r"/output/", "/output_block/"),
    (r"/LayerNorm/", "/norm/"),
)
_NUMBERS = {
    "word_embeddings": 0, "token_type_embeddings": 1, "position_embeddings": 2,
    "kernel": 0, "bias": 1, "beta": 0, "gamma": 1, "output_weights": 0, "output_bias": 1,
}


class Reader:
    """An open file; see `format.CheckpointReader`. A tensor is read on request.

    `unknown` are the datasets without a name that are not of the encoder or the pre-training heads: task heads that
    Keras' own `save_weights` wrote, which have the same place for all tasks.

    Raises:
        BertError: not a whole HDF5 file, or no BERT in it.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file, datasets = _open(path)
        named = [(dataset, dataset.name or _name_at(dataset.path)) for dataset in datasets]
        self._datasets = {name: dataset for dataset, name in named if name}
        self.shapes = {name: list(dataset.shape) for name, dataset in self._datasets.items()}
        self.unknown = tuple(dataset.path for dataset, name in named if not name)
        if not self.shapes:
            raise BertError(f"{path}: holds no BERT that convert_checkpoint.py, or save_weights of a model of this "
                            "project, wrote. HDF5 files of other programs are not read.")

    @property
    def names(self) -> list[str]:
        """Sorted names."""
        return sorted(self.shapes)

    def get(self, name: str) -> "np.ndarray":
        """The value of a variable. Raises BertError when the name is unknown or the file is damaged."""
        import numpy as np

        if name not in self._datasets:
            raise BertError(f"{self.path}: holds no variable {name}.")
        dataset = self._datasets[name]
        count = math.prod(dataset.shape)
        self._file.seek(dataset.offset)
        values = np.fromfile(self._file, dataset.dtype, count)
        if len(values) < count:
            raise BertError(f"{self.path}: the file is damaged (it ends within {dataset.path}).")
        return values.reshape(dataset.shape)


def read(path: str) -> Reader:
    """Opens a file that `write`, or `save_weights` of a model of this project, wrote."""
    return Reader(path)


def write(path: str, reader: CheckpointReader) -> list[str]:
    """Writes a file atomically, a tensor at a time.

    Args:
        path: ends in `.weights.h5`.
        reader: names are written in its order.

    Returns:
        the names left out: those that no model of this project has, such as optimizer slots or a second head.
    """
    with files.atomic(path) as temporary:
        if not files.is_remote(path):
            return _write(temporary, reader)
        # HDF5 only writes local files.
        with tempfile.TemporaryDirectory() as folder:
            left_out = _write(local := os.path.join(folder, FILE_NAME), reader)
            files.copy(local, temporary)
        return left_out


class KerasFormat:
    """Weight files of Keras models; see `format.CheckpointFormat`."""

    name = "keras"
    description = f"{FILE_NAME} and {release_folder.CONFIG_FILES[0]}"
    example = FILE_NAME
    config_files = release_folder.CONFIG_FILES
    labels = staticmethod(release_folder.labels)
    lower_case = staticmethod(release_folder.lower_case)

    def find(self, path: str) -> str | None:
        """A `.h5` or `.keras` file, or a folder with `model.weights.h5`."""
        path = os.path.join(path, FILE_NAME) if files.is_folder(path) else path
        return path if path.endswith((".h5", ".keras")) and files.exists(path) else None

    def refusal(self, path: str) -> str | None:
        """Never: what looks like a weight file is found, and `open` refuses it."""
        return None

    def open(self, path: str) -> Reader:
        """Opens a file."""
        return Reader(path)

    def write(self, folder: str, contents: Contents) -> list[str]:
        """The weights that a model has; training state and further heads are left out."""
        release_folder.write(folder, contents)
        return write(os.path.join(folder, FILE_NAME), contents.reader)


FORMAT = KerasFormat()


def dataset_of(name: str) -> str | None:
    """Where Keras keeps the variable of a release's name, or None where no model of this project has it."""
    scope, _, leaf = name.rpartition("/")
    if leaf not in _NUMBERS:
        return None
    if leaf.startswith("output_") and name.removesuffix(leaf) in {head.scope for head in HEADS.values()}:
        return f"head/vars/{_NUMBERS[leaf]}"
    if not scope.startswith(("bert/", "cls/")):
        return None
    # The words' biases are their layer's only variable.
    number = 0 if scope == "cls/predictions" else _NUMBERS[leaf]
    for pattern, replacement in _ATTRIBUTES:
        name = re.sub(pattern, replacement, name)
    return f"{name.rpartition('/')[0]}/vars/{number}"


def _write(path: str, reader: CheckpointReader) -> list[str]:
    # h5py is imported where a file is opened, so that a table of formats costs nothing.
    import h5py

    left_out = []
    training_state = training_state_in(reader.names)
    with _ForgivingFile(path) as raw:
        with h5py.File(raw, "w") as file:
            for name in reader.names:
                dataset = None if name in training_state else dataset_of(name)
                if dataset is None or dataset in file:
                    left_out.append(name)
                    continue
                file.create_dataset(dataset, data=reader.get(name)).attrs["name"] = name
                raw.check()
        raw.check()
    return left_out


class _ForgivingFile(io.FileIO):
    """A file for HDF5 to write to, which ends the process with a segmentation fault where a write fails.

    So writes seem to succeed, and `check` raises the OSError of the first that did not.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, "w+")
        self.error: OSError | None = None

    def check(self) -> None:
        """Raises OSError where a write has failed."""
        if self.error:
            raise self.error

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while rest and not self.error:
                rest = rest[super().write(rest) or 0:]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0


def _name_at(dataset: str) -> str | None:
    """The release's name of a dataset that any model may have; None for task heads and unknown datasets."""
    name = _NAMES_WITHOUT_TASK_HEADS.get(re.sub(r"encoder_layer_\d+/", "encoder_layer/", dataset))
    layer = re.search(r"encoder_layer_(\d+)/", dataset)
    return name.replace("/layer_0/", f"/layer_{layer[1]}/") if name and layer else name


def _names_without_task_heads() -> dict[str, str]:
    """The datasets of the encoder and the pre-training heads, layers as the first, to the release's names."""
    embeddings = [f"bert/embeddings/{name}_embeddings" for name in ("word", "token_type", "position")]
    dense = [f"bert/encoder/layer_0/{part}" for part in (
        "attention/self/query", "attention/self/key", "attention/self/value", "attention/output/dense",
        "intermediate/dense", "output/dense")] + ["bert/pooler/dense", "cls/predictions/transform/dense"]
    norms = [f"{part}/LayerNorm" for part in (
        "bert/embeddings", "bert/encoder/layer_0/attention/output", "bert/encoder/layer_0/output",
        "cls/predictions/transform")]
    names = embeddings + [f"{part}/{leaf}" for part in dense for leaf in ("kernel", "bias")]
    names += [f"{part}/{leaf}" for part in norms for leaf in ("beta", "gamma")]
    names += ["cls/predictions/output_bias", "cls/seq_relationship/output_weights", "cls/seq_relationship/output_bias"]
    return {dataset: name for name in names if (dataset := dataset_of(name))}


_NAMES_WITHOUT_TASK_HEADS = _names_without_task_heads()


def _open(path: str) -> tuple[IO[bytes], list[Dataset]]:
    """An open HDF5 file and its datasets. A remote one is copied for as long as it is open."""
    if not files.exists(path):
        raise BertError(f"{path}: no such file.")
    with tempfile.TemporaryDirectory() if files.is_remote(path) else contextlib.nullcontext() as folder:
        local = os.path.join(folder, FILE_NAME) if folder else path
        if folder:
            files.copy(path, local)
        datasets = hdf5_structure.read(local)
        try:
            return open(local, "rb"), datasets
        except OSError as error:
            raise files.unreadable(path, error) from None

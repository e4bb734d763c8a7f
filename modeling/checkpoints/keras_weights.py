"""Checkpoints in Keras' format: one `model.weights.h5`, which `load_weights` of a model in `modeling.models` takes.

Keras names a dataset by the attributes that lead to it and by the variable's number there; `dataset_of` says so for
each of the release's names. Each dataset carries the release's name too, so that a file can be read without its model.
"""

import os
import re
import tempfile

import h5py

from foundation import files
from foundation.errors import BertError

FILE_NAME = "model.weights.h5"

# The release's scopes and the attributes that hold them here, in order.
_ATTRIBUTES = (
    (r"^bert/encoder/layer_0/", "bert/encoder/layers/encoder_layer/"),
    (r"^bert/encoder/layer_(\d+)/", r"bert/encoder/layers/encoder_layer_\1/"),
    (r"/attention/self/", "/attention/self_attention/"),
    (r"/output/", "/output_block/"),
    (r"/LayerNorm/", "/norm/"),
    (r"^(cls/(squad|ner|choice)/)?output_", "head/output_"),
)
_NUMBERS = {
    "word_embeddings": 0, "token_type_embeddings": 1, "position_embeddings": 2,
    "kernel": 0, "bias": 1, "beta": 0, "gamma": 1, "output_weights": 0, "output_bias": 1,
}


class Reader:
    """An open file, as `google.Reader`; a tensor is read when it is asked for.

    Attributes:
        shapes: dict, the release's names to lists of int.
        unknown: datasets whose name there nobody wrote down.
    """

    def __init__(self, path):
        self.path = path
        self.shapes, self.unknown, self._datasets = {}, [], {}
        self._file = _open(path)
        self._file.visititems(self._note)
        self.unknown = tuple(self.unknown)
        if not self.shapes:
            raise BertError(f"{path}: holds no BERT that convert_checkpoint.py, or save_weights of a model here, "
                            f"wrote. HDF5 files of other programs are not read.")

    def _note(self, dataset, item):
        if not isinstance(item, h5py.Dataset):
            return
        name = item.attrs.get("name") or _NAMES_WITHOUT_HEADS.get(_in_first_layer(dataset))
        if name is None:
            self.unknown.append(dataset)
            return
        layer = re.search(r"encoder_layer_(\d+)/", dataset)
        name = name if "name" in item.attrs or not layer else name.replace("/layer_0/", f"/layer_{layer[1]}/")
        self.shapes[name] = list(item.shape)
        self._datasets[name] = dataset

    @property
    def names(self):
        """Sorted names."""
        return sorted(self.shapes)

    def get(self, name):
        """A variable's value as a NumPy array. Raises BertError where the file has no such name, or is damaged."""
        if name not in self._datasets:
            raise BertError(f"{self.path}: holds no variable {name}.")
        try:
            return self._file[self._datasets[name]][()]
        except (OSError, KeyError) as error:
            raise BertError(f"{self.path}: the file is damaged ({error}).") from None


def read(path):
    """Opens a file that `write`, or `save_weights` of a model here, has written. Raises BertError where it cannot."""
    return Reader(path)


def write(path, values):
    """Writes a file atomically; names that no model here has, as optimizer slots or a second head, are left out.

    Args:
        path: ends in `.weights.h5`.
        values: dict, the release's names to arrays.

    Returns:
        list of the names left out.
    """
    with files.atomic(path) as temporary:
        if not files.is_remote(path):
            return _write(temporary, values)
        # HDF5 knows local files only.
        with tempfile.TemporaryDirectory() as folder:
            left_out = _write(local := os.path.join(folder, FILE_NAME), values)
            files.copy(local, temporary)
        return left_out


def _write(path, values):
    left_out = []
    with h5py.File(path, "w") as file:
        for name, value in values.items():
            dataset = dataset_of(name)
            if dataset is None or dataset in file:
                left_out.append(name)
                continue
            file.create_dataset(dataset, data=value).attrs["name"] = name
    return left_out


def dataset_of(name):
    """Where Keras keeps the variable of a release's name, or None where no model here has it."""
    scope, _, leaf = name.rpartition("/")
    if leaf not in _NUMBERS or not re.match(r"(bert|cls)/|output_", name):
        return None
    # The words' biases are their layer's only variable.
    number = 0 if scope == "cls/predictions" else _NUMBERS[leaf]
    for pattern, replacement in _ATTRIBUTES:
        name = re.sub(pattern, replacement, name)
    return f"{name.rpartition('/')[0]}/vars/{number}"


def _in_first_layer(dataset):
    return re.sub(r"encoder_layer_\d+/", "encoder_layer/", dataset)


def _names():
    """The datasets of everything but task heads, whose number is the same for all tasks; layers as the first."""
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
    return {dataset_of(name): name for name in names}


_NAMES_WITHOUT_HEADS = _names()


def _open(path):
    """An open HDF5 file. A remote one is copied for as long as it is open."""
    if not files.exists(path):
        raise BertError(f"{path}: no such file.")
    try:
        if not files.is_remote(path):
            return h5py.File(path, "r")
        with tempfile.TemporaryDirectory() as folder:
            files.copy(path, copy := os.path.join(folder, FILE_NAME))
            return h5py.File(copy, "r")
    except OSError as error:
        reason = str(error).splitlines()[0]
        raise BertError(f"{path}: not a whole HDF5 file ({reason}).") from None

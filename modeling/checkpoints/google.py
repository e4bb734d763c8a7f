"""Checkpoints in the release's format: TensorFlow's bundles, `x.index` and `x.data-00000-of-00001`, by variable name.

Variables of a model here have the release's names, so there is no table of names to keep.
"""

import contextlib
import dataclasses
import os

import tensorflow as tf

from foundation import files
from foundation.errors import BertError
from modeling.models import named_variables


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What became of each name when a checkpoint was loaded.

    Attributes:
        read: variables of the model that took their value from the file.
        initial: variables of the model that the file does not hold, left at their initial values.
        unused: names in the file that the model does not have, as Adam's slots and the step counter.
    """

    read: tuple
    initial: tuple
    unused: tuple

    def summary(self):
        """One line for the console."""
        read, initial, unused = len(self.read), len(self.initial), len(self.unused)
        return f"{read} variables read, {initial} left at their initial values, {unused} unused."


class Reader:
    """An open checkpoint.

    Attributes:
        shapes: dict, name to list of int.
    """

    def __init__(self, prefix):
        self.prefix = prefix
        with _plainly(prefix):
            # Not tf.train.load_checkpoint, which takes a prefix on some file systems for a folder.
            self._reader = tf.compat.v1.train.NewCheckpointReader(prefix)
            self.shapes = self._reader.get_variable_to_shape_map()

    @property
    def names(self):
        """Sorted names."""
        return sorted(self.shapes)

    def get(self, name):
        """A variable's value as a NumPy array. Raises BertError where the file has no such name, or is damaged."""
        if name not in self.shapes:
            raise BertError(f"{self.prefix}: holds no variable {name}.")
        with _plainly(self.prefix):
            return self._reader.get_tensor(name)


def read(prefix):
    """Opens a checkpoint by its prefix, the path without `.index`.

    Raises:
        BertError: there is no such checkpoint, or it is damaged.
    """
    return Reader(str(prefix).removesuffix(".index"))


def write(prefix, values):
    """Writes a checkpoint: first the data, then the index, without which a checkpoint does not exist.

    Args:
        prefix: the path without `.index`.
        values: dict, name to array, tensor or variable.

    Raises:
        BertError: the disk is full or the folder cannot be written; then no index is left behind.
    """
    prefix = str(prefix)
    temporary = f"{prefix}.tmp-{os.getpid()}"
    data, index = ".data-00000-of-00001", ".index"
    tensors = [tf.convert_to_tensor(value) for value in values.values()]
    files.make_folder(os.path.dirname(prefix))
    try:
        with files.writing(prefix):
            tf.raw_ops.SaveV2(
                prefix=temporary, tensor_names=list(values), shape_and_slices=[""] * len(values), tensors=tensors
            )
            with contextlib.suppress(tf.errors.NotFoundError):
                tf.io.gfile.remove(prefix + index)
            for part in (data, index):
                tf.io.gfile.rename(temporary + part, prefix + part, overwrite=True)
    finally:
        for part in (data, index):
            with contextlib.suppress(tf.errors.OpError):
                tf.io.gfile.remove(temporary + part)


def load_into(model, prefix):
    """Gives a model's variables the values that a checkpoint holds under their names.

    Args:
        model: a Keras model whose variables have the release's names, or a dict of name to variable.
        prefix: the checkpoint's path without `.index`.

    Returns:
        LoadReport.

    Raises:
        BertError: no such checkpoint, a damaged one, one that shares no name with the model, or a shape that differs.
    """
    reader = read(prefix)
    variables = model if isinstance(model, dict) else named_variables(model)
    found = [name for name in variables if name in reader.shapes]
    if not found:
        raise BertError(f"{prefix}: holds none of the model's variables (it holds {_some(reader.names)}).")
    for name in found:
        if tuple(reader.shapes[name]) != tuple(variables[name].shape):
            raise BertError(
                f"{prefix}: {name} has the shape {list(reader.shapes[name])} there and "
                f"{list(variables[name].shape)} in the model. Use the checkpoint's own bert_config.json."
            )
    for name in found:
        variables[name].assign(reader.get(name))
    return LoadReport(
        read=tuple(found),
        initial=tuple(name for name in variables if name not in reader.shapes),
        unused=tuple(name for name in reader.names if name not in variables),
    )


def _some(names, limit=3):
    return ", ".join(names[:limit]) + (" …" if len(names) > limit else "") if names else "nothing"


@contextlib.contextmanager
def _plainly(prefix):
    """Turns what TensorFlow says of a missing or damaged checkpoint into one plain line."""
    try:
        yield
    # The reader raises Python's own exceptions for some of what it finds, with the file system's words.
    except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
        if not tf.io.gfile.exists(f"{prefix}.index") and not tf.io.gfile.exists(prefix):
            raise BertError(f"{prefix}: no such checkpoint ({prefix}.index does not exist).") from None
        reason = str(error).splitlines()[0][:200]
        raise BertError(f"{prefix}: the checkpoint is damaged or incomplete ({reason}).") from None

"""Checkpoints in the release's format: TensorFlow's bundles, `x.index` and `x.data-00000-of-00001`, by variable name.

Variables of a model here have the release's names, so there is no table of names to keep. Runs save in this format too.
"""

import contextlib
import os
import re

import tensorflow as tf

from foundation import files
from foundation.errors import BertError

# What a training run calls its checkpoints, before the step.
TRAINING_PREFIX = "model.ckpt"


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


def training_checkpoints(folder):
    """Checkpoints of a training run, `model.ckpt-<step>`: list of (step, prefix), oldest first.

    The index file is written last, so that a checkpoint without one was never finished.
    """
    found = []
    for index in files.glob(os.path.join(folder, f"{TRAINING_PREFIX}-*.index")):
        if step := re.fullmatch(rf"{re.escape(TRAINING_PREFIX)}-(\d+)\.index", os.path.basename(index)):
            found.append((int(step[1]), index.removesuffix(".index")))
    return sorted(found)


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
            if files.exists(prefix + index):
                files.remove(prefix + index)
            for part in (data, index):
                files.rename(temporary + part, prefix + part)
    finally:
        for part in (data, index):
            with contextlib.suppress(*files.errors()):
                files.remove(temporary + part)


@contextlib.contextmanager
def _plainly(prefix):
    """Turns what TensorFlow says of a missing or damaged checkpoint into one plain line."""
    try:
        yield
    # The reader raises Python's own exceptions for some of what it finds, with the file system's words.
    except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
        if not files.exists(f"{prefix}.index") and not files.exists(prefix):
            raise BertError(f"{prefix}: no such checkpoint ({prefix}.index does not exist).") from None
        reason = str(error).splitlines()[0][:200]
        raise BertError(f"{prefix}: the checkpoint is damaged or incomplete ({reason}).") from None

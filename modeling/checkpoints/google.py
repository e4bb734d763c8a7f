"""Checkpoints in the release's format: TensorFlow's bundles, `x.index` and `x.data-00000-of-00001`, by variable name.

The variables of a model of this project have the release's names, so this format needs no table of names. Training runs
save in it too. TensorFlow is imported to read and write tensors, not to find a checkpoint.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from foundation import files, run_files
from foundation.errors import BertError
from modeling.checkpoints import release_folder
from modeling.checkpoints.format import Contents
from modeling.checkpoints.training_state import training_state_in

if TYPE_CHECKING:
    import numpy as np

_INDEX, _DATA = ".index", ".data-00000-of-00001"


class Reader:
    """An open checkpoint; see `format.CheckpointReader`.

    Args:
        prefix: the path without `.index`.

    Raises:
        BertError: there is no such checkpoint, or it is damaged.
    """

    unknown: tuple[str, ...] = ()

    def __init__(self, prefix: str) -> None:
        import tensorflow as tf

        self.prefix = prefix
        with _plainly(prefix):
            # Not tf.train.load_checkpoint, which takes a prefix on some file systems for a folder.
            self._reader = tf.compat.v1.train.NewCheckpointReader(prefix)
            self.shapes: dict[str, list[int]] = self._reader.get_variable_to_shape_map()

    @property
    def names(self) -> list[str]:
        """Sorted names."""
        return sorted(self.shapes)

    def get(self, name: str) -> "np.ndarray":
        """The value of a variable. Raises BertError when the name is unknown or the file is damaged."""
        if name not in self.shapes:
            raise BertError(f"{self.prefix}: holds no variable {name}.")
        with _plainly(self.prefix):
            return self._reader.get_tensor(name)


def read(prefix: str) -> Reader:
    """Opens a checkpoint by its prefix, with or without `.index`. Raises BertError when it is missing or damaged."""
    return Reader(str(prefix).removesuffix(_INDEX))


def training_checkpoints(folder: str) -> list[tuple[int, str]]:
    """Checkpoints of a training run, `model.ckpt-<step>`: (step, prefix), oldest first.

    The index file is written last, so a checkpoint without one was never finished.
    """
    found = []
    for index in files.glob(os.path.join(folder, f"{run_files.RUN_CHECKPOINT}-*{_INDEX}")):
        if step := re.fullmatch(rf"{re.escape(run_files.RUN_CHECKPOINT)}-(\d+)\.index", os.path.basename(index)):
            found.append((int(step[1]), index.removesuffix(_INDEX)))
    return sorted(found)


def write(prefix: str, values: Mapping[str, Any]) -> None:
    """Writes a checkpoint: first the data, then the index, without which a checkpoint does not exist.

    Args:
        prefix: the path without `.index`.
        values: name to array, tensor or variable.

    Raises:
        BertError: the disk is full or the folder cannot be written; then no index is left behind.
    """
    import tensorflow as tf

    prefix = str(prefix)
    temporary = f"{prefix}.tmp-{os.getpid()}"
    tensors = [tf.convert_to_tensor(value) for value in values.values()]
    files.make_folder(os.path.dirname(prefix))
    try:
        with files.writing(prefix):
            tf.raw_ops.SaveV2(
                prefix=temporary, tensor_names=list(values), shape_and_slices=[""] * len(values), tensors=tensors)
            for part in (_DATA, _INDEX):
                files.sync(temporary + part)
            if files.exists(prefix + _INDEX):
                files.remove(prefix + _INDEX)
            for part in (_DATA, _INDEX):
                files.rename(temporary + part, prefix + part)
            files.sync(os.path.dirname(prefix) or ".")
    finally:
        for part in (_DATA, _INDEX):
            with contextlib.suppress(*files.errors()):
                files.remove(temporary + part)


class GoogleFormat:
    """The release's folders, and checkpoints of training runs; see `format.CheckpointFormat`."""

    name = "google"
    description = f"{run_files.RELEASED_CHECKPOINT} and {run_files.CONFIG}"
    example = run_files.RELEASED_CHECKPOINT
    config_files = release_folder.CONFIG_FILES
    labels = staticmethod(release_folder.labels)
    lower_case = staticmethod(release_folder.lower_case)

    def find(self, path: str) -> str | None:
        """A prefix, one of its files, or a folder with one checkpoint."""
        path = _prefix_of(path)
        if files.exists(path + _INDEX):
            return path
        if not files.is_folder(path):
            return None
        indexes = files.glob(os.path.join(path, f"*{_INDEX}"))
        # A file that a killed process was writing is no checkpoint.
        prefixes = sorted(name.removesuffix(_INDEX) for name in indexes if ".tmp-" not in os.path.basename(name))
        if len(prefixes) > 1:
            names = ", ".join(os.path.basename(prefix) for prefix in prefixes)
            raise BertError(f"{path}: holds several checkpoints ({names}). Name one of them.")
        return prefixes[0] if prefixes else None

    def refusal(self, path: str) -> str | None:
        """Data without an index."""
        pattern = os.path.join(path, "*.data-*") if files.is_folder(path) else f"{_prefix_of(path)}.data-*"
        data = files.glob(pattern)
        if not data:
            return None
        prefix = _prefix_of(data[0])
        return (f"{path}: found {os.path.basename(data[0])}, but {os.path.basename(prefix)}{_INDEX} is missing. "
                "Copy it too.")

    def open(self, path: str) -> Reader:
        """Opens a prefix."""
        return Reader(path)

    def write(self, folder: str, contents: Contents) -> list[str]:
        """All weights by their own names; training state is left out."""
        reader = contents.reader
        left_out = training_state_in(reader.names)
        values = {name: reader.get(name) for name in reader.names if name not in left_out}
        release_folder.write(folder, contents)
        write(os.path.join(folder, run_files.RELEASED_CHECKPOINT), values)
        return [name for name in reader.names if name in left_out]


FORMAT = GoogleFormat()


def _prefix_of(path: str) -> str:
    """The prefix of a checkpoint's file; the path itself where it is none."""
    return re.sub(r"\.(index|data-\d+-of-\d+)$", "", path)


@contextlib.contextmanager
def _plainly(prefix: str) -> Iterator[None]:
    """Turns TensorFlow's exceptions for a missing or damaged checkpoint into one plain line."""
    import tensorflow as tf

    try:
        yield
    # The reader also raises Python's own exceptions, with the file system's words.
    except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
        if not files.exists(prefix + _INDEX) and not files.exists(prefix):
            raise BertError(f"{prefix}: no such checkpoint ({prefix}.index does not exist).") from None
        reason = str(error).splitlines()[0][:200]
        raise BertError(f"{prefix}: the checkpoint is damaged or incomplete ({reason}).") from None

"""The folder of one run: what it was told, its checkpoints, and the model it ends with.

    run.json                  the settings that decide the result; a command with others is refused
    bert_config.json          the model's sizes, and vocab.txt: so that a run is a checkpoint to start from at any time
    model.ckpt-1000.*         weights, optimizer slots and global_step, by the release's variable names
    checkpoint                the newest of them, as TensorFlow writes it
    metrics.jsonl             what was reported, a line each
    final_model/              bert_config.json, vocab.txt and bert_model.ckpt.*, as a released checkpoint is laid out
"""

import os

import numpy as np
import tensorflow as tf

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import google

_GLOBAL_STEP = "global_step"


class RunDirectory:
    """One run's folder.

    Args:
        path: the folder; made where it does not exist.
        keep: how many checkpoints stay.
        writable: False on machines other than the first, which only read.
    """

    def __init__(self, path, keep=5, writable=True):
        self.path = path
        self.keep = keep
        self.writable = writable
        if writable:
            files.make_folder(path)

    def claim(self, settings):
        """Notes the settings that decide this run's result, or holds them to those noted before.

        Args:
            settings: JSON-able dict.

        Raises:
            BertError: the folder belongs to a run with other settings; the first that differ are named.
        """
        noted = self.join("run.json")
        settings = {key: settings[key] for key in sorted(settings)}
        if not files.exists(noted):
            if self.writable:
                files.write_json(noted, settings)
            return
        before = files.read_json(noted)
        differing = [key for key in sorted({*before, *settings}) if before.get(key) != settings.get(key)]
        if differing:
            changes = "; ".join(f"{key} was {before.get(key)!r}, is {settings.get(key)!r}" for key in differing[:4])
            raise BertError(
                f"{self.path} belongs to a run with other settings: {changes}. "
                f"Name another --output_dir, or remove this folder to start anew."
            )

    def join(self, name):
        """Path of a file in the folder."""
        return os.path.join(self.path, name)

    def note_model(self, config, vocab_file):
        """Writes configuration and vocabulary into the folder."""
        if self.writable:
            _write_model_files(self.path, config, vocab_file)

    def checkpoints(self):
        """Complete checkpoints, list of (step, prefix), oldest first."""
        return google.training_checkpoints(self.path)

    def save(self, step, variables):
        """Writes a checkpoint, makes it the newest, and removes those beyond `keep`.

        Args:
            step: updates made so far.
            variables: dict of name to variable: weights and optimizer slots.

        Returns:
            the checkpoint's prefix.
        """
        prefix = self.join(f"{google.TRAINING_PREFIX}-{step}")
        if not self.writable:
            return prefix
        with files.writing(prefix):
            google.write(prefix, {**_values(variables), _GLOBAL_STEP: np.int64(step)})
        complete = [path for _, path in self.checkpoints()]
        self._point_at(prefix, complete[-self.keep :])
        for old in complete[: -self.keep]:
            _remove(old)
        return prefix

    def _point_at(self, newest, kept):
        """Writes the state file that `tf.train.latest_checkpoint` reads."""
        lines = [f'model_checkpoint_path: "{os.path.basename(newest)}"']
        lines += [f'all_model_checkpoint_paths: "{os.path.basename(path)}"' for path in kept]
        files.write_text(self.join("checkpoint"), "\n".join(lines) + "\n")

    def restore(self, variables):
        """Loads the newest checkpoint that can be read, passing over damaged ones with a warning.

        Args:
            variables: dict of name to variable, each of which must be in the checkpoint.

        Returns:
            the step, or None where there is no checkpoint.
        """
        for step, prefix in reversed(self.checkpoints()):
            try:
                assign(variables, google.read(prefix), prefix)
                return step
            except BertError as error:
                print(f"warning: passed over a damaged checkpoint: {error}", flush=True)
        return None

    def write_final(self, model_variables, config, vocab_file):
        """Writes the folder that fine-tuning and serving start from: no optimizer slots, laid out as a release."""
        folder = self.join("final_model")
        if not self.writable:
            return folder
        files.make_folder(folder)
        _write_model_files(folder, config, vocab_file)
        prefix = os.path.join(folder, "bert_model.ckpt")
        with files.writing(prefix):
            google.write(prefix, _values(model_variables))
        return folder


def holds_weights(folder):
    """Whether a folder is that of a run that has saved or finished."""
    final = os.path.join(folder, "final_model", "bert_model.ckpt.index")
    return files.exists(final) or bool(google.training_checkpoints(folder))


def assign(variables, reader, prefix):
    """Assigns variables from a checkpoint by name; all are read before the first is changed.

    Raises:
        BertError: a variable is missing there, has another shape, or cannot be read.
    """
    missing = [name for name in variables if name not in reader.shapes]
    if missing:
        raise BertError(f"{prefix}: has no {missing[0]!r}" + (f" and {len(missing) - 1} more." if missing[1:] else "."))
    values = {name: reader.get(name) for name in variables}
    for name, value in values.items():
        if tuple(value.shape) != tuple(variables[name].shape):
            raise BertError(f"{prefix}: {name} is {list(value.shape)}, the model's is {list(variables[name].shape)}.")
    for name, value in values.items():
        variables[name].assign(value)


def take_all(variables, checkpoint):
    """Assigns weights and optimizer slots of another run's checkpoint; returns the step it was written at.

    Args:
        variables: dict of name to variable, each of which must be there.
        checkpoint: modeling.checkpoints.load.Checkpoint.

    Raises:
        BertError: see `assign`.
    """
    assign(variables, checkpoint.reader, checkpoint.path)
    return int(checkpoint.reader.get(_GLOBAL_STEP)) if _GLOBAL_STEP in checkpoint.reader.shapes else 0


def _write_model_files(folder, config, vocab_file):
    config.to_json_file(os.path.join(folder, "bert_config.json"))
    if vocab_file:
        files.write_text(os.path.join(folder, "vocab.txt"), files.read_text(vocab_file))


def _values(variables):
    return {name: tf.convert_to_tensor(variable) for name, variable in variables.items()}


def _remove(prefix):
    for file in files.glob(f"{prefix}.*"):
        files.remove(file)

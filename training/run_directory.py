"""The folder of one run: its settings, its checkpoints, and its final model (names in `foundation.run_files`)."""

import contextlib
import glob
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from foundation import files, run_files, state
from foundation.errors import BertError
from foundation.vocab_file import text as vocabulary_text
from modeling.checkpoints import google
from modeling.checkpoints.load import Checkpoint
from modeling.config import BertConfig
from training import metrics_log


class RunDirectory:
    """One run's folder.

    Args:
        path: the folder.
        keep: checkpoints to keep.
        writable: False on machines other than the first, which only read.
    """

    def __init__(self, path: str, keep: int = 5, writable: bool = True) -> None:
        self.path = path
        self.keep = keep
        self.writable = writable

    def make(self) -> None:
        """Makes the folder where it does not exist. Raises BertError where that is impossible."""
        if self.writable:
            files.make_folder(self.path)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Holds the folder for this process, and removes what killed ones left half-written.

        Raises:
            BertError: another process is at work there, or a file of the folder is a link to elsewhere.
        """
        if not self.writable:
            yield
            return
        with files.lock(self.path):
            if not files.is_remote(self.path):
                self._refuse_links()
                self._sweep()
            yield

    def _refuse_links(self) -> None:
        """A link would be written through: a folder from elsewhere could name any file of this machine."""
        for name in os.listdir(self.path):
            if os.path.islink(self.join(name)):
                raise BertError(f"{self.join(name)}: a symbolic link. Remove it, or choose another --output_dir.")

    def _sweep(self) -> None:
        for folder in (self.path, self.join(run_files.BEST_MODEL), self.join(run_files.FINAL_MODEL)):
            for leftover in files.glob(os.path.join(glob.escape(folder), f"*{files.TEMPORARY}*")):
                files.remove(leftover)
        if not self._finished()["keep_checkpoints"]:
            self._remove_state_of_training()

    def claim(self, settings: Mapping[str, Any]) -> None:
        """Writes down the settings that decide this run's result, or compares them with those of an earlier start.

        A run may be extended, as in the release: a larger number of steps than before is accepted. --init_checkpoint is
        not read again when a run resumes, so another spelling of its path is no difference.

        Args:
            settings: JSON-able dict.

        Raises:
            BertError: the folder belongs to a run with other settings; the first that differ are named.
        """
        path = self.join(run_files.RUN)
        before = state.read(path, {str: state.ANY}) if files.exists(path) else None
        if before is not None and _extends(before, settings):
            if self.finished_at() is not None and not self.checkpoints():
                raise BertError(f"{self.path}: this run is finished, and the checkpoints to train it further were "
                                f"removed (--keep_checkpoints=true keeps them). Start another run from its model, with "
                                f"--init_checkpoint.")
            before = {**before, **{name: settings[name] for name in _EXTENDED if name in settings}}
        if before is None or before == dict(settings):
            if self.writable:
                files.write_json(path, dict(settings))
            return
        differing = [key for key in sorted({*before, *settings}) if before.get(key) != settings.get(key)]
        differing = [key for key in differing if key != "init_checkpoint" or not self.checkpoints()]
        if differing:
            changes = "; ".join(f"{key} was {before.get(key)!r}, is {settings.get(key)!r}" for key in differing[:4])
            raise BertError(
                f"{self.path} belongs to a run with other settings: {changes}. "
                f"Choose another --output_dir, or remove this folder to start over."
            )

    def join(self, name: str) -> str:
        """Path of a file in the folder."""
        return os.path.join(self.path, name)

    def write_model_files(self, config: BertConfig, vocab_file: str | None) -> None:
        """Writes configuration and vocabulary into the folder, where this machine writes."""
        if self.writable:
            _write_model_files(self.path, config, vocab_file)

    def has_evaluation(self, step: int) -> bool:
        """Whether an evaluation of a step has been reported."""
        return any(line["kind"] == "eval" and line["step"] == step for line in metrics_log.read(self.path))

    def drop_reports_after(self, step: int) -> None:
        """Drops reports that an earlier start made after a step: a run that resumes there makes them again."""
        if self.writable:
            metrics_log.drop_after(self.path, step)

    def checkpoints(self) -> list[tuple[int, str]]:
        """Complete checkpoints, list of (step, prefix), oldest first."""
        return google.training_checkpoints(self.path)

    def save(self, step: int, variables: Mapping[str, Any]) -> str:
        """Writes a checkpoint, makes it the newest, and removes those beyond `keep`.

        Args:
            step: updates made so far.
            variables: dict of name to variable: weights and optimizer slots.

        Returns:
            the checkpoint's prefix.
        """
        prefix = self.join(f"{run_files.RUN_CHECKPOINT}-{step}")
        if not self.writable:
            return prefix
        with files.writing(prefix):
            google.write(prefix, {**_values(variables), run_files.GLOBAL_STEP: np.int64(step)})
        self.settle()
        return prefix

    def settle(self) -> None:
        """Makes the newest checkpoint known as such, and removes those beyond `keep`: after a save, and at a start,
        where a kill may have left it undone.
        """
        complete = [path for _, path in self.checkpoints()]
        if not self.writable or not complete:
            return
        kept = complete[-self.keep :]
        # The file that `tf.train.latest_checkpoint` reads.
        lines = [f'model_checkpoint_path: "{os.path.basename(kept[-1])}"']
        lines += [f'all_model_checkpoint_paths: "{os.path.basename(path)}"' for path in kept]
        files.write_text(self.join(run_files.NEWEST_CHECKPOINT), "\n".join(lines) + "\n")
        for old in complete[: -self.keep]:
            _remove(old)

    def restore(self, variables: Mapping[str, Any]) -> int | None:
        """Loads the newest checkpoint that can be read, skipping damaged ones with a warning.

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
                print(f"warning: skipped a damaged checkpoint: {error}", flush=True)
        return None

    def finished_at(self) -> int | None:
        """The step at which a finished run ended; None for one that is not finished."""
        step: int | None = self._finished()["step"]
        return step

    def _finished(self) -> dict[str, Any]:
        path = self.join(run_files.RUN_FINISHED)
        found = state.read(path, {"step": int}) if files.exists(path) else {"step": None}
        return {"keep_checkpoints": True, **found}

    def finish(self, step: int, keep_checkpoints: bool) -> None:
        """Notes that the run came to its end with its final model, and removes the state that only training needs.

        Args:
            step: the last of the schedule.
            keep_checkpoints: leave the checkpoints and the best model for more training.
        """
        if not self.writable:
            return
        # Noted first: a kill during the removal leaves a finished run, and the next start removes the rest.
        files.write_json(self.join(run_files.RUN_FINISHED), {"step": step, "keep_checkpoints": keep_checkpoints})
        if not keep_checkpoints:
            self._remove_state_of_training()

    def _remove_state_of_training(self) -> None:
        for _, prefix in self.checkpoints():
            _remove(prefix)
        for path in (self.join(run_files.NEWEST_CHECKPOINT), self.join(run_files.BEST_MODEL)):
            if files.is_folder(path):
                files.remove_folder(path)
            elif files.exists(path):
                files.remove(path)

    def write_final(self, model_variables: Mapping[str, Any], config: BertConfig, vocab_file: str | None) -> str:
        """Writes the folder that fine-tuning and serving start from: no optimizer slots, laid out like a release.

        Returns:
            the folder.
        """
        folder = self.join(run_files.FINAL_MODEL)
        if not self.writable:
            return folder
        files.make_folder(folder)
        _write_model_files(folder, config, vocab_file)
        prefix = os.path.join(folder, run_files.RELEASED_CHECKPOINT)
        with files.writing(prefix):
            google.write(prefix, _values(model_variables))
        return folder


# Settings that grow when a run is extended.
_EXTENDED = ("num_train_steps", "num_warmup_steps", "num_train_epochs")


def _extends(before: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    steps = before.get("num_train_steps")
    return isinstance(steps, int) and settings.get("num_train_steps", 0) > steps


def assign(variables: Mapping[str, Any], reader: Any, prefix: str) -> None:
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


def take_all(variables: Mapping[str, Any], checkpoint: Checkpoint) -> int:
    """Assigns weights and optimizer slots of another run's checkpoint; returns the step it was written at.

    Args:
        variables: dict of name to variable, each of which must be there.
        checkpoint: Checkpoint.

    Raises:
        BertError: see `assign`.
    """
    assign(variables, checkpoint.reader, checkpoint.path)
    reader = checkpoint.reader
    return int(reader.get(run_files.GLOBAL_STEP)) if run_files.GLOBAL_STEP in reader.shapes else 0


def _write_model_files(folder: str, config: BertConfig, vocab_file: str | None) -> None:
    config.to_json_file(os.path.join(folder, run_files.CONFIG))
    if vocab_file:
        files.write_text(os.path.join(folder, run_files.VOCABULARY), vocabulary_text(vocab_file))


def _values(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tf.convert_to_tensor(variable) for name, variable in variables.items()}


def _remove(prefix: str) -> None:
    for file in files.glob(f"{prefix}.*"):
        files.remove(file)

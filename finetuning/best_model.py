"""The evaluations of a run, the weights of the best one, and when to stop looking for better ones."""

import glob
import math
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from foundation import files, run_files, state
from foundation.errors import BertError
from modeling.checkpoints import google
from training.run_directory import RunDirectory

Evaluation = dict[str, float]  # metrics, and the `step` they are of


def read_evaluations(folder: str, last_step: float = math.inf) -> list[Evaluation]:
    """Evaluations that a run has made, in their order; those after `last_step` will be made again."""
    path = os.path.join(folder, run_files.EVALUATIONS)
    found = state.read(path, [{str: float}]) if files.exists(path) else []
    if not all(isinstance(each.get("step"), int) for each in found):
        raise BertError(f"{path}: an evaluation has no step. Remove the file to evaluate again.")
    return [each for each in found if each["step"] <= last_step]


def best_of(evaluations: list[Evaluation], metric: str) -> Evaluation | None:
    """The best evaluation, the first of equals; None of none."""
    return max((each for each in evaluations if metric in each), key=lambda each: each[metric], default=None)


class BestModel:
    """Keeps the weights of the best evaluation in a run's folder.

    A kill at any point leaves one model: new weights get a name of their own, evaluations.json then says which are the
    best, and only then the old ones are removed. The best up to the newest checkpoint stay too: a run that resumes
    there may find the later evaluations, which it makes again, a little different.

    Args:
        directory: RunDirectory.
        metric: name of the metric that decides; higher is better.
        patience: evaluations without improvement after which to stop; 0 for never.
        evaluations: those made before.
    """

    def __init__(self, directory: RunDirectory, metric: str, patience: int = 0,
                 evaluations: list[Evaluation] | None = None) -> None:
        self.directory, self.metric, self.patience = directory, metric, patience
        self.evaluations = list(evaluations or ())

    @property
    def best(self) -> Evaluation | None:
        """The best evaluation, the first of equals; None before any."""
        return best_of(self.evaluations, self.metric)

    def at(self, step: int) -> Evaluation | None:
        """Metrics of the evaluation at a step, or None."""
        found = [each for each in self.evaluations if each["step"] == step]
        return {name: value for name, value in found[0].items() if name != "step"} if found else None

    @property
    def prefix(self) -> str:
        """Checkpoint of the best weights."""
        assert self.best, "no evaluation yet"
        return self._prefix(int(self.best["step"]))

    def _prefix(self, step: int) -> str:
        return self.directory.join(os.path.join(run_files.BEST_MODEL, f"{run_files.RELEASED_CHECKPOINT}-{step}"))

    @property
    def given_up(self) -> bool:
        """Whether the last `patience` evaluations were no better than one before them."""
        if not self.patience or not self.best:
            return False
        return len(self.evaluations) - 1 - self.evaluations.index(self.best) >= self.patience

    def add(self, step: int, metrics: Mapping[str, float], variables: Mapping[str, Any]) -> bool:
        """Adds an evaluation, and keeps the weights where it is the best so far.

        Args:
            step: updates made.
            metrics: the deciding metric among them.
            variables: dict of name to variable.

        Returns:
            whether to stop training.
        """
        self.evaluations = [each for each in self.evaluations if each["step"] < step] + [{**metrics, "step": step}]
        if self.directory.writable:
            if self.best and self.best["step"] == step:
                google.write(self.prefix, {name: tf.convert_to_tensor(value) for name, value in variables.items()})
            files.write_json(self.directory.join(run_files.EVALUATIONS), self.evaluations)
            self.remove_others()
        return self.given_up

    def remove_others(self) -> None:
        """Removes weights that are not the best, those that a kill left included."""
        if not self.directory.writable:
            return
        newest = max((step for step, _ in self.directory.checkpoints()), default=0)
        at_newest = best_of([each for each in self.evaluations if each["step"] <= newest], self.metric)
        kept = tuple(f"{self._prefix(int(each['step']))}." for each in (self.best, at_newest) if each)
        for path in files.glob(os.path.join(glob.escape(os.path.dirname(self._prefix(0))), "*")):
            if not path.startswith(kept):
                files.remove(path)

    def table(self) -> str:
        """The evaluations as lines of text, the best marked."""
        if not self.evaluations:
            return ""
        names = [name for name in self.evaluations[-1] if name not in ("step", run_files.GLOBAL_STEP)]
        names.sort(key=lambda name: (name != self.metric, name))
        rows = [["step", *names]]
        rows += [[f"{each['step']:,}", *(f"{each.get(name, float('nan')):.4f}" for name in names)]
                 for each in self.evaluations]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]
        if self.best and len(self.evaluations) > 1:
            lines[1 + self.evaluations.index(self.best)] += "  best"
        return "\n".join(lines)

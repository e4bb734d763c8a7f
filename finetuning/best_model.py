"""The best weights of a run so far, by what its evaluations came to, and when to stop looking for better ones."""

import os

import tensorflow as tf

from foundation import files
from modeling.checkpoints import google

_FILE = "evaluations.json"
_PREFIX = "best_model/bert_model.ckpt"


class BestModel:
    """Keeps the weights of the best evaluation in a run's folder.

    Args:
        directory: training.run_directory.RunDirectory.
        metric: name of the figure that decides; higher is better.
        patience: evaluations without a better one after which to stop; 0 for never.
        first_step: step the run starts at; evaluations of a later step will be made again.
    """

    def __init__(self, directory, metric, patience=0, first_step=0):
        self.directory, self.metric, self.patience = directory, metric, patience
        path = directory.join(_FILE)
        before = files.read_json(path) if files.exists(path) else []
        # dicts of step and figures, in the order they were made
        self.evaluations = [each for each in before if each["step"] <= first_step]

    @property
    def best(self):
        """The best evaluation, the first of equals; None before any."""
        return max(self.evaluations, key=lambda each: each[self.metric], default=None)

    def at(self, step):
        """Figures of the evaluation at a step, or None."""
        found = [each for each in self.evaluations if each["step"] == step]
        return {name: value for name, value in found[0].items() if name != "step"} if found else None

    @property
    def prefix(self):
        """Checkpoint of the best weights."""
        return self.directory.join(_PREFIX)

    @property
    def given_up(self):
        """Whether the last `patience` evaluations were no better than one before them."""
        if not self.patience or not self.evaluations:
            return False
        return len(self.evaluations) - 1 - self.evaluations.index(self.best) >= self.patience

    def note(self, step, figures, variables):
        """Notes an evaluation, and keeps the weights where it is the best so far.

        Args:
            step: updates made.
            figures: dict with the metric.
            variables: dict of name to variable.

        Returns:
            whether to stop training.
        """
        self.evaluations = [each for each in self.evaluations if each["step"] < step] + [{**figures, "step": step}]
        if self.directory.writable:
            if self.best["step"] == step:
                files.make_folder(os.path.dirname(self.prefix))
                google.write(self.prefix, {name: tf.convert_to_tensor(value) for name, value in variables.items()})
            files.write_json(self.directory.join(_FILE), self.evaluations)
        return self.given_up

    def table(self):
        """The evaluations as lines of text, the best marked."""
        if not self.evaluations:
            return ""
        names = [name for name in self.evaluations[-1] if name not in ("step", "global_step")]
        names.sort(key=lambda name: (name != self.metric, name))
        rows = [["step", *names]]
        rows += [[f"{each['step']:,}", *(f"{each.get(name, float('nan')):.4f}" for name in names)]
                 for each in self.evaluations]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]
        if len(self.evaluations) > 1:
            lines[1 + self.evaluations.index(self.best)] += "  best"
        return "\n".join(lines)

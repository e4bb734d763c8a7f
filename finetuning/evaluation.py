"""A trained model, or an ensemble of several, on the splits of a data set: figures and prediction files."""

import numpy as np

from foundation.errors import BertError


class Evaluator:
    """What comes of a model's outputs.

    Outputs are kept until `forget`: SQuAD's predictions and figures are of the same file.

    Args:
        task: Task.
        splits: finetuning.splits.Splits.
        predictor: finetuning.prediction.Predictor.
        members: of an ensemble: a function each, which gives the model that member's weights. Empty: the weights that
            the model has.
    """

    def __init__(self, task, splits, predictor, members=()):
        self.task, self.splits, self.predictor, self.members = task, splits, predictor, members
        self._kept = {}  # of files to features and outputs

    def forget(self):
        """The model has other weights from now on."""
        self._kept.clear()

    def figures(self, batch_size):
        """Figures of every dev split: the first's by their names, the others' with the split's name behind.

        Args:
            batch_size: rows of a batch, over all devices.
        """
        figures = {}
        for number, split in enumerate(self.task.dev_splits):
            found = self.task.score(split, self.splits.examples(split), *self._outputs(split, batch_size))
            behind = f"_{split.removeprefix('dev_')}" if number else ""
            figures |= {f"{name}{behind}": float(value) for name, value in found.items()}
        return figures

    def write_predictions(self, batch_size, directory):
        """Writes the prediction files of every test split into a run's folder.

        Args:
            batch_size: as above.
            directory: training.run_directory.RunDirectory.

        Returns:
            tuple of their paths.
        """
        paths = []
        for split in self.task.test_splits:
            found = self._outputs(split, batch_size)
            if directory.writable:
                paths += self.task.write(split, self.splits.examples(split), *found, directory.path)
        return tuple(paths)

    def _outputs(self, split, batch_size):
        """Features of a split and the model's outputs for them, as `Task.score` takes them."""
        key = (*self.task.files(split), len(self.splits.examples(split)))
        if key not in self._kept:
            features = self.splits.features(split, training=False)
            if not len(features):
                raise BertError(f"{', '.join(self.task.files(split))}: no example there.")
            outputs = self._mean_outputs(features, batch_size, split)
            self._kept = {key: (features, {name: values if name in self.task.token_outputs else np.stack(values)
                                           for name, values in outputs.items()})}
        return self._kept[key]

    def _mean_outputs(self, features, batch_size, split):
        """Dict of lists, an array a row: the model's outputs, or the mean of the members'."""
        if not self.members:
            return self.predictor.outputs(features, batch_size, split)
        total = None
        for give_weights in self.members:
            give_weights()
            found = self.predictor.outputs(features, batch_size, split)
            total = found if total is None else {
                name: [a + b for a, b in zip(total[name], found[name])] for name in found}
        return {name: [value / len(self.members) for value in values] for name, values in total.items()}

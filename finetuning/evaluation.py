"""A trained model, or an ensemble of several, on the splits of a data set: metrics and prediction files."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from finetuning.prediction import RowPredictor, as_arrays
from finetuning.splits import Splits
from foundation.errors import BertError
from inputs.features import Features
from tasks.labels import LabelOrder
from tasks.task import Predicted, Task
from tokenization.tokenizer import Tokenizer
from training.run_directory import RunDirectory


class Evaluator:
    """Metrics and predictions from a model's outputs.

    The outputs of the last file are kept until `forget`: SQuAD's predictions and metrics are of the same file.

    Args:
        task: Task.
        splits: Splits.
        tokenizer: of the features.
        predictor: RowPredictor.
        members: of an ensemble: functions that each give the model one member's weights. Empty: the model's weights.
        is_chief: whether this machine reports.
        label_orders: LabelOrder of the model, or of each member; empty: all have the data's order.
    """

    def __init__(self, task: Task, splits: Splits, tokenizer: Tokenizer, predictor: RowPredictor,
                 members: Sequence[Callable[[], Any]] = (), is_chief: bool = True,
                 label_orders: Sequence[LabelOrder] = ()) -> None:
        self.task, self.splits, self.tokenizer, self.predictor = task, splits, tokenizer, predictor
        self.members, self.is_chief, self.label_orders = members, is_chief, label_orders
        self._kept: dict[Any, Predicted] = {}  # by files

    def forget(self) -> None:
        """Drops the outputs kept: the model has new weights."""
        self._kept.clear()

    def metrics(self, batch_size: int) -> dict[str, float]:
        """Metrics of every dev split: the first's by their names, those of further splits with the split's name.

        Args:
            batch_size: rows of a batch, over all devices.
        """
        metrics: dict[str, float] = {}
        for number, split in enumerate(self.task.dev_splits):
            found = self.task.score(split, self._predicted(split, batch_size))
            suffix = f"_{split.removeprefix('dev_')}" if number else ""
            metrics |= {f"{name}{suffix}": float(value) for name, value in found.items()}
        return metrics

    def write_predictions(self, batch_size: int, directory: RunDirectory, metrics: Mapping[str, float]
                          ) -> tuple[str, ...]:
        """Writes the prediction files of every test split into a run's folder.

        Args:
            batch_size: as above.
            directory: RunDirectory.
            metrics: of the evaluation of these weights, or empty.

        Returns:
            their paths.
        """
        paths: list[str] = []
        for split in self.task.test_splits:
            predicted = self._predicted(split, batch_size)
            if directory.writable:
                paths += self.task.write(split, predicted, directory.path, metrics)
        return tuple(paths)

    def _predicted(self, split: str, batch_size: int) -> Predicted:
        examples = self.splits.examples(split)
        key = (*self.task.files(split), len(examples))
        if key not in self._kept:
            features = self.splits.features(split, False, self.tokenizer, self.is_chief)
            if not len(features):
                raise BertError(f"{', '.join(self.task.files(split))}: holds no example.")
            outputs = self._mean_outputs(features, batch_size, split)
            self._kept = {key: Predicted(examples, features, as_arrays(self.task, outputs), self.tokenizer)}
        return self._kept[key]

    def _mean_outputs(self, features: Features, batch_size: int, split: str) -> dict[str, list[Any]]:
        """The model's outputs, or the mean of the members', in the data's order of labels."""
        if not self.members:
            return self._outputs(features, batch_size, split, 0)
        total: dict[str, list[Any]] = {}
        for number, give_weights in enumerate(self.members):
            give_weights()
            found = self._outputs(features, batch_size, split, number)
            total = {name: [a + b for a, b in zip(total[name], found[name])] for name in found} if total else found
        return {name: [value / len(self.members) for value in values] for name, values in total.items()}

    def _outputs(self, features: Features, batch_size: int, split: str, member: int) -> dict[str, list[Any]]:
        found = self.predictor.outputs(features, batch_size, split)
        return self.label_orders[member].arrange(found) if self.label_orders else found

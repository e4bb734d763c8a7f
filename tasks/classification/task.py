"""Classification and regression of texts and pairs of texts: GLUE's data sets, XNLI, and the user's own tables."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from foundation import files
from inputs.features import Features
from tasks import predictions
from tasks.classification import features, scores
from tasks.classification.files import ClassificationFiles, ClassificationSettings, Example
from tasks.labels import Labels
from tasks.task import FileTask, Network, Predicted

if TYPE_CHECKING:
    from tokenization.tokenizer import Tokenizer


class ClassificationTask(FileTask):
    """The task (`tasks.task.Task`) of a data set, or of the user's files under the name `custom`.

    Args:
        settings: the data.

    Raises:
        BertError: no such task, or flags that do not go together.
    """

    token_outputs: tuple[str, ...] = ()

    def __init__(self, settings: ClassificationSettings) -> None:
        self.settings = settings
        self.data = ClassificationFiles(settings)

    @property
    def name(self) -> str:
        """As in `tasks.classification.glue`."""
        return self.data.name

    @property
    def metric(self) -> str:
        """The first of the data set's metrics."""
        main = self.data.data_set.metrics[0]
        return "eval_accuracy" if main == "accuracy" else main

    @property
    def dev_splits(self) -> tuple[str, ...]:
        """MNLI has two."""
        return self.data.dev_splits

    @property
    def test_splits(self) -> tuple[str, ...]:
        """MNLI has two."""
        return self.data.test_splits

    @property
    def labels(self) -> Labels | None:
        """None for a regression."""
        if self.data.labels is None:
            return None
        data_set = self.data.data_set
        return Labels(self.data.labels, {**data_set.aliases, **data_set.spellings})

    def fingerprint(self) -> dict[str, Any]:
        """Length, labels, columns and format."""
        return {**self.describe({}), "file_format": self.settings.file_format}

    def features(self, examples: Sequence[Example], tokenizer: "Tokenizer", training: bool) -> Features:
        """A row for each example."""
        return features.make_features(examples, tokenizer, self.max_seq_length, self.data.is_regression)

    def network(self) -> Network:
        """A layer on the pooled output."""
        from tasks.classification.network import ClassificationNetwork

        return ClassificationNetwork(len(self.data.labels) if self.data.labels else None)

    def score(self, split: str, predicted: Predicted) -> dict[str, float]:
        """The release's metrics and the data set's official ones (`tasks.classification.scores`)."""
        truths = features.labels_of(predicted.examples, self.data.is_regression)
        logits, names = np.asarray(predicted.outputs["logits"]), self.data.data_set.metrics
        if self.data.is_regression:
            return scores.score_numbers(names, truths, logits[:, 0])
        return scores.score_labels(names, truths, logits)

    def write(self, split: str, predicted: Predicted, folder: str, metrics: Mapping[str, float]) -> list[str]:
        """Writes the release's `test_results.tsv` and a table of predictions: GLUE's submission file, or
        `predictions.tsv`. Both names carry the split's where it is not the first.
        """
        logits, data_set = np.asarray(predicted.outputs["logits"], np.float32), self.data.data_set
        is_first = split == self.test_splits[0]
        results = os.path.join(folder, "test_results.tsv" if is_first else f"{split}_results.tsv")
        table = os.path.join(folder, data_set.submissions.get(
            split, "predictions.tsv" if is_first else f"{split}_predictions.tsv"))
        if self.data.is_regression:
            files.write_text(results, predictions.results(logits))
            files.write_text(table, predictions.submission(None, logits[:, 0], data_set.score_range))
        else:
            files.write_text(results, predictions.results(predictions.probabilities(logits)))
            files.write_text(table, predictions.submission(self.data.labels, logits.argmax(axis=-1)))
        return [results, table]

    def describe(self, metrics: Mapping[str, float]) -> dict[str, Any]:
        """Labels, columns and length."""
        return {**{name: getattr(self.settings, name) for name in self.settings.described}, "task_name": self.name,
                "labels": list(self.data.labels) if self.data.labels else None, "regression": self.data.is_regression}

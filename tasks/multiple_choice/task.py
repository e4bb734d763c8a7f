"""Multiple choice: one of several continuations of a text (paper, section 4.4)."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from foundation import files
from inputs.features import Features
from tasks import predictions
from tasks.multiple_choice import features, scores
from tasks.multiple_choice.files import MultipleChoiceFiles, MultipleChoiceSettings, Question
from tasks.task import FileTask, Network, Predicted

if TYPE_CHECKING:
    from tokenization.tokenizer import Tokenizer


class MultipleChoiceTask(FileTask):
    """The task (`tasks.task.Task`) of a data set, or of the user's files under the name `custom`.

    Args:
        settings: the data.

    Raises:
        BertError: no such task, or flags that do not go together.
    """

    metric = "accuracy"
    dev_splits: tuple[str, ...] = ("dev",)
    test_splits: tuple[str, ...] = ("test",)
    token_outputs: tuple[str, ...] = ()
    labels: None = None  # outputs are scores of the choices, by position

    def __init__(self, settings: MultipleChoiceSettings) -> None:
        self.settings = settings
        self.data = MultipleChoiceFiles(settings)

    @property
    def name(self) -> str:
        """swag, codah or custom."""
        return self.data.name

    def fingerprint(self) -> dict[str, Any]:
        """Length, columns and labels."""
        return {"family": "multiple_choice", "max_seq_length": self.max_seq_length, **self.describe({})}

    def features(self, examples: Sequence[Question], tokenizer: "Tokenizer", training: bool) -> Features:
        """A row for each question."""
        num_choices = len(examples[0].choices if examples else self.data.choice_columns)
        return features.make_features(examples, tokenizer, self.max_seq_length, num_choices)

    def network(self) -> Network:
        """One score for each choice."""
        from tasks.multiple_choice.network import MultipleChoiceNetwork

        return MultipleChoiceNetwork()

    def score(self, split: str, predicted: Predicted) -> dict[str, float]:
        """Accuracy and loss."""
        return scores.score(predicted.features.values["label_ids"], predicted.outputs["logits"])

    def write(self, split: str, predicted: Predicted, folder: str, metrics: Mapping[str, float]) -> list[str]:
        """Writes `test_results.tsv`, the probability of each choice, laid out as the release's for a classifier, and
        `predictions.tsv`, the chosen labels.
        """
        logits = np.asarray(predicted.outputs["logits"], np.float32)
        results, table = os.path.join(folder, "test_results.tsv"), os.path.join(folder, "predictions.tsv")
        files.write_text(results, predictions.results(predictions.probabilities(logits)))
        files.write_text(table, predictions.submission(self.data.labels, logits.argmax(axis=-1)))
        return [results, table]

    def describe(self, metrics: Mapping[str, float]) -> dict[str, Any]:
        """Columns, labels and format."""
        values = {name: getattr(self.data.settings, name) for name in self.settings.described}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

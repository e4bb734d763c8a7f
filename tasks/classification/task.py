"""Classification and regression of sentences and pairs: GLUE's data sets, XNLI, and the user's own tables."""

import os

import keras
import numpy as np
from keras import ops
from scipy import special

from foundation import files
from foundation.parallel import default_num_workers
from inputs import text_pairs
from inputs.features import Features
from modeling.models import ClassificationModel
from tasks import metrics
from tasks.classification import glue
from tasks.classification.files import ClassificationFiles, ClassificationSettings


class ClassificationTask:
    """The task (`tasks.task.Task`) of a data set, or of the user's files under the name `custom`.

    Args:
        settings: ClassificationSettings.

    Raises:
        BertError: no such task, or flags that do not go together.
    """

    token_outputs = ()

    def __init__(self, settings: ClassificationSettings):
        self.settings = settings
        self.max_seq_length = settings.max_seq_length
        self._files = ClassificationFiles(settings)
        self.name, self.data_set = self._files.name, self._files.data_set
        main = self.data_set.metrics[0]
        self.metric = "eval_accuracy" if main == "accuracy" else main

    @property
    def is_regression(self):
        return self._files.is_regression

    @property
    def labels(self):
        return self._files.labels

    @property
    def dev_splits(self):
        return self._files.dev_splits

    @property
    def test_splits(self):
        return self._files.test_splits

    def files(self, split):
        return [self._files.path(split)]

    def read(self, split):
        return self._files.read(split)

    def fingerprint(self):
        return {**self.describe(), "file_format": self.settings.file_format}

    def features(self, examples, tokenizer, training):
        first = [example.text_a for example in examples]
        second = [example.text_b for example in examples]
        tokens, row_splits = text_pairs.pair_features_of_many(
            tokenizer, first, None if None in second else second, self.settings.max_seq_length, default_num_workers())
        values = {}
        if examples and examples[0].label is not None:
            values["label_ids"] = self._truths(examples)
        return Features(tokens, row_splits, values)

    def model(self, config, dtype, skip_padding):
        num_labels = 1 if self.is_regression else len(self.labels)
        return ClassificationModel(config, num_labels, skip_padding=skip_padding, dtype=dtype)

    def weights(self, batch):
        return ops.cast(ops.reshape(batch["is_real_example"], (-1,)), "float32")

    def losses(self, outputs, batch):
        """Cross entropy, as the release's; for a regression the squared error."""
        truths = ops.reshape(batch["label_ids"], (-1,))
        if self.is_regression:
            return ops.square(outputs["logits"][:, 0] - ops.cast(truths, "float32"))
        return keras.losses.sparse_categorical_crossentropy(truths, outputs["logits"], from_logits=True)

    def terms_per_row(self, features):
        """A row is a term."""
        return 1.0

    def score(self, split, examples, features, outputs):
        """The release's `eval_accuracy`, `eval_loss` and `loss`, and the data set's official figures.

        The release's `loss` is a mean of batch means, which for a last batch that is not full is not quite
        `eval_loss`; here both are the mean over examples.
        """
        logits, truths = np.asarray(outputs["logits"], np.float64), self._truths(examples)
        if self.is_regression:
            predictions = logits[:, 0]
            loss = np.mean(np.square(predictions - truths))
            figures = {}
        else:
            predictions = logits.argmax(axis=-1)
            loss = -special.log_softmax(logits, axis=-1)[np.arange(len(truths)), truths].mean()
            figures = {"eval_accuracy": metrics.accuracy(truths, predictions)}
        names = [name for name in self.data_set.metrics if name != "accuracy"]
        figures.update({name: metrics.BY_NAME[name](truths, predictions) for name in names})
        return {**figures, "eval_loss": float(loss), "loss": float(loss)}

    def write(self, split, examples, features, outputs, folder):
        """`test_results.tsv` as the release writes it, a row's probabilities in the order of the labels (a score, for
        a regression), and a table of predictions: GLUE's submission file, or `predictions.tsv`.

        A second test split has its name in both.
        """
        logits = np.asarray(outputs["logits"], np.float32)
        numbers = logits if self.is_regression else special.softmax(logits, axis=-1)
        predictions = logits[:, 0] if self.is_regression else logits.argmax(axis=-1)
        is_first = split == self.test_splits[0]
        results = os.path.join(folder, "test_results.tsv" if is_first else f"{split}_results.tsv")
        files.write_text(results, "".join("\t".join(map(str, row)) + "\n" for row in numbers))
        table = self.data_set.submissions.get(split, "predictions.tsv" if is_first else f"{split}_predictions.tsv")
        table = os.path.join(folder, table)
        files.write_text(table, glue.submission(self.labels, predictions, self.data_set.score_range))
        return [results, table]

    def describe(self):
        """Values of flags, so that a later command need not repeat them."""
        names = ("text_a_column", "text_b_column", "label_column", "header", "quoting", "language", "max_seq_length")
        return {"task_name": self.name, "labels": list(self.labels) if self.labels else None,
                "regression": self.is_regression, **{name: getattr(self.settings, name) for name in names}}

    def _truths(self, examples):
        kind = np.float32 if self.is_regression else np.int32
        return np.fromiter((example.label for example in examples), kind, len(examples))

"""One of several continuations: a score for each, softmax over them (paper, section 4.4)."""

import dataclasses
import os

import numpy as np
import tensorflow as tf
from scipy import special

from foundation import files
from foundation.errors import BertError
from foundation.parallel import default_num_workers
from inputs import tables, text_pairs
from inputs.features import Features
from modeling.models import MultipleChoiceModel
from tasks import metrics
from tasks.classification import glue

CUSTOM = "custom"


@dataclasses.dataclass(frozen=True)
class MultipleChoiceSettings:
    """What `run_multiple_choice.py` is told of its data; None is as the data set (`DATA_SETS`) has it.

    Attributes:
        task_name: a key of DATA_SETS, or "custom".
        data_dir: folder of the data set's files.
        train_file, dev_file, test_file: paths, in place of those in data_dir.
        prompt_columns: columns whose texts, joined by spaces, are the first sentence. A column is named by the
            header's name, its number from 1, or its key in JSON.
        choice_columns: columns of the choices, each a second sentence.
        choice_prefix_column: column of what stands before each choice; it may be empty.
        label_column: column of the right one.
        labels: what the label column says for each choice, in order; None: 0, 1 and so on.
        header, file_format, quoting: see tables.Layout.
        max_seq_length: most tokens of a prompt and one choice.
    """

    task_name: str | None = None
    data_dir: str | None = None
    train_file: str | None = None
    dev_file: str | None = None
    test_file: str | None = None
    prompt_columns: tuple | list | None = None
    choice_columns: tuple | list | None = None
    choice_prefix_column: str | None = None
    label_column: str | None = None
    labels: tuple | list | None = None
    header: bool | None = None
    file_format: str = "auto"
    quoting: bool | None = None
    max_seq_length: int = 128

    @property
    def label_names(self):
        """What the label column may say, list of str in the order of the choices."""
        return [str(name) for name in self.labels or range(len(self.choice_columns))]


# Where these say nothing, columns are the user's; files of each split are in --data_dir.
DATA_SETS = {
    # Zellers et al. 2018: a caption, the beginning of the next one, and four ways to go on.
    "swag": {"prompt_columns": ("sent1",), "choice_prefix_column": "sent2", "label_column": "label",
             "choice_columns": ("ending0", "ending1", "ending2", "ending3"), "header": True},
    # Chen et al. 2019: category, prompt, four choices, the right one.
    "codah": {"prompt_columns": ("2",), "choice_columns": ("3", "4", "5", "6"), "label_column": "7", "header": False},
    CUSTOM: {"header": True},
}
FILE_NAMES = {
    "swag": {"train": "train.csv", "dev": "val.csv", "test": "test.csv"},
    "codah": {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"},
}


@dataclasses.dataclass(frozen=True)
class Question:
    """A prompt, the continuations to choose from, and the right one's number or None."""

    prompt: str
    choices: tuple
    label: int | None


class MultipleChoiceTask:
    """The task (`tasks.task.Task`) of a data set, or of the user's files under the name `custom`.

    Args:
        settings: MultipleChoiceSettings.

    Raises:
        BertError: no such task, or flags that do not go together.
    """

    metric = "accuracy"
    dev_splits = ("dev",)
    test_splits = ("test",)
    token_outputs = ()

    def __init__(self, settings):
        self.settings = _completed(settings)
        self.name = self.settings.task_name
        self.max_seq_length = self.settings.max_seq_length

    def files(self, split):
        """The file of a split."""
        path = getattr(self.settings, f"{split}_file")
        if not path:
            name = FILE_NAMES.get(self.name, {}).get(split)
            if not name:
                raise BertError(f"The {split} set is asked for and not named. Pass --{split}_file.")
            if not self.settings.data_dir:
                raise BertError(f"{self.name}: where is {name}? Pass --data_dir or --{split}_file.")
            path = os.path.join(self.settings.data_dir, name)
        if not files.exists(path):
            raise BertError(f"{path}: no such file (--{split}_file, --data_dir).")
        return [path]

    def read(self, split):
        """Questions of a split, list of Question; a test split's labels are not looked at."""
        return read(*self.files(split), self.settings, labelled=split not in self.test_splits)

    def fingerprint(self):
        """What features depend on beside the files."""
        return {"family": "multiple_choice", "max_seq_length": self.max_seq_length, **self.describe()}

    def features(self, examples, tokenizer, training):
        """A row a question, `[CLS] prompt [SEP] choice [SEP]` for each choice; too long ones lose their ends."""
        prompts = [question.prompt for question in examples for _ in question.choices]
        choices = [choice for question in examples for choice in question.choices]
        tokens, row_splits = text_pairs.pair_features_of_many(
            tokenizer, prompts, choices, self.max_seq_length, default_num_workers())
        labels = [question.label for question in examples]
        values = {} if None in labels else {"label_ids": np.array(labels, np.int32)}
        return Features(tokens, row_splits, values, len(self.settings.choice_columns))

    def model(self, config, dtype, skip_padding):
        """One score for each choice."""
        return MultipleChoiceModel(config, skip_padding=skip_padding, dtype=dtype)

    def weights(self, batch):
        """1 for each real question: float32 [rows]."""
        return tf.reshape(tf.cast(batch["is_real_example"], tf.float32), [-1])

    def losses(self, outputs, batch):
        """Cross entropy over the choices of each question: float32 [rows]."""
        labels = tf.reshape(tf.cast(batch["label_ids"], tf.int32), [-1])
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs["logits"])

    def terms_per_row(self, features):
        """A row is a term."""
        return 1.0

    def score(self, split, examples, features, outputs):
        """The share of questions whose right choice has the highest score, and the loss, the mean over questions."""
        logits, labels = np.asarray(outputs["logits"], np.float64), features.values["label_ids"]
        loss = -special.log_softmax(logits, axis=-1)[np.arange(len(labels)), labels].mean()
        return {"accuracy": metrics.accuracy(labels, logits.argmax(axis=-1)), "loss": float(loss)}

    def write(self, split, examples, features, outputs, folder):
        """Writes `test_results.tsv`, a line a question with the probability of each choice, as the release writes a
        classifier's, and `predictions.tsv`: a header, then the question's number from 0 and the chosen label.
        """
        logits = np.asarray(outputs["logits"], np.float32)
        results = os.path.join(folder, "test_results.tsv")
        rows = special.softmax(logits, axis=-1)
        files.write_text(results, "".join("\t".join(map(str, row)) + "\n" for row in rows))
        table = os.path.join(folder, "predictions.tsv")
        files.write_text(table, glue.submission(self.settings.label_names, logits.argmax(axis=-1)))
        return [results, table]

    def describe(self):
        """Values of flags, so that a later command need not repeat them."""
        names = ("task_name", "prompt_columns", "choice_columns", "choice_prefix_column", "label_column", "labels",
                 "header", "file_format", "quoting")
        values = {name: getattr(self.settings, name) for name in names}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def read(path, settings, labelled):
    """Reads a table of questions.

    Args:
        path: str, local or remote.
        settings: MultipleChoiceSettings, complete.
        labelled: whether to read labels.

    Returns:
        list of Question.

    Raises:
        BertError: naming file, line and column: what tables.read finds, a missing column, an empty prompt or choice,
            or what is not the label of a choice.
    """
    table = tables.read(path, tables.Layout(settings.file_format, settings.header, settings.quoting))
    prompts = [" ".join(texts) for texts in zip(*map(table.texts, settings.prompt_columns))]
    choices = [table.texts(column) for column in settings.choice_columns]
    if settings.choice_prefix_column:
        prefixes = table.cells(settings.choice_prefix_column)
        choices = [[f"{prefix} {text}" for prefix, text in zip(prefixes, texts)] for texts in choices]
    labels = _labels(table, settings) if labelled else [None] * len(table)
    return [Question(*row) for row in zip(prompts, zip(*choices), labels)]


def _labels(table, settings):
    if not settings.label_column:
        raise BertError(f"{table.path}: which column has the label? Pass --label_column: {table.columns()}.")
    numbers = {name: index for index, name in enumerate(settings.label_names)}
    labels = []
    for row, cell in enumerate(table.cells(settings.label_column)):
        label = numbers.get(cell.strip())
        if label is None:
            raise BertError(f"{table.place(row, settings.label_column)}: {cell!r} is the label of no choice. "
                            f"Known: {', '.join(numbers)}.")
        labels.append(label)
    return labels


def _completed(settings):
    """Settings with the data set's values where they have none. Raises BertError where that is not enough."""
    name = (settings.task_name or "").lower()
    if name not in DATA_SETS:
        given = f"{settings.task_name!r} is no task" if name else "No task is named"
        raise BertError(f"{given}. Pass --task_name: {', '.join(DATA_SETS)}, the last for files of your own.")
    known = {key: value for key, value in DATA_SETS[name].items() if getattr(settings, key) is None}
    settings = dataclasses.replace(settings, **{**known, "task_name": name})
    if not settings.prompt_columns:
        raise BertError("Which column has the prompt? Pass --prompt_columns, one or more.")
    if len(settings.choice_columns or ()) < 2:
        raise BertError("Which columns have the choices? Pass at least two by --choice_columns.")
    if settings.labels and len(set(settings.labels)) != len(settings.choice_columns):
        raise BertError(f"--labels: one for each of the {len(settings.choice_columns)} choices is wanted, all "
                        f"different, not {', '.join(map(repr, settings.labels))}.")
    return settings

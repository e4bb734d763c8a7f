"""The data sets of GLUE (gluebenchmark.com) and XNLI, each as a few values: files, columns, labels, figures."""

import dataclasses
from typing import NamedTuple

import numpy as np


class Columns(NamedTuple):
    """Where a file has what; a column is its name in the header, or its number from 1."""

    text_a: str | int | None = None
    text_b: str | int | None = None
    label: str | int | None = None
    language: str | int | None = None  # only rows of one language are read
    header: bool = True


@dataclasses.dataclass(frozen=True)
class DataSet:
    """What differs from one data set to the next.

    Attributes:
        folder: its folder's name under GLUE's root.
        columns: Columns of its files, where the next two do not say otherwise.
        train_columns, test_columns: Columns of these, None for `columns`.
        labels: in the order of their ids; None for a score (regression).
        metrics: names in `tasks.metrics`; the first chooses the best checkpoint.
        train, dev, test: file by split; `{language}` stands for the language.
        submissions: file by test split, as gluebenchmark.com wants it named.
        spellings: other spellings of labels.
        skip_broken: some lines of the official files lack columns.
        other_folder: another name of the folder.
        score_range: lowest and highest score there is.
    """

    folder: str
    columns: Columns
    labels: tuple | None
    metrics: tuple
    submissions: dict = dataclasses.field(default_factory=dict)
    train_columns: Columns | None = None
    test_columns: Columns | None = None
    train: dict = dataclasses.field(default_factory=lambda: {"train": "train.tsv"})
    dev: dict = dataclasses.field(default_factory=lambda: {"dev": "dev.tsv"})
    test: dict = dataclasses.field(default_factory=lambda: {"test": "test.tsv"})
    spellings: dict = dataclasses.field(default_factory=dict)
    skip_broken: bool = False
    other_folder: str | None = None
    score_range: tuple | None = None


_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_THREE_WAY = ("contradiction", "entailment", "neutral")
_SENTENCES = Columns("sentence1", "sentence2", "label")

# Label orders of CoLA, MNLI, MRPC and XNLI are the release's. What chooses a checkpoint is the figure of the paper's
# table 1: F1 for MRPC and QQP, Spearman for STS-B.
GLUE = {
    "cola": DataSet("CoLA", Columns(4, label=2, header=False), _BINARY, ("matthews",), {"test": "CoLA.tsv"},
                    test_columns=Columns("sentence")),
    "sst-2": DataSet("SST-2", Columns("sentence", label="label"), _BINARY, ("accuracy",), {"test": "SST-2.tsv"}),
    "mrpc": DataSet("MRPC", Columns("#1 String", "#2 String", "Quality"), _BINARY, ("f1", "accuracy"),
                    {"test": "MRPC.tsv"}),
    "qqp": DataSet("QQP", Columns("question1", "question2", "is_duplicate"), _BINARY, ("f1", "accuracy"),
                   {"test": "QQP.tsv"}, skip_broken=True),
    "sts-b": DataSet("STS-B", Columns("sentence1", "sentence2", "score"), None, ("spearman", "pearson"),
                     {"test": "STS-B.tsv"}, score_range=(0, 5)),
    "mnli": DataSet("MNLI", Columns("sentence1", "sentence2", "gold_label"), _THREE_WAY, ("accuracy",),
                    {"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv"},
                    dev={"dev_matched": "dev_matched.tsv", "dev_mismatched": "dev_mismatched.tsv"},
                    test={"test_matched": "test_matched.tsv", "test_mismatched": "test_mismatched.tsv"}),
    "qnli": DataSet("QNLI", Columns("question", "sentence", "label"), _ENTAILMENT, ("accuracy",),
                    {"test": "QNLI.tsv"}),
    "rte": DataSet("RTE", _SENTENCES, _ENTAILMENT, ("accuracy",), {"test": "RTE.tsv"}),
    "wnli": DataSet("WNLI", _SENTENCES, _BINARY, ("accuracy",), {"test": "WNLI.tsv"}),
    "ax": DataSet("AX", _SENTENCES, _THREE_WAY, ("accuracy",), {"test": "AX.tsv"}, train={}, dev={},
                  test={"test": "diagnostic.tsv"}, other_folder="diagnostic"),
    "xnli": DataSet("XNLI", Columns(7, 8, 2, language=1), _THREE_WAY, ("accuracy",),
                    train_columns=Columns(1, 2, 3), test_columns=Columns(7, 8, language=1),
                    train={"train": "multinli/multinli.train.{language}.tsv"}, dev={"dev": "xnli.dev.tsv"},
                    test={"test": "xnli.test.tsv"}, spellings={"contradictory": "contradiction"}),
}


def submission(labels, predictions, score_range=None):
    """A table of predictions as gluebenchmark.com takes it: a row's number from 0, and its label or score.

    Args:
        labels: label names by id; None for scores.
        predictions: label ids int [rows], or scores float [rows].
        score_range: (lowest, highest) that scores are brought into, or None.

    Returns:
        str, the file's content.
    """
    if labels is not None:
        said = [labels[prediction] for prediction in predictions]
    else:
        lowest, highest = score_range or (None, None)
        said = [f"{score:.3f}" for score in np.clip(predictions, lowest, highest)]
    return "".join(["index\tprediction\n", *(f"{index}\t{each}\n" for index, each in enumerate(said))])

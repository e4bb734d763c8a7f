"""The data sets of GLUE (gluebenchmark.com) and XNLI, each as a few values: files, columns, labels, metrics."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from inputs.tables import Column


class Columns(NamedTuple):
    """The columns of a file, by name in the header or by number from 1."""

    text_a: Column | None = None
    text_b: Column | None = None
    label: Column | None = None
    language: Column | None = None  # only rows of one language are read
    header: bool = True


@dataclasses.dataclass(frozen=True)
class DataSet:
    """What differs from one data set to the next.

    Attributes:
        folder: its folder's name under GLUE's root.
        columns: of its files.
        train_columns, test_columns: of these two, where they differ.
        labels: in the order of their ids; None for a score (regression).
        metrics: names in `tasks.metrics`; the first selects the best checkpoint.
        train, dev, test: file by split, with `{language}` for the language.
        submissions: file by test split, named as gluebenchmark.com requires.
        spellings: other spellings of labels in its files.
        aliases: what models made elsewhere call the labels: the names of Hugging Face's `glue` data sets.
        skip_broken: some lines of the official files lack columns.
        other_folder: another name of the folder.
        score_range: lowest and highest score.
    """

    folder: str
    columns: Columns
    labels: tuple[str, ...] | None
    metrics: tuple[str, ...]
    submissions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    train_columns: Columns | None = None
    test_columns: Columns | None = None
    train: Mapping[str, str] = dataclasses.field(default_factory=lambda: {"train": "train.tsv"})
    dev: Mapping[str, str] = dataclasses.field(default_factory=lambda: {"dev": "dev.tsv"})
    test: Mapping[str, str] = dataclasses.field(default_factory=lambda: {"test": "test.tsv"})
    spellings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    skip_broken: bool = False
    other_folder: str | None = None
    score_range: tuple[float, float] | None = None


_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_THREE_WAY = ("contradiction", "entailment", "neutral")
_SENTENCES = Columns("sentence1", "sentence2", "label")

# Label orders of CoLA, MNLI, MRPC and XNLI are the release's. The metric that selects a checkpoint is that of the
# paper's table 1: F1 for MRPC and QQP, Spearman for STS-B.
GLUE = {
    "cola": DataSet("CoLA", Columns(4, label=2, header=False), _BINARY, ("matthews",), {"test": "CoLA.tsv"},
                    test_columns=Columns("sentence"), aliases={"unacceptable": "0", "acceptable": "1"}),
    "sst-2": DataSet("SST-2", Columns("sentence", label="label"), _BINARY, ("accuracy",), {"test": "SST-2.tsv"},
                     aliases={"negative": "0", "positive": "1"}),
    "mrpc": DataSet("MRPC", Columns("#1 String", "#2 String", "Quality"), _BINARY, ("f1", "accuracy"),
                    {"test": "MRPC.tsv"}, aliases={"not_equivalent": "0", "equivalent": "1"}),
    "qqp": DataSet("QQP", Columns("question1", "question2", "is_duplicate"), _BINARY, ("f1", "accuracy"),
                   {"test": "QQP.tsv"}, skip_broken=True, aliases={"not_duplicate": "0", "duplicate": "1"}),
    "sts-b": DataSet("STS-B", Columns("sentence1", "sentence2", "score"), None, ("spearman", "pearson"),
                     {"test": "STS-B.tsv"}, score_range=(0, 5)),
    "mnli": DataSet("MNLI", Columns("sentence1", "sentence2", "gold_label"), _THREE_WAY, ("accuracy",),
                    {"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv"},
                    dev={"dev_matched": "dev_matched.tsv", "dev_mismatched": "dev_mismatched.tsv"},
                    test={"test_matched": "test_matched.tsv", "test_mismatched": "test_mismatched.tsv"}),
    "qnli": DataSet("QNLI", Columns("question", "sentence", "label"), _ENTAILMENT, ("accuracy",),
                    {"test": "QNLI.tsv"}),
    "rte": DataSet("RTE", _SENTENCES, _ENTAILMENT, ("accuracy",), {"test": "RTE.tsv"}),
    "wnli": DataSet("WNLI", _SENTENCES, _BINARY, ("accuracy",), {"test": "WNLI.tsv"},
                    aliases={"not_entailment": "0", "entailment": "1"}),
    "ax": DataSet("AX", _SENTENCES, _THREE_WAY, ("accuracy",), {"test": "AX.tsv"}, train={}, dev={},
                  test={"test": "diagnostic.tsv"}, other_folder="diagnostic"),
    "xnli": DataSet("XNLI", Columns(7, 8, 2, language=1), _THREE_WAY, ("accuracy",),
                    train_columns=Columns(1, 2, 3), test_columns=Columns(7, 8, language=1),
                    train={"train": "multinli/multinli.train.{language}.tsv"}, dev={"dev": "xnli.dev.tsv"},
                    test={"test": "xnli.test.tsv"}, spellings={"contradictory": "contradiction"}),
}

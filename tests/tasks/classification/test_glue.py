"""The table of data sets: complete, with labels and file names as released."""

import pytest

from tasks import metrics
from tasks.classification.glue import GLUE


@pytest.mark.parametrize("name", GLUE)
def test_an_entry_names_known_metrics_and_its_own_splits(name):
    data_set = GLUE[name]
    assert set(data_set.metrics) <= set(metrics.BY_NAME)
    assert set(data_set.submissions) <= set(data_set.test)
    assert (data_set.labels is None) == (name == "sts-b")
    assert set(data_set.spellings.values()) <= set(data_set.labels or ())


def test_submission_files_have_glue_s_names():
    assert sorted(file for data_set in GLUE.values() for file in data_set.submissions.values()) == [
        "AX.tsv", "CoLA.tsv", "MNLI-m.tsv", "MNLI-mm.tsv", "MRPC.tsv", "QNLI.tsv", "QQP.tsv", "RTE.tsv", "SST-2.tsv",
        "STS-B.tsv", "WNLI.tsv"]


def test_label_orders_are_the_release_s():
    assert GLUE["mnli"].labels == GLUE["xnli"].labels == GLUE["ax"].labels == ("contradiction", "entailment", "neutral")
    assert GLUE["cola"].labels == GLUE["mrpc"].labels == ("0", "1")

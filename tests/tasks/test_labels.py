"""A model's labels are found among those of a data set by name, and refused where they are others."""

import numpy as np
import pytest

from foundation.errors import BertError
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tasks.labels import LabelOrder, Labels, are_named, order

MNLI = Labels(("contradiction", "entailment", "neutral"), {"contradictory": "contradiction"})


@pytest.mark.parametrize(("of_model", "columns"), [
    (["contradiction", "entailment", "neutral"], None),
    (["entailment", "neutral", "contradiction"], (2, 0, 1)),
    (["ENTAILMENT", "Neutral", " contradictory "], (2, 0, 1)),
])
def test_labels_are_matched_by_name_whatever_their_order_and_case(of_model, columns):
    assert order(MNLI, of_model, "m") == LabelOrder(columns)


def test_outputs_are_put_into_the_data_s_order():
    found = order(MNLI, ["entailment", "neutral", "contradiction"], "m").arrange({"logits": [
        np.array([1.0, 2.0, 3.0]), np.array([[4.0, 5.0, 6.0]])]})
    np.testing.assert_array_equal(found["logits"][0], [3.0, 1.0, 2.0])
    np.testing.assert_array_equal(found["logits"][1], [[6.0, 4.0, 5.0]])


@pytest.mark.parametrize("of_model", [None, ["LABEL_0", "LABEL_1", "LABEL_2"]])
def test_labels_without_names_are_taken_in_the_data_s_order_with_a_line_that_says_so(of_model):
    assert order(MNLI, of_model, "m") == LabelOrder(None, (
        "m: the model's labels have no names; its outputs are taken to be contradiction, entailment, neutral, in this "
        "order."))
    assert not are_named(of_model) and are_named(["LABEL_0", "yes"])


@pytest.mark.parametrize(("of_model", "labels"), [
    (["entailment", "not_entailment"], MNLI),
    (["entailment", "entailment", "neutral"], MNLI),
    (["entailment", "neutral", "other"], MNLI),
    (["LABEL_0", "LABEL_1"], MNLI),
    (["yes", "no"], Labels(("no", "yes", "YES"))),
])
def test_other_labels_are_refused_with_both_lists_in_one_line(of_model, labels):
    with pytest.raises(BertError) as error:
        order(labels, of_model, "m")
    assert str(error.value).startswith(
        f"m: the model's labels are {', '.join(of_model)}; those of the data are {', '.join(labels.names)}. ")
    assert "\n" not in str(error.value)


def test_case_is_kept_apart_where_it_is_ambiguous():
    labels = Labels(("no", "yes", "YES"))
    assert order(labels, ["YES", "yes", "NO"], "m").columns == (2, 1, 0)
    with pytest.raises(BertError, match="do not match by name"):
        order(labels, ["Yes", "YES", "no"], "m")


@pytest.mark.parametrize(("task", "of_model"), [
    ("sst-2", ["POSITIVE", "NEGATIVE"]), ("cola", ["acceptable", "unacceptable"]),
    ("mrpc", ["equivalent", "not_equivalent"]), ("qqp", ["duplicate", "not_duplicate"]),
    ("wnli", ["entailment", "not_entailment"]), ("rte", ["not_entailment", "entailment"]),
])
def test_names_that_hugging_face_gives_glue_s_labels_are_known(task, of_model):
    labels = ClassificationTask(ClassificationSettings(task_name=task)).labels
    assert order(labels, of_model, "m").columns == (1, 0)


def test_regression_has_no_labels():
    assert ClassificationTask(ClassificationSettings(task_name="sts-b")).labels is None

"""Folders without a task.json, as `transformers` writes them: the head decides what is predicted."""

import json
import shutil

import numpy as np
import pytest

import bert
from foundation.errors import BertError
from modeling.checkpoints import convert
from tests.bert.conftest import CONTEXTS, PAIRS, QUESTIONS, SENTENCES, TEXTS


@pytest.fixture(scope="module")
def bare(models, tmp_path_factory):
    """Function from a run's name to its model as a Hugging Face folder."""
    root = tmp_path_factory.mktemp("bare")

    def folder(name):
        if not (root / name).exists():
            convert.convert(str(models.folder / name / "final_model"), str(root / name), "huggingface")
        return root / name

    return folder


@pytest.fixture
def changed(bare, tmp_path):
    """Function from a run's name and values to a folder with these in its config.json; None takes one out."""

    def folder(name, **values):
        shutil.copytree(bare(name), tmp_path / name)
        path = tmp_path / name / "config.json"
        config = {**json.loads(path.read_text()), **values}
        path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
        return str(tmp_path / name)

    return folder


def load(folder):
    return bert.load_finished(str(folder), precision="float32")


def error(folder):
    with pytest.raises(BertError) as raised:
        load(folder)
    return str(raised.value)


def test_classifier(models, bare):
    found, expected = load(bare("mrpc")), load(models.folder / "mrpc")
    assert type(found) is bert.Classifier and found.labels == ("0", "1")
    for mine, right in zip(found.predict(PAIRS), expected.predict(PAIRS)):
        assert mine.label == right.label and mine.probabilities == pytest.approx(right.probabilities, abs=1e-5)


def test_regression(models, bare):
    found = load(bare("sts-b"))
    assert type(found) is bert.Regression
    np.testing.assert_allclose(found.predict(TEXTS), load(models.folder / "sts-b").predict(TEXTS), atol=1e-5)


def test_multiple_choice_of_any_number(models, bare):
    found, expected = load(bare("swag")), load(models.folder / "swag").predict(QUESTIONS)
    assert [choice.number for choice in found.predict(QUESTIONS)] == [choice.number for choice in expected]
    three = [(prompt, choices[:3]) for prompt, choices in QUESTIONS]
    assert [len(choice.probabilities) for choice in found.predict(three)] == [3, 3]
    for questions, message in (([QUESTIONS[0], three[1]], "Question 1 has 3 choices, question 0 has 4."),
                               ([("w1", ["w2"])], "Question 0 has 1 choices. Give at least two.")):
        with pytest.raises(BertError) as raised:
            found.predict(questions)
        assert str(raised.value) == message


def test_answers(bare):
    found = load(bare("squad")).predict(CONTEXTS)
    assert all(answer and answer in context for answer, (_, context) in zip(found, CONTEXTS))


def test_tags(models, bare):
    short = SENTENCES[:2]  # one in a piece whatever the longest sequence
    assert load(bare("ner")).predict(short) == load(models.folder / "ner").predict(short)


def test_labels_that_transformers_leaves_out_are_its_own(changed):
    assert load(changed("mrpc", id2label=None, label2id=None)).labels == ("LABEL_0", "LABEL_1")


@pytest.mark.parametrize(("name", "values", "message"), [
    ("mrpc", {"architectures": None}, "named in config.json (architectures)"),
    ("mrpc", {"architectures": ["BertForNextSentencePrediction"]}, "named in config.json (architectures)"),
    ("mrpc", {"problem_type": "multi_label_classification"}, "predicts several labels or numbers at once"),
    ("mrpc", {"id2label": {"0": "a", "1": "b", "2": "c"}}, "the model has 2 outputs for 3 labels (a, b, c)."),
    ("mrpc", {"id2label": {"0": "a", "1": "a"}}, "needs at least two labels, all different"),
    ("ner", {"id2label": None}, "'LABEL_0' is not a tag"),
])
def test_what_cannot_be_told_is_refused(changed, name, values, message):
    folder = changed(name, **values)
    found = error(folder)
    assert found.startswith(folder) and message in found


def test_pre_trained_model_has_no_task(tiny_release):
    assert "no task's head in the weights" in error(tiny_release)

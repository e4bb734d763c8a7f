"""Finished runs from Python predict what the scripts write, and mistakes are one line."""

import functools
import json
import shutil

import numpy as np
import pytest

import bert
from finetuning import driver
from finetuning.settings import FineTuningSettings
from foundation.errors import BertError
from tests.bert.conftest import CONTEXTS, PAIRS, QUESTIONS, SENTENCES, TEXTS
from training.settings import HardwareSettings, LoopSettings


@pytest.fixture
def written(models):
    """Runs a script's prediction in a finished run's folder; returns a function that reads one of its files."""

    def predict(name):
        driver.run(models.tasks[name], FineTuningSettings(
            do_predict=True, loop=LoopSettings(output_dir=str(models.folder / name)),
            hardware=HardwareSettings(precision="float32")))
        return lambda file: (models.folder / name / file).read_text()

    return predict


@pytest.fixture(scope="module")
def load(models):
    """Function from a run's name to its model, loaded once."""
    return functools.cache(lambda name: bert.load_finished(str(models.folder / name), precision="float32"))


def error(action, *arguments):
    with pytest.raises(BertError) as raised:
        action(*arguments)
    return str(raised.value)


def numbers(text):
    return np.array([line.split("\t") for line in text.splitlines()], float)


def test_classifier_gives_the_labels_and_probabilities_of_the_script(load, written):
    classifier, files = load("mrpc"), written("mrpc")
    results = classifier.predict(PAIRS, batch_size=2)
    assert classifier.labels == ("0", "1") and [list(each.probabilities) for each in results] == [["0", "1"]] * 3
    np.testing.assert_allclose([list(each.probabilities.values()) for each in results],
                               numbers(files("test_results.tsv")), atol=1e-5)
    table = files("predictions.tsv").splitlines()[1:]
    assert [f"{row}\t{each.label}" for row, each in enumerate(results)] == table


def test_pairs_and_single_texts_go_together(load):
    classifier = load("mrpc")
    alone = [classifier.predict([text])[0].probabilities["1"] for text in ("w1 w2", ("w1 w2", "w3"))]
    together = [each.probabilities["1"] for each in classifier.predict(["w1 w2", ("w1 w2", "w3")])]
    assert together == pytest.approx(alone, abs=1e-5) and alone[0] != pytest.approx(alone[1], abs=1e-5)


def test_regression_gives_the_numbers_of_the_script(load, written):
    scores = load("sts-b").predict(TEXTS)
    np.testing.assert_allclose(scores, numbers(written("sts-b")("test_results.tsv"))[:, 0], atol=1e-5)


def test_multiple_choice_gives_the_choices_of_the_script(load, written):
    results, files = load("swag").predict(QUESTIONS), written("swag")
    np.testing.assert_allclose([each.probabilities for each in results], numbers(files("test_results.tsv")), atol=1e-5)
    assert [f"{row}\t{each.number}" for row, each in enumerate(results)] == files("predictions.tsv").splitlines()[1:]
    assert [each.text for each in results] == [
        choices[each.number] for each, (_, choices) in zip(results, QUESTIONS)]


@pytest.mark.parametrize("name", ["squad", "squad2"])
def test_answers_are_those_of_the_script(load, written, name):
    found = load(name).predict(CONTEXTS)
    assert found == list(json.loads(written(name)("predictions.json")).values())
    assert all(answer in context for answer, (_, context) in zip(found, CONTEXTS))
    assert any(found) == (name == "squad")


def test_tags_are_those_of_the_script(load, written):
    tags = load("ner").predict(SENTENCES)
    blocks = written("ner")("predictions.txt").strip().split("\n\n")
    assert tags == [[line.split()[1] for line in block.splitlines()] for block in blocks]


def test_final_model_alone_is_enough(models, load):
    inside = bert.load_finished(str(models.folder / "mrpc/final_model"), precision="float32")
    assert inside.predict(PAIRS) == load("mrpc").predict(PAIRS)


def test_nothing_in_nothing_out(models, load):
    for name in models.tasks:
        assert load(name).predict([]) == []


def test_mistakes_are_reported(load, tiny_release):
    assert f"{tiny_release}: no task.json" in error(bert.load_finished, str(tiny_release))
    assert "One text in place of a list" in error(load("mrpc").predict, "w1 w2")
    assert "Element 1 is 3" in error(load("sts-b").predict, ["w1", 3])
    assert "Question 0 has 2 choices, the model needs 4." in error(
        load("swag").predict, [("w1", ["w2", "w3"])])
    assert "Question 0 has an empty context." in error(load("squad").predict, [("w1", " ")])
    tagger = load("ner")
    assert "One text in place of a list of words" in error(tagger.predict, ["w1 w2"])
    assert "Sentence 1 has no words." in error(tagger.predict, [["w1"], []])


def test_size_of_a_bilstm_that_the_weights_do_not_have_is_refused_before_it_is_built(models, tmp_path):
    shutil.copytree(models.folder / "ner", tmp_path / "ner")
    path = tmp_path / "ner/final_model/task.json"
    described = json.loads(path.read_text())
    path.write_text(json.dumps({**described, "feature_based": True, "features": "last", "lstm_size": 10**15}))
    found = error(bert.load_finished, str(tmp_path / "ner"))
    assert "bert_model.ckpt: has no BiLSTM; by --lstm_size or task.json it is one of 1,000,000,000,000,000." in found

"""Metrics and prediction files of a model's outputs; the mean of an ensemble's."""

import types

import numpy as np
import pytest

from finetuning.evaluation import Evaluator
from foundation.errors import BertError

DIRECTORY = types.SimpleNamespace(path="out", writable=True)


class Task:
    """Two dev splits and one to predict, which is the first of them; a row's score is its output."""

    dev_splits, test_splits, token_outputs = ("dev_matched", "dev_mismatched"), ("test",), ("tokens",)

    def files(self, split):
        return [{"test": "dev_matched"}.get(split, split)]

    def score(self, split, predicted):
        outputs = predicted.outputs
        assert isinstance(outputs["logits"], np.ndarray) and isinstance(outputs["tokens"], list)
        assert predicted.tokenizer == "tokenizer"
        return {"accuracy": outputs["logits"].mean() * len(predicted.examples)}

    def write(self, split, predicted, folder, metrics):
        outputs = predicted.outputs
        return [f"{folder}/{split}: {outputs['logits'].mean()} {[len(row) for row in outputs['tokens']]} {metrics}"]


class Splits:
    """So many rows a split."""

    def __init__(self, rows=2):
        self.rows = rows

    def examples(self, split):
        return [0] * self.rows

    def features(self, split, training, tokenizer, is_chief):
        assert not training
        return [0] * self.rows


class Model:
    """A predictor whose outputs are its weight; counts how often it is asked."""

    weight, calls = 1.0, 0

    def outputs(self, features, batch_size, description):
        self.calls += 1
        return {"logits": [np.full(3, self.weight)] * 2, "tokens": [np.full(1, self.weight), np.full(2, self.weight)]}

    def becomes(self, weight):
        def give():
            self.weight = weight
        return give


def test_metrics_of_further_splits_have_the_split_s_name():
    metrics = Evaluator(Task(), Splits(), "tokenizer", Model()).metrics(8)
    assert metrics == {"accuracy": 2.0, "accuracy_mismatched": 2.0}


def test_outputs_of_one_file_are_made_once_until_the_weights_change():
    task, model = Task(), Model()
    task.dev_splits = ("dev_matched",)
    evaluator = Evaluator(task, Splits(), "tokenizer", model)
    evaluator.metrics(8)
    assert evaluator.write_predictions(8, DIRECTORY, {"f1": 1.0}) == ("out/test: 1.0 [1, 2] {'f1': 1.0}",)
    assert model.calls == 1
    model.weight = 2.0
    evaluator.forget()
    assert evaluator.metrics(8) == {"accuracy": 4.0} and model.calls == 2


def test_an_ensemble_s_outputs_are_the_mean_of_its_members():
    model = Model()
    evaluator = Evaluator(Task(), Splits(), "tokenizer", model, [model.becomes(weight) for weight in (1.0, 2.0, 6.0)])
    assert evaluator.write_predictions(8, DIRECTORY, {"f1": 1.0}) == ("out/test: 3.0 [1, 2] {'f1': 1.0}",)
    assert evaluator.metrics(8) == {"accuracy": 6.0, "accuracy_mismatched": 6.0}


def test_only_the_first_machine_writes():
    directory = types.SimpleNamespace(path="out", writable=False)
    assert Evaluator(Task(), Splits(), "tokenizer", Model()).write_predictions(8, directory, {}) == ()


def test_a_split_without_a_row_is_named_by_its_file():
    with pytest.raises(BertError, match=r"^dev_matched: holds no example\.$"):
        Evaluator(Task(), Splits(rows=0), "tokenizer", Model()).metrics(8)

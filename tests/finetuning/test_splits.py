"""A split is read once, and its features are made where the cache lacks them."""

import types

import numpy as np
import pytest

from finetuning.splits import Splits
from inputs.feature_cache import FeatureCache
from inputs.features import Features

INITIAL = types.SimpleNamespace(vocabulary=types.SimpleNamespace(sha256="0"), do_lower_case=True)


class Task:
    """Notes what it is asked for; a row of three tokens."""

    def __init__(self, path):
        self.path, self.asked = path, []

    def files(self, split):
        return [self.path]

    def fingerprint(self):
        return {}

    def read(self, split):
        self.asked.append(split)
        return [split]

    def features(self, examples, tokenizer, training):
        self.asked.append((examples, tokenizer, training))
        return Features({"input_ids": np.arange(3)}, np.array([0, 3]), {})


@pytest.fixture
def task(tmp_path):
    (tmp_path / "data").write_text("x")
    return Task(str(tmp_path / "data"))


def test_a_split_is_read_once_and_its_features_are_kept(task, tmp_path, capsys):
    splits = Splits(task, FeatureCache(str(tmp_path / "cache")), INITIAL)
    assert not splits.has_features("dev", training=False)
    assert splits.examples("dev") is splits.examples("dev")
    assert len(splits.features("dev", False, "tokenizer")) == 1
    assert task.asked == ["dev", (["dev"], "tokenizer", False)]
    assert capsys.readouterr().out.startswith("dev: 1 rows of 3 word pieces made in ")
    assert splits.has_features("dev", training=False) and not splits.has_features("dev", training=True)
    splits.features("dev", False, "tokenizer")
    assert len(task.asked) == 2


def test_machines_after_the_first_print_nothing(task, tmp_path, capsys):
    Splits(task, FeatureCache(str(tmp_path)), INITIAL).features("train", True, "tokenizer", False)
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["data"]

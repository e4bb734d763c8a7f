"""A split is read once, and its features are made where the cache lacks them."""

import numpy as np

from finetuning.splits import Splits
from inputs.features import Features


class Cache:
    """Keeps nothing."""

    tokenizer = "tokenizer"

    def get(self, task, split, training, make):
        return make()


class Task:
    """Notes what it is asked for; a row of three tokens."""

    def __init__(self):
        self.asked = []

    def read(self, split):
        self.asked.append(split)
        return [split]

    def features(self, examples, tokenizer, training):
        self.asked.append((examples, tokenizer, training))
        return Features({"input_ids": np.arange(3)}, np.array([0, 3]), {})


def test_a_split_is_read_once(capsys):
    task = Task()
    splits = Splits(task, Cache())
    assert splits.examples("dev") is splits.examples("dev")
    assert len(splits.features("dev", training=False)) == 1
    assert task.asked == ["dev", (["dev"], "tokenizer", False)]
    assert capsys.readouterr().out.startswith("dev: 1 rows of 3 word pieces made in ")


def test_other_machines_say_nothing(capsys):
    Splits(Task(), Cache(), is_chief=False).features("train", training=True)
    assert capsys.readouterr().out == ""

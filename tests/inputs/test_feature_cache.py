"""Features are found again by what they were made from, and made again where that, or the file, is another."""

import numpy as np

from inputs.feature_cache import FeatureCache
from inputs.features import Features
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]


class FakeTask:
    def __init__(self, path, **settings):
        self.path, self.settings = path, settings

    def files(self, split):
        return [str(self.path)]

    def fingerprint(self):
        return self.settings


def cache(folder, do_lower_case=True, more=()):
    return FeatureCache(str(folder), Tokenizer(Vocabulary([*VOCABULARY, *more]), do_lower_case))


def features(value=1):
    return Features({"input_ids": np.array([value, 2, 3], np.int32)}, np.array([0, 1, 3]),
                    {"label_ids": np.array([1, 0], np.int32)})


def made(folder, task, made_with=None, split="train", training=True):
    """Whether the cache had to make the features."""
    calls = []

    def make():
        calls.append(1)
        return features()

    (made_with or cache(folder)).get(task, split, training, make)
    return bool(calls)


def test_same_input_is_not_made_twice_and_comes_back_equal(tmp_path):
    (tmp_path / "train.tsv").write_text("a b")
    task = FakeTask(tmp_path / "train.tsv", max_seq_length=8)
    assert made(tmp_path / "f", task)
    assert not made(tmp_path / "f", task)
    again = cache(tmp_path / "f").get(task, "train", True, None)
    np.testing.assert_array_equal(again.tokens["input_ids"], [1, 2, 3])
    np.testing.assert_array_equal(again.values["label_ids"], [1, 0])
    np.testing.assert_array_equal(again.lengths, [1, 2])


def test_other_data_settings_casing_vocabulary_and_purpose_are_made(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("a b")
    assert made(tmp_path / "f", FakeTask(path, max_seq_length=8))
    assert made(tmp_path / "f", FakeTask(path, max_seq_length=9))
    assert made(tmp_path / "f", FakeTask(path, max_seq_length=8), cache(tmp_path / "f", do_lower_case=False))
    assert made(tmp_path / "f", FakeTask(path, max_seq_length=8), cache(tmp_path / "f", more=["c"]))
    assert made(tmp_path / "f", FakeTask(path, max_seq_length=8), training=False)
    path.write_text("a c")
    assert made(tmp_path / "f", FakeTask(path, max_seq_length=8))


def test_damaged_file_is_made_again(tmp_path):
    (tmp_path / "train.tsv").write_text("a b")
    task = FakeTask(tmp_path / "train.tsv")
    assert made(tmp_path / "f", task)
    [kept] = (tmp_path / "f").iterdir()
    kept.write_bytes(kept.read_bytes()[:40])
    assert made(tmp_path / "f", task)
    assert not made(tmp_path / "f", task)


def test_works_on_any_file_system(tmp_path):
    (tmp_path / "train.tsv").write_text("a b")
    assert made("ram://cache", FakeTask(tmp_path / "train.tsv"))
    assert not made("ram://cache", FakeTask(tmp_path / "train.tsv"))

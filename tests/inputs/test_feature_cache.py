"""Features are found again by what they were made from, and made again where it, or the file, has changed."""

import zipfile

import numpy as np
import pytest

from inputs.feature_cache import FeatureCache, key_of
from inputs.features import Features
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]


def key(path, do_lower_case=True, more=(), training=True, **fingerprint):
    tokenizer = Tokenizer(Vocabulary([*VOCABULARY, *more]), do_lower_case)
    return key_of(fingerprint, [str(path)], tokenizer, training)


def features(value=1):
    return Features({"input_ids": np.array([value, 2, 3], np.int32)}, np.array([0, 1, 3]),
                    {"label_ids": np.array([1, 0], np.int32)})


def made(folder, key, split="train", keep=True):
    """Whether the cache had to make the features."""
    calls = []

    def make():
        calls.append(1)
        return features()

    FeatureCache(str(folder)).get(split, key, make, keep)
    return bool(calls)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("a b")
    return path


def test_same_input_is_not_made_twice_and_comes_back_equal(tmp_path, file):
    assert made(tmp_path / "f", key(file, max_seq_length=8))
    assert not made(tmp_path / "f", key(file, max_seq_length=8))
    again = FeatureCache(str(tmp_path / "f")).get("train", key(file, max_seq_length=8), None)
    np.testing.assert_array_equal(again.tokens["input_ids"], [1, 2, 3])
    np.testing.assert_array_equal(again.values["label_ids"], [1, 0])
    np.testing.assert_array_equal(again.lengths, [1, 2])


def test_other_data_settings_casing_vocabulary_and_purpose_are_made(tmp_path, file):
    assert made(tmp_path / "f", key(file, max_seq_length=8))
    assert made(tmp_path / "f", key(file, max_seq_length=9))
    assert made(tmp_path / "f", key(file, do_lower_case=False, max_seq_length=8))
    assert made(tmp_path / "f", key(file, more=["c"], max_seq_length=8))
    assert made(tmp_path / "f", key(file, training=False, max_seq_length=8))
    file.write_text("a c")
    assert made(tmp_path / "f", key(file, max_seq_length=8))


@pytest.mark.parametrize("kept_bytes", [0, 40])
def test_damaged_file_is_made_again(tmp_path, file, kept_bytes):
    assert made(tmp_path / "f", key(file))
    [kept] = (tmp_path / "f").iterdir()
    kept.write_bytes(kept.read_bytes()[:kept_bytes])
    assert made(tmp_path / "f", key(file))
    assert not made(tmp_path / "f", key(file))


def test_other_machines_only_read(tmp_path, file):
    assert made(tmp_path / "f", key(file), keep=False)
    assert made(tmp_path / "f", key(file))
    assert not made(tmp_path / "f", key(file), keep=False)


def test_works_on_any_file_system(file):
    assert made("ram://cache", key(file))
    assert not made("ram://cache", key(file))


@pytest.mark.parametrize("changes", [
    {"tokens/input_ids": None},
    {"values/label_ids": None},
    {"tokens/input_ids": np.array([1, 2], np.int32)},
    {"tokens/input_ids": np.array([0.5, 2, 3])},
    {"values/label_ids": np.array([1], np.int32)},
    {"values/label_ids": np.array(["1", "0"])},
    {"row_splits": np.array([0, 4, 3])},
    {"row_splits": np.zeros(0, np.int64)},
    {"sequences_per_row": np.array(0)},
    {"sequences_per_row": np.array(3)},
    {"columns": None},
])
def test_file_whose_arrays_do_not_belong_together_is_made_again(tmp_path, file, changes):
    assert made(tmp_path / "f", key(file))
    [kept] = (tmp_path / "f").iterdir()
    arrays = dict(np.load(kept)) | changes
    np.savez(kept, **{name: array for name, array in arrays.items() if array is not None})
    assert made(tmp_path / "f", key(file))
    assert not made(tmp_path / "f", key(file))


def test_file_whose_array_has_no_header_is_made_again(tmp_path, file):
    assert made(tmp_path / "f", key(file))
    [kept] = (tmp_path / "f").iterdir()
    with zipfile.ZipFile(kept) as archive:
        members = {name: archive.read(name).replace(b"'shape': (", b"'shape': ((") for name in archive.namelist()}
    with zipfile.ZipFile(kept, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert made(tmp_path / "f", key(file))

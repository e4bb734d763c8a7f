"""Checkpoints in the release's format."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from foundation.errors import BertError
from modeling.checkpoints import google, load
from modeling.models import PretrainingModel, named_variables


@pytest.fixture
def released(golden):
    return str(golden / "model/bert_model.ckpt")


def copied(released, folder):
    for part in (".index", ".data-00000-of-00001"):
        shutil.copy(released + part, folder / f"copy{part}")
    return str(folder / "copy")


def test_released_checkpoint_is_read_whole(released, golden_config):
    model = PretrainingModel(golden_config)
    report = load.load_into(model, released)
    assert (len(report.read), report.initial, report.unused) == (62, (), ())
    reader = tf.train.load_checkpoint(released)
    for name, variable in named_variables(model).items():
        np.testing.assert_array_equal(variable.numpy(), reader.get_tensor(name))


def test_written_checkpoint_comes_back_and_tensorflow_reads_it(tmp_path):
    values = {"a/b/kernel": np.arange(6.0, dtype=np.float32).reshape(2, 3), "global_step": np.int64(7)}
    prefix = str(tmp_path / "folder/model.ckpt-7")
    google.write(prefix, values)
    reader = google.read(prefix)
    assert reader.names == sorted(values)
    assert reader.shapes == {"a/b/kernel": [2, 3], "global_step": []}
    for name, value in values.items():
        np.testing.assert_array_equal(reader.get(name), value)
    assert tf.train.load_checkpoint(prefix).get_tensor("global_step") == 7
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == [
        "model.ckpt-7.data-00000-of-00001",
        "model.ckpt-7.index",
    ]


def test_path_of_an_index_means_its_checkpoint(released):
    assert google.read(released + ".index").names == google.read(released).names


def test_write_replaces_an_older_checkpoint(tmp_path):
    prefix = str(tmp_path / "x")
    google.write(prefix, {"a": np.zeros(1000)})
    google.write(prefix, {"b": np.ones(2)})
    assert google.read(prefix).names == ["b"]


def test_failed_write_leaves_no_checkpoint(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BertError):
        google.write(str(tmp_path / "file/x"), {"a": np.zeros(3)})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_works_on_any_file_system():
    google.write("ram://checkpoints/x", {"a": np.ones(3)})
    np.testing.assert_array_equal(google.read("ram://checkpoints/x").get("a"), np.ones(3))


def test_slots_are_unused_and_absent_heads_keep_their_values(released, golden_config, tmp_path):
    reader = google.read(released)
    values = {name: reader.get(name) for name in reader.names if name.startswith("bert/")}
    google.write(str(tmp_path / "x"), {**values, "bert/pooler/dense/bias/adam_m": np.zeros(64), "global_step": 3})
    model = PretrainingModel(golden_config)
    before = model.cls.predictions.transform.dense.kernel.numpy()
    report = load.load_into(model, str(tmp_path / "x"))
    assert report.unused == ("bert/pooler/dense/bias/adam_m", "global_step")
    assert set(report.initial) == {name for name in named_variables(model) if name.startswith("cls/")}
    np.testing.assert_array_equal(model.cls.predictions.transform.dense.kernel.numpy(), before)
    assert report.summary().startswith("55 tensors read, 7 left at their initial values, 2 unused.\n")


def test_other_shape_names_both_and_changes_nothing(released, golden_config):
    model = PretrainingModel(golden_config.replace(vocab_size=1001))
    before = model.bert.pooler.dense.kernel.numpy()
    with pytest.raises(BertError, match=r"word_embeddings has the shape \[1000, 64\] in the checkpoint and \[1001, "):
        load.load_into(model, released)
    np.testing.assert_array_equal(model.bert.pooler.dense.kernel.numpy(), before)


def test_missing_checkpoint_is_one_line(tmp_path):
    with pytest.raises(BertError, match=r"no such checkpoint \(.*nowhere\.index does not exist\)"):
        google.read(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("part", [".index", ".data-00000-of-00001"])
def test_truncated_checkpoint_is_one_line(released, golden_config, tmp_path, part):
    prefix = copied(released, tmp_path)
    path = tmp_path / f"copy{part}"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BertError, match="damaged or incomplete") as error:
        load.load_into(PretrainingModel(golden_config), prefix)
    assert "\n" not in str(error.value)


def test_missing_data_file_is_one_line(released, golden_config, tmp_path):
    prefix = copied(released, tmp_path)
    (tmp_path / "copy.data-00000-of-00001").unlink()
    with pytest.raises(BertError, match="damaged or incomplete"):
        load.load_into(PretrainingModel(golden_config), prefix)


def test_checkpoint_of_something_else_is_refused(golden_config, tmp_path):
    google.write(str(tmp_path / "x"), {"resnet/conv": np.zeros(3)})
    with pytest.raises(BertError, match=r"none of the model's variables \(it holds resnet/conv\)"):
        load.load_into(PretrainingModel(golden_config), str(tmp_path / "x"))


def test_unknown_name_is_refused(released):
    with pytest.raises(BertError, match="holds no variable bert/x"):
        google.read(released).get("bert/x")

"""Keras' weight files: Keras loads the files written here, and files that Keras writes are read here."""

import h5py
import keras
import numpy as np
import pytest

from foundation.errors import BertError
from modeling.checkpoints import google, hdf5_structure, keras_weights, load
from modeling.config import BertConfig
from modeling.models import (
    ClassificationModel,
    MultipleChoiceModel,
    PretrainingModel,
    QuestionAnsweringModel,
    TokenClassificationModel,
    named_variables,
)
from tests.modeling.checkpoints.arrays import ArrayReader

CONFIG = BertConfig(vocab_size=11, hidden_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=6,
                    max_position_embeddings=5)
DEEP = CONFIG.replace(num_hidden_layers=12)

# Examples of every rule: Keras numbers the items of a list attribute by itself.
DATASETS = {
    "bert/embeddings/position_embeddings": "bert/embeddings/vars/2",
    "bert/embeddings/LayerNorm/gamma": "bert/embeddings/norm/vars/1",
    "bert/encoder/layer_0/attention/self/query/kernel":
        "bert/encoder/layers/encoder_layer/attention/self_attention/query/vars/0",
    "bert/encoder/layer_11/output/LayerNorm/beta": "bert/encoder/layers/encoder_layer_11/output_block/norm/vars/0",
    "bert/pooler/dense/bias": "bert/pooler/dense/vars/1",
    "cls/predictions/output_bias": "cls/predictions/vars/0",
    "cls/seq_relationship/output_bias": "cls/seq_relationship/vars/1",
    "output_weights": "head/vars/0",
    "cls/squad/output_bias": "head/vars/1",
}


EVERY_MODEL = pytest.mark.parametrize("make", [
    lambda config: PretrainingModel(DEEP), lambda config: PretrainingModel(config, next_sentence=False),
    lambda config: ClassificationModel(config, 3), QuestionAnsweringModel, MultipleChoiceModel,
    lambda config: TokenClassificationModel(config, 5)],
    ids=["pretraining", "masked_lm", "classification", "answers", "choice", "tokens"])


def shuffled(model):
    """Gives every variable random values, so that exchanged variables show; returns them by name."""
    rng = np.random.default_rng(0)
    for variable in named_variables(model).values():
        variable.assign(rng.standard_normal(variable.shape))
    return {name: variable.numpy() for name, variable in named_variables(model).items()}


def assert_equal(found, expected):
    assert set(found) == set(expected)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@pytest.mark.parametrize(("name", "dataset"), DATASETS.items())
def test_dataset_is_where_keras_keeps_the_variable(name, dataset):
    assert keras_weights.dataset_of(name) == dataset


@pytest.mark.parametrize("name", ["global_step", "bert/pooler/dense/kernel/adam_m", "resnet/conv/kernel", "bert/x"])
def test_name_that_no_model_has_gets_no_dataset(name):
    assert keras_weights.dataset_of(name) is None


@EVERY_MODEL
def test_load_weights_of_every_model_reads_the_written_file(tmp_path, make):
    expected = shuffled(make(CONFIG))
    path = str(tmp_path / "model.weights.h5")
    assert keras_weights.write(path, ArrayReader(expected)) == []
    fresh = make(CONFIG)
    fresh.load_weights(path)
    assert_equal({name: variable.numpy() for name, variable in named_variables(fresh).items()}, expected)
    reader = keras_weights.read(path)
    assert_equal({name: reader.get(name) for name in reader.names}, expected)
    assert reader.unknown == ()


def arrays_in(path):
    """Every dataset of an HDF5 file by its path."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


@EVERY_MODEL
def test_layout_equals_that_of_keras_own_save_weights(tmp_path, make):
    model = make(CONFIG)
    expected = shuffled(model)
    model.save_weights(str(tmp_path / "keras.weights.h5"))
    keras_weights.write(str(tmp_path / "ours.weights.h5"), ArrayReader(expected))
    assert_equal(arrays_in(tmp_path / "ours.weights.h5"), arrays_in(tmp_path / "keras.weights.h5"))


def test_golden_weights_by_load_weights_give_the_recorded_outputs(golden, golden_config, golden_features, tmp_path):
    reader = google.read(str(golden / "model/bert_model.ckpt"))
    keras_weights.write(str(tmp_path / "x.weights.h5"), reader)
    model = PretrainingModel(golden_config)
    model.load_weights(str(tmp_path / "x.weights.h5"))
    recorded = np.load(golden / "model/golden_forward.npz")
    outputs = model(golden_features)
    np.testing.assert_allclose(keras.ops.reshape(outputs["masked_lm_logits"], (-1, 1000)),
                               recorded["out/masked_lm_logits"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("config", "next_sentence"), [(DEEP, True), (CONFIG, False)])
def test_file_of_keras_own_save_weights_is_read(tmp_path, config, next_sentence):
    model = PretrainingModel(config, next_sentence=next_sentence)
    expected = shuffled(model)
    model.save_weights(str(tmp_path / "own.weights.h5"))
    fresh = PretrainingModel(config, next_sentence=next_sentence)
    report = load.load_into(fresh, str(tmp_path / "own.weights.h5"))
    assert (report.initial, report.unused) == ((), ())
    assert_equal({name: variable.numpy() for name, variable in named_variables(fresh).items()}, expected)


def test_task_head_of_save_weights_has_no_name_and_is_unused(tmp_path):
    model = QuestionAnsweringModel(CONFIG)
    expected = shuffled(model)
    model.save_weights(str(tmp_path / "own.weights.h5"))
    fresh = QuestionAnsweringModel(CONFIG)
    report = load.load_into(fresh, str(tmp_path / "own.weights.h5"))
    assert set(report.initial) == {"cls/squad/output_weights", "cls/squad/output_bias"}
    assert report.unused == ("head/vars/0", "head/vars/1")
    np.testing.assert_array_equal(fresh.bert.pooler.dense.kernel, expected["bert/pooler/dense/kernel"])


def test_variables_without_a_place_are_left_out_by_name(tmp_path):
    values = {"bert/pooler/dense/bias": np.ones(4), "global_step": np.int64(1), "output_bias": np.ones(3),
              "cls/squad/output_bias": np.ones(2)}
    path = str(tmp_path / "x.weights.h5")
    assert keras_weights.write(path, ArrayReader(values)) == ["global_step", "cls/squad/output_bias"]
    assert keras_weights.read(path).names == ["bert/pooler/dense/bias", "output_bias"]


def test_works_on_any_file_system():
    path = "ram://keras/model.weights.h5"
    keras_weights.write(path, ArrayReader({"bert/pooler/dense/bias": np.arange(4.0)}))
    np.testing.assert_array_equal(keras_weights.read(path).get("bert/pooler/dense/bias"), np.arange(4.0))


def test_truncated_file_is_reported_in_one_line(tmp_path):
    path = tmp_path / "x.weights.h5"
    keras_weights.write(str(path), ArrayReader({"bert/pooler/dense/kernel": np.ones((99, 99))}))
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(BertError, match=r"x\.weights\.h5: damaged, or not an HDF5 file \(.*truncated file") as error:
        keras_weights.read(str(path))
    assert "\n" not in str(error.value)


def test_file_that_the_hdf5_library_never_finishes_reading_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.weights.h5"
    keras_weights.write(str(path), ArrayReader({"output_bias": np.ones(3)}))
    data = bytearray(path.read_bytes())
    names = data.index(b"GCOL") + 16  # behind the header of the heap that holds the attribute
    data[names:names + 16] = bytes(16)
    path.write_bytes(data)
    monkeypatch.setattr(hdf5_structure, "_SECONDS", 2)
    with pytest.raises(BertError, match=r"x\.weights\.h5: the file is damaged \(the HDF5 library does not finish"):
        keras_weights.read(str(path))


def test_file_of_another_program_is_refused(tmp_path):
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        file.create_dataset("bert/pooler/kernel:0", data=np.ones(3))
    with pytest.raises(BertError, match=r"tf_model\.h5: holds no BERT that convert_checkpoint\.py.* wrote"):
        load.find(str(tmp_path / "tf_model.h5")).reader  # noqa: B018


@pytest.mark.parametrize("name", ["x.weights.h5", "x.keras"])
def test_file_that_is_not_hdf5_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"PK\x03\x04 and no HDF5")
    with pytest.raises(BertError, match=rf"{name}: damaged, or not an HDF5 file \(.*signature not found"):
        load.find(str(tmp_path / name)).reader  # noqa: B018


def test_missing_file_and_unknown_name_are_named(tmp_path):
    with pytest.raises(BertError, match=r"x\.weights\.h5: no such file\."):
        keras_weights.read(str(tmp_path / "x.weights.h5"))
    keras_weights.write(str(tmp_path / "x.weights.h5"), ArrayReader({"output_bias": np.ones(3)}))
    with pytest.raises(BertError, match=r"x\.weights\.h5: holds no variable output_weights"):
        keras_weights.read(str(tmp_path / "x.weights.h5")).get("output_weights")


def hostile(path, kind, tmp_path):
    """A weight file one of whose values is not in it."""
    (tmp_path / "secret").write_bytes(np.arange(4.0).tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other.create_dataset("x", data=np.arange(4.0))
    with h5py.File(path, "w") as file:
        group = file.create_group("bert/pooler/dense")
        group.create_dataset("vars/0", data=np.ones((4, 4)))
        if kind == "external storage":
            group.create_dataset("vars/1", (4,), np.float64, external=[(str(tmp_path / "secret"), 0, 32)])
        elif kind == "virtual":
            layout = h5py.VirtualLayout((4,), np.float64)
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (4,))
            group.create_virtual_dataset("vars/1", layout)
        elif kind == "external link":
            group["vars/1"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "x")
        elif kind == "soft link":
            group["vars/1"] = h5py.SoftLink("/bert/pooler/dense/vars/0")
        elif kind == "group behind an external link":
            file["cls"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/")
        elif kind == "bomb":
            group.create_dataset("vars/1", (2**40,), np.float32, chunks=(2**20,), compression="gzip")
        elif kind == "unwritten":
            group.create_dataset("vars/1", (2**40,), np.float32)
        elif kind == "text":
            group.create_dataset("vars/1", data=["a", "b"])


@pytest.mark.parametrize(("kind", "message"), [
    ("external storage", "the values of bert/pooler/dense/vars/1 are in another file, which is not read"),
    ("virtual", "the values of bert/pooler/dense/vars/1 are in another file, which is not read"),
    ("external link", "bert/pooler/dense/vars/1 is a ExternalLink; links to other places are not followed"),
    ("soft link", "bert/pooler/dense/vars/1 is a SoftLink; links to other places are not followed"),
    ("group behind an external link", "cls is a ExternalLink"),
    ("bomb", "bert/pooler/dense/vars/1 is not stored as Keras stores it"),
    ("unwritten", "bert/pooler/dense/vars/1 is not stored as Keras stores it"),
    ("text", "bert/pooler/dense/vars/1 holds object, not numbers"),
])
def test_values_elsewhere_than_in_the_file_are_refused(tmp_path, kind, message):
    path = str(tmp_path / "x.weights.h5")
    hostile(path, kind, tmp_path)
    with pytest.raises(BertError, match=rf"x\.weights\.h5: {message}") as error:
        keras_weights.read(path)
    assert "\n" not in str(error.value)

"""The recipes of docs/checkpoints.md: a format and a task head are one module and one line each."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from foundation import files
from foundation.errors import BertError
from modeling import head_table
from modeling.checkpoints import convert, google, huggingface_names, keras_weights, load, release_folder
from modeling.checkpoints.formats import FORMATS
from modeling.config import BertConfig
from modeling.models import ClassificationModel, FineTuningModel, named_variables
from tests.modeling.checkpoints.arrays import ArrayReader

CONFIG = BertConfig(vocab_size=11, hidden_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=6,
                    max_position_embeddings=5)


class NumpyFormat:
    """A new format, as the recipe makes one: a release's folder with the weights in `weights.npz`."""

    name = "numpy"
    description = "weights.npz and bert_config.json"
    example = "weights.npz"
    config_files = release_folder.CONFIG_FILES

    def find(self, path):
        path = os.path.join(path, self.example) if files.is_folder(path) else path
        return path if path.endswith(".npz") and files.exists(path) else None

    def refusal(self, path):
        return f"{path}: text is not read. Write {self.example}." if path.endswith(".csv") else None

    def open(self, path):
        return ArrayReader(dict(np.load(path)))

    def labels(self, folder):
        return release_folder.labels(folder)

    def lower_case(self, folder):
        return release_folder.lower_case(folder)

    def write(self, folder, contents):
        release_folder.write(folder, contents)
        reader = contents.reader
        np.savez(os.path.join(folder, self.example), **{name: reader.get(name) for name in reader.names})
        return []


@pytest.fixture
def numpy_format(monkeypatch):
    """The line in the table."""
    monkeypatch.setitem(FORMATS, "numpy", NumpyFormat())


@pytest.fixture
def release(tmp_path):
    """Folder of a classifier in the release's format."""
    folder = tmp_path / "release"
    google.write(f"{folder}/bert_model.ckpt", named_variables(ClassificationModel(CONFIG, 2)))
    CONFIG.to_json_file(f"{folder}/bert_config.json")
    files.write_json(f"{folder}/task.json", {"labels": ["no", "yes"]})
    return str(folder)


def tensors(path):
    reader = load.find(str(path)).reader
    return {name: reader.get(name) for name in reader.names}


@pytest.mark.parametrize("other", ["google", "keras", "huggingface"])
def test_new_format_is_converted_to_and_from_every_other_bit_for_bit(numpy_format, release, tmp_path, other):
    expected = tensors(release)
    convert.convert(release, str(tmp_path / "numpy"), "numpy")
    convert.convert(str(tmp_path / "numpy"), str(tmp_path / other), other)
    done = convert.convert(str(tmp_path / other), str(tmp_path / "back"), "numpy")
    assert (done.source_format, done.format, done.left_out) == (other, "numpy", ())
    found = tensors(tmp_path / "back")
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name].tobytes() == value.tobytes(), name


def test_new_format_is_found_by_file_and_folder_with_its_files(numpy_format, release, tmp_path):
    convert.convert(release, str(tmp_path / "numpy"), "numpy", do_lower_case=False)
    for path in (tmp_path / "numpy", tmp_path / "numpy/weights.npz"):
        found = load.find(str(path))
        assert (found.format.name, found.labels()) == ("numpy", ["no", "yes"])
        assert found.config() == CONFIG.replace(do_lower_case=False)


def test_new_format_is_loaded_into_a_model(numpy_format, release, tmp_path):
    convert.convert(release, str(tmp_path / "numpy"), "numpy")
    model = ClassificationModel(CONFIG, 2)
    report = load.load_into(model, str(tmp_path / "numpy"))
    assert (report.initial, report.unused) == ((), ())
    np.testing.assert_array_equal(model.head.output_weights, tensors(release)["output_weights"])


def test_messages_name_the_new_format(numpy_format, tmp_path):
    with pytest.raises(BertError, match=r"such as bert_model\.ckpt, .*model\.safetensors or weights\.npz\."):
        load.find(str(tmp_path / "nowhere"))
    (tmp_path / "weights.csv").write_text("1,2")
    with pytest.raises(BertError, match=r"text is not read\. Write weights\.npz\."):
        load.find(str(tmp_path / "weights.csv"))
    with pytest.raises(BertError, match="not one of google, huggingface, keras, numpy"):
        convert.convert(str(tmp_path), str(tmp_path / "out"), "onnx")


@pytest.fixture
def relation_head(monkeypatch):
    """A new head's line in the table."""
    head = head_table.TaskHead(
        "relation", "cls/relation/", "BertForRelation", "relation", has_pooler=True, has_labels=True)
    monkeypatch.setitem(head_table.HEADS, head.name, head)
    return head


class RelationModel(FineTuningModel):
    """A model with the new head."""

    def __init__(self):
        super().__init__(CONFIG, "relation", units=3, dropout=0.0)

    def call(self, features, dropout_seed=None):
        return {"logits": self.head(self.encode(features, dropout_seed)["pooled_output"], seed=dropout_seed)}


def values_of(model):
    return {name: variable.numpy() for name, variable in named_variables(model).items()}


def test_new_head_has_its_names_at_hugging_face_and_comes_back(relation_head, tmp_path):
    values = values_of(RelationModel())
    google.write(str(tmp_path / "run/bert_model.ckpt"), values)
    CONFIG.to_json_file(str(tmp_path / "run/bert_config.json"))
    files.write_json(str(tmp_path / "run/task.json"), {"labels": ["a", "b", "c"]})
    assert convert.convert(str(tmp_path / "run"), str(tmp_path / "theirs"), "huggingface").left_out == ()
    config = json.loads((tmp_path / "theirs/config.json").read_text())
    assert (config["architectures"], config["id2label"]) == (["BertForRelation"], {"0": "a", "1": "b", "2": "c"})
    assert "BertForRelation" in huggingface_names.architectures()
    convert.convert(str(tmp_path / "theirs"), str(tmp_path / "back"), "google")
    found = tensors(tmp_path / "back")
    assert set(found) == set(values)
    np.testing.assert_array_equal(found["cls/relation/output_weights"], values["cls/relation/output_weights"])


def test_new_head_is_where_keras_keeps_it(relation_head, tmp_path):
    model = RelationModel()
    values = values_of(model)
    assert keras_weights.dataset_of("cls/relation/output_bias") == "head/vars/1"
    keras_weights.write(str(tmp_path / "x.weights.h5"), ArrayReader(values))
    model.head.output_weights.assign(np.zeros((3, 4)))
    model.load_weights(str(tmp_path / "x.weights.h5"))
    np.testing.assert_array_equal(model.head.output_weights, values["cls/relation/output_weights"])


def test_finding_and_describing_a_checkpoint_needs_no_tensorflow(repository, golden, in_every_format):
    program = """
import sys
from modeling.checkpoints import convert, load
for path in sys.argv[1:]:
    found = load.find(path)
    found.config(), found.vocab_file, found.task_file, found.labels(), found.lower_case()
print([name for name in ("tensorflow", "keras", "h5py") if name in sys.modules])
"""
    paths = [str(golden / "model"), *(str(in_every_format / kind) for kind in FORMATS)]
    done = subprocess.run([sys.executable, "-c", program, *paths], capture_output=True, text=True, cwd=repository)
    assert done.stdout == "[]\n", done.stderr


def test_conversion_from_hugging_face_to_keras_needs_no_tensorflow(repository, in_every_format, tmp_path):
    program = """
import sys
from modeling.checkpoints import convert
convert.convert(sys.argv[1], sys.argv[2], "keras")
print([name for name in ("tensorflow", "keras") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program, str(in_every_format / "huggingface"), str(tmp_path / "out")],
                          capture_output=True, text=True, cwd=repository)
    assert done.stdout == "[]\n", done.stderr

"""Damaged Hugging Face checkpoints and other files are refused in one line."""

import json
import pickle
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save, save_file

from foundation.errors import BertError
from modeling.checkpoints import huggingface, tokenizer_files
from tests.modeling.checkpoints.huggingface_example import folder_of, sharded, tensors_of


def refusal(path):
    with pytest.raises(BertError) as error:
        huggingface.read(str(path))
    assert "\n" not in str(error.value)
    return str(error.value).replace(str(path), "PATH")


def test_missing_shards_are_counted_and_named(tmp_path):
    sharded(tmp_path, tensors_of("BertModel"))
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    assert refusal(tmp_path) == ("PATH/model.safetensors.index.json: 1 of 3 shards are missing, the first is "
                                 "model-00002-of-00003.safetensors.")


def test_missing_index_is_named(tmp_path):
    sharded(tmp_path, tensors_of("BertModel"))
    (tmp_path / "model.safetensors.index.json").unlink()
    assert refusal(tmp_path) == ("PATH: model-00001-of-00003.safetensors is one of several shards, but their index, "
                                 "model.safetensors.index.json, is missing. Copy it too.")


def test_single_shard_is_refused(tmp_path):
    sharded(tmp_path, tensors_of("BertModel"))
    assert refusal(tmp_path / "model-00002-of-00003.safetensors") == "PATH: one of 3 shards. Give their folder."


def test_index_with_fewer_shards_than_their_names_count_is_refused(tmp_path):
    index = sharded(tmp_path, tensors_of("BertModel"))
    index["weight_map"] = {name: place for name, place in index["weight_map"].items() if "00003-" not in place}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert refusal(tmp_path).endswith("index.json: lists 2 shards, but their names count 3.")


def test_shard_of_another_checkpoint_is_refused(tmp_path):
    index = sharded(tmp_path, tensors_of("BertModel"))
    shard = "model-00002-of-00003.safetensors"
    save_file({name: np.zeros(2, np.float32) for name, place in index["weight_map"].items() if place == shard}
              | {"another": np.zeros(2, np.float32)}, tmp_path / shard)
    assert refusal(tmp_path) == f"PATH/{shard}: holds another, which the index does not list. " \
                                "The shards are of different checkpoints."
    save_file({"x": np.zeros(2, np.float32)}, tmp_path / shard)
    assert refusal(tmp_path).startswith(f"PATH/{shard}: lacks embeddings.LayerNorm.bias, which the index lists")


@pytest.mark.parametrize("values", ["[]", "{}", '{"weight_map": {}}', '{"weight_map": {"a": 1}}'])
def test_index_that_lists_no_shard_is_refused(tmp_path, values):
    (tmp_path / "model.safetensors.index.json").write_text(values)
    assert refusal(tmp_path) == "PATH/model.safetensors.index.json: lists no shard of any tensor (weight_map)."


def test_shard_outside_the_folder_is_refused(tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../a.safetensors"}}')
    assert refusal(tmp_path).endswith("the shard '../a.safetensors' is not in its folder.")


def pickled(path, protocol=2):
    path.write_bytes(pickle.dumps({"bert.pooler.dense.bias": [0.0] * 9}, protocol=protocol))


def zipped(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", b"\x80\x02}q\x00.")


@pytest.mark.parametrize("write", [pickled, zipped, lambda path: pickled(path, 5)])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "model.safetensors", "weights"])
def test_pickled_file_is_refused_whatever_its_name(tmp_path, write, name):
    write(tmp_path / name)
    message = refusal(tmp_path / name)
    assert message.startswith("PATH: a pickled PyTorch file")
    assert "save_pretrained(folder, safe_serialization=True)" in message


def test_folder_with_a_pickled_file_alone_is_refused(tmp_path):
    folder_of(tmp_path, {"a": np.zeros(1)})
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    assert refusal(tmp_path).startswith("PATH/pytorch_model.bin: a pickled PyTorch file")


def test_weights_are_named_before_other_pickled_files(tmp_path):
    for name in ("optimizer.pt", "pytorch_model.bin", "training_args.bin"):
        pickled(tmp_path / name)
    assert refusal(tmp_path).startswith("PATH/pytorch_model.bin: a pickled PyTorch file")


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "tokenizer.json"])
def test_json_that_is_not_an_object_is_refused(tmp_path, name):
    folder = folder_of(tmp_path, tensors_of("BertModel"))
    (tmp_path / name).write_text("[]")
    with pytest.raises(BertError, match=rf"{name}: not one JSON object"):
        huggingface.read(folder), tokenizer_files.lower_case_of(folder)


def test_pickled_file_next_to_safetensors_is_ignored(tmp_path):
    folder = folder_of(tmp_path, tensors_of("BertModel"))
    pickled(tmp_path / "pytorch_model.bin")
    assert len(huggingface.read(folder).names) == 39


@pytest.mark.parametrize("name", ["tf_model.h5", "flax_model.msgpack"])
def test_weights_of_other_frameworks_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 20)
    assert refusal(tmp_path).startswith(f"PATH: holds {name} and no model.safetensors. With transformers")
    assert refusal(tmp_path / name).startswith("PATH: not a safetensors file. With transformers")


def test_folder_without_weights_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert refusal(tmp_path) == "PATH: holds no model.safetensors."
    save_file({"a": np.zeros(1)}, tmp_path / "other.safetensors")
    assert refusal(tmp_path).endswith("Give the path of other.safetensors itself.")


def test_missing_path_is_refused(tmp_path):
    assert refusal(tmp_path / "nowhere.safetensors") == "PATH: no such file."


@pytest.mark.parametrize("keep", [0, 4, 8, 100, 3000, -1])
def test_truncated_file_is_refused(tmp_path, keep):
    data = save(tensors_of("BertModel"))
    (tmp_path / "model.safetensors").write_bytes(data[:keep])
    assert refusal(tmp_path).startswith("PATH/model.safetensors: damaged, or not a safetensors file")


@pytest.mark.parametrize("data", [b"garbage " * 50, b"\0" * 400, (50).to_bytes(8, "little") + b"{" * 400])
def test_garbage_is_refused(tmp_path, data):
    (tmp_path / "model.safetensors").write_bytes(data)
    assert refusal(tmp_path).startswith("PATH/model.safetensors: damaged, or not a safetensors file")


def test_checkpoint_of_something_else_is_refused(tmp_path):
    folder_of(tmp_path, {f"resnet.{index}": np.zeros(1) for index in range(4)})
    assert refusal(tmp_path) == ("PATH: holds none of BERT's tensors (it holds resnet.0, resnet.1, resnet.2 …).")


def test_model_of_another_kind_is_named(tmp_path):
    folder_of(tmp_path, tensors_of("BertModel"), model_type="distilbert")
    assert refusal(tmp_path) == "PATH: the model is a distilbert, not a BERT."


def test_quantized_tensors_are_refused(tmp_path):
    folder_of(tmp_path, tensors_of("BertModel") | {"pooler.dense.weight": np.zeros((4, 4), np.int8)})
    assert refusal(tmp_path).startswith("PATH: pooler.dense.weight holds I8: the model is quantized.")


def test_unknown_name_is_refused(tmp_path):
    with pytest.raises(BertError, match="holds no variable bert/x"):
        huggingface.read(folder_of(tmp_path, tensors_of("BertModel"))).get("bert/x")

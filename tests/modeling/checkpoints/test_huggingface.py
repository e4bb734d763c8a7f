import json
import os
import pickle
import zipfile

import ml_dtypes
import numpy as np
import pytest
import safetensors
import tensorflow as tf
from safetensors.numpy import save, save_file

from foundation.errors import BertError
from modeling.checkpoints import google, huggingface
from modeling.config import BertConfig

CONFIG = BertConfig(vocab_size=11, hidden_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=6,
                    max_position_embeddings=5, type_vocab_size=3, hidden_act="gelu_erf", layer_norm_eps=1e-7)

# Hugging Face's name and shape; the release's name, and T where the two are transposed. `#` is the layer.
EMBEDDINGS = """
embeddings.word_embeddings.weight 11,4 bert/embeddings/word_embeddings
embeddings.token_type_embeddings.weight 3,4 bert/embeddings/token_type_embeddings
embeddings.position_embeddings.weight 5,4 bert/embeddings/position_embeddings
embeddings.LayerNorm.weight 4 bert/embeddings/LayerNorm/gamma
embeddings.LayerNorm.bias 4 bert/embeddings/LayerNorm/beta
"""
LAYER = """
encoder.layer.#.attention.self.query.weight 4,4 bert/encoder/layer_#/attention/self/query/kernel T
encoder.layer.#.attention.self.query.bias 4 bert/encoder/layer_#/attention/self/query/bias
encoder.layer.#.attention.self.key.weight 4,4 bert/encoder/layer_#/attention/self/key/kernel T
encoder.layer.#.attention.self.key.bias 4 bert/encoder/layer_#/attention/self/key/bias
encoder.layer.#.attention.self.value.weight 4,4 bert/encoder/layer_#/attention/self/value/kernel T
encoder.layer.#.attention.self.value.bias 4 bert/encoder/layer_#/attention/self/value/bias
encoder.layer.#.attention.output.dense.weight 4,4 bert/encoder/layer_#/attention/output/dense/kernel T
encoder.layer.#.attention.output.dense.bias 4 bert/encoder/layer_#/attention/output/dense/bias
encoder.layer.#.attention.output.LayerNorm.weight 4 bert/encoder/layer_#/attention/output/LayerNorm/gamma
encoder.layer.#.attention.output.LayerNorm.bias 4 bert/encoder/layer_#/attention/output/LayerNorm/beta
encoder.layer.#.intermediate.dense.weight 6,4 bert/encoder/layer_#/intermediate/dense/kernel T
encoder.layer.#.intermediate.dense.bias 6 bert/encoder/layer_#/intermediate/dense/bias
encoder.layer.#.output.dense.weight 4,6 bert/encoder/layer_#/output/dense/kernel T
encoder.layer.#.output.dense.bias 4 bert/encoder/layer_#/output/dense/bias
encoder.layer.#.output.LayerNorm.weight 4 bert/encoder/layer_#/output/LayerNorm/gamma
encoder.layer.#.output.LayerNorm.bias 4 bert/encoder/layer_#/output/LayerNorm/beta
"""
POOLER = """
pooler.dense.weight 4,4 bert/pooler/dense/kernel T
pooler.dense.bias 4 bert/pooler/dense/bias
"""
MASKED_LM = """
cls.predictions.transform.dense.weight 4,4 cls/predictions/transform/dense/kernel T
cls.predictions.transform.dense.bias 4 cls/predictions/transform/dense/bias
cls.predictions.transform.LayerNorm.weight 4 cls/predictions/transform/LayerNorm/gamma
cls.predictions.transform.LayerNorm.bias 4 cls/predictions/transform/LayerNorm/beta
cls.predictions.bias 11 cls/predictions/output_bias
"""
NEXT_SENTENCE = """
cls.seq_relationship.weight 2,4 cls/seq_relationship/output_weights
cls.seq_relationship.bias 2 cls/seq_relationship/output_bias
"""
ENCODER = EMBEDDINGS + LAYER.replace("#", "0") + LAYER.replace("#", "1")
HEADS = {
    "BertModel": POOLER,
    "BertForPreTraining": POOLER + MASKED_LM + NEXT_SENTENCE,
    "BertForMaskedLM": MASKED_LM,
    "BertForNextSentencePrediction": POOLER + NEXT_SENTENCE,
    "BertForSequenceClassification": POOLER + "classifier.weight 3,4 output_weights\nclassifier.bias 3 output_bias",
    "BertForTokenClassification":
        "classifier.weight 3,4 cls/ner/output_weights\nclassifier.bias 3 cls/ner/output_bias",
    "BertForMultipleChoice":
        POOLER + "classifier.weight 1,4 cls/choice/output_weights\nclassifier.bias 1 cls/choice/output_bias",
    "BertForQuestionAnswering":
        "qa_outputs.weight 2,4 cls/squad/output_weights\nqa_outputs.bias 2 cls/squad/output_bias",
}
ALL = pytest.mark.parametrize("architecture", HEADS)


def rows_of(architecture):
    """(theirs, shape, ours, transposed) of each tensor of a class."""
    for line in (ENCODER + HEADS[architecture]).split("\n"):
        if line:
            theirs, shape, ours, *transposed = line.split()
            if architecture != "BertModel" and theirs.startswith(("embeddings", "encoder", "pooler")):
                theirs = f"bert.{theirs}"
            yield theirs, tuple(map(int, shape.split(","))), ours, bool(transposed)


def tensors_of(architecture, seed=0):
    """Random tensors of a class by Hugging Face's names."""
    rng = np.random.default_rng(seed)
    return {theirs: rng.standard_normal(shape).astype(np.float32)
            for theirs, shape, _, _ in rows_of(architecture)}


def folder_of(path, tensors, architecture="BertModel", **config):
    """Writes a Hugging Face folder with the library's own writer."""
    path.mkdir(exist_ok=True)
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    (path / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": [architecture], **config}))
    return str(path)


def contents(path):
    with safetensors.safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


def values_of(reader):
    return {name: reader.get(name) for name in reader.names}


def assert_same(left, right):
    assert set(left) == set(right)
    for name, value in left.items():
        assert value.dtype == right[name].dtype
        assert value.tobytes() == right[name].tobytes(), name


@ALL
def test_each_tensor_has_the_releases_name_and_layout(tmp_path, architecture):
    tensors = tensors_of(architecture)
    reader = huggingface.read(folder_of(tmp_path / "in", tensors, architecture))
    assert reader.names == sorted(ours for _, _, ours, _ in rows_of(architecture))
    assert reader.unknown == ()
    for theirs, _, ours, transposed in rows_of(architecture):
        expected = tensors[theirs].T if transposed else tensors[theirs]
        assert reader.shapes[ours] == list(expected.shape)
        np.testing.assert_array_equal(reader.get(ours), expected, strict=True)


@ALL
def test_there_and_back_is_the_same_bit_for_bit(tmp_path, architecture):
    tensors = tensors_of(architecture)
    tensors[next(iter(tensors))][0, :3] = np.nan, -0.0, np.float32(1e-42)
    reader = huggingface.read(folder_of(tmp_path / "in", tensors, architecture))
    # As a dict, through the release's format, and straight from the reader.
    google.write(str(tmp_path / "release"), values_of(reader))
    for number, values in enumerate((values_of(reader), google.read(str(tmp_path / "release")), reader)):
        written = huggingface.write(str(tmp_path / f"out{number}"), values, CONFIG)
        assert (written.architecture, written.left_out) == (architecture, ())
        back, metadata = contents(tmp_path / f"out{number}/model.safetensors")
        assert_same(back, tensors)
        assert metadata == {"format": "pt"}


def test_released_model_comes_back_bit_for_bit(golden, golden_config, tmp_path):
    released = google.read(str(golden / "model/bert_model.ckpt"))
    written = huggingface.write(str(tmp_path), released, golden_config)
    assert written.architecture == "BertForPreTraining"
    assert set(written.left_out) == set(released.names) - set(huggingface.read(str(tmp_path)).names)
    back = values_of(huggingface.read(str(tmp_path)))
    assert len(back) == 62
    assert_same(back, {name: released.get(name) for name in back})
    assert BertConfig.from_json_file(str(tmp_path / "config.json")) == golden_config


def test_prefix_or_none_and_legacy_names_are_the_same_model(tmp_path):
    tensors = tensors_of("BertForPreTraining")
    plain = values_of(huggingface.read(folder_of(tmp_path / "a", tensors)))
    bare = {name.removeprefix("bert."): value for name, value in tensors.items()}
    legacy = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
              for name, value in tensors.items()}
    assert sum("gamma" in name for name in legacy) == 6
    assert_same(values_of(huggingface.read(folder_of(tmp_path / "b", bare))), plain)
    assert_same(values_of(huggingface.read(folder_of(tmp_path / "c", legacy))), plain)


def test_file_without_a_folders_files_is_read(tmp_path):
    save_file(tensors_of("BertForSequenceClassification"), tmp_path / "weights.safetensors")
    assert huggingface.read(str(tmp_path / "weights.safetensors")).shapes["output_weights"] == [3, 4]


def test_configuration_given_tells_whose_classifier_it_is(tmp_path):
    save_file(tensors_of("BertForMultipleChoice"), tmp_path / "x.safetensors")
    reader = huggingface.read(str(tmp_path / "x.safetensors"), {"architectures": ["BertForMultipleChoice"]})
    assert reader.shapes["cls/choice/output_weights"] == [1, 4]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_floats_become_float32(tmp_path, dtype):
    tensors = {name: value.astype(dtype) for name, value in tensors_of("BertModel").items()}
    value = huggingface.read(folder_of(tmp_path / "x", tensors)).get("bert/pooler/dense/bias")
    np.testing.assert_array_equal(value, tensors["pooler.dense.bias"].astype(np.float32), strict=True)


def test_tensors_without_a_counterpart_are_unknown_by_their_own_name(tmp_path):
    extra = {"embeddings.position_ids": np.arange(5)[None], "classifier.dense.weight": np.zeros((2, 2))}
    reader = huggingface.read(folder_of(tmp_path / "x", tensors_of("BertModel") | extra))
    assert reader.unknown == ("classifier.dense.weight", "embeddings.position_ids")
    assert len(reader.names) == 39


def test_tied_copies_are_the_words_own(tmp_path):
    tensors = tensors_of("BertForPreTraining")
    copies = {"cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"],
              "cls.predictions.decoder.bias": tensors["cls.predictions.bias"]}
    reader = huggingface.read(folder_of(tmp_path / "a", tensors | copies))
    assert reader.unknown == ()
    assert_same(values_of(reader), values_of(huggingface.read(folder_of(tmp_path / "b", tensors))))
    bias = (tensors | copies).copy()
    del bias["cls.predictions.bias"]
    reader = huggingface.read(folder_of(tmp_path / "c", bias))
    np.testing.assert_array_equal(reader.get("cls/predictions/output_bias"), tensors["cls.predictions.bias"])


def test_decoder_that_differs_from_the_words_is_refused(tmp_path):
    tensors = tensors_of("BertForPreTraining")
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].copy()
    tensors["cls.predictions.decoder.weight"][10, 3] += 1
    with pytest.raises(BertError, match=r"bert\.embeddings\.word_embeddings\.weight and cls\.predictions\.decoder\.we"):
        huggingface.read(folder_of(tmp_path / "x", tensors))


def test_one_tensor_twice_with_other_values_is_refused(tmp_path):
    tensors = tensors_of("BertModel")
    tensors["embeddings.LayerNorm.gamma"] = tensors["embeddings.LayerNorm.weight"] + 1
    with pytest.raises(BertError, match=r"LayerNorm\.gamma and embeddings\.LayerNorm\.weight differ"):
        huggingface.read(folder_of(tmp_path / "x", tensors))


def sharded(path, tensors, parts=3):
    """Writes a folder in shards with an index; returns the index's values."""
    path.mkdir(exist_ok=True)
    places = {name: f"model-{index % parts + 1:05d}-of-{parts:05d}.safetensors" for index, name in enumerate(tensors)}
    for shard in sorted(set(places.values())):
        save_file({name: value for name, value in tensors.items() if places[name] == shard}, path / shard)
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    return index


def test_shards_are_one_checkpoint(tmp_path):
    tensors = tensors_of("BertForPreTraining")
    sharded(tmp_path / "shards", tensors)
    whole = values_of(huggingface.read(folder_of(tmp_path / "whole", tensors)))
    assert_same(values_of(huggingface.read(str(tmp_path / "shards"))), whole)
    assert_same(values_of(huggingface.read(str(tmp_path / "shards/model.safetensors.index.json"))), whole)


def refusal(path):
    with pytest.raises(BertError) as error:
        huggingface.read(str(path))
    assert "\n" not in str(error.value)
    return str(error.value).replace(str(path), "PATH")


def test_missing_shards_are_counted_and_named(tmp_path):
    sharded(tmp_path, tensors_of("BertModel"))
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    assert refusal(tmp_path) == ("PATH/model.safetensors.index.json: 1 of 3 shards are not there, the first is "
                                 "model-00002-of-00003.safetensors.")


def test_missing_index_is_named(tmp_path):
    sharded(tmp_path, tensors_of("BertModel"))
    (tmp_path / "model.safetensors.index.json").unlink()
    assert refusal(tmp_path) == ("PATH: model-00001-of-00003.safetensors is one of several parts; their index, "
                                 "model.safetensors.index.json, is missing. Copy it too.")


def test_one_shard_alone_is_no_checkpoint(tmp_path):
    sharded(tmp_path, tensors_of("BertModel"))
    assert refusal(tmp_path / "model-00002-of-00003.safetensors") == "PATH: one of 3 parts. Give their folder."


def test_index_with_fewer_shards_than_their_names_say_is_refused(tmp_path):
    index = sharded(tmp_path, tensors_of("BertModel"))
    index["weight_map"] = {name: place for name, place in index["weight_map"].items() if "00003-" not in place}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert refusal(tmp_path).endswith("index.json: names 2 shards, and the shards' names say 3.")


def test_shard_of_another_checkpoint_is_refused(tmp_path):
    index = sharded(tmp_path, tensors_of("BertModel"))
    shard = "model-00002-of-00003.safetensors"
    save_file({name: np.zeros(2, np.float32) for name, place in index["weight_map"].items() if place == shard}
              | {"another": np.zeros(2, np.float32)}, tmp_path / shard)
    assert refusal(tmp_path) == f"PATH/{shard}: holds another, which the index does not name. " \
                                "The shards are of different checkpoints."
    save_file({"x": np.zeros(2, np.float32)}, tmp_path / shard)
    assert refusal(tmp_path).startswith(f"PATH/{shard}: lacks embeddings.LayerNorm.bias, which the index names")


@pytest.mark.parametrize("values", ["[]", "{}", '{"weight_map": {}}', '{"weight_map": {"a": 1}}'])
def test_index_that_names_no_shard_is_refused(tmp_path, values):
    (tmp_path / "model.safetensors.index.json").write_text(values)
    assert refusal(tmp_path) == "PATH/model.safetensors.index.json: names no shard of any tensor (weight_map)."


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
def test_json_that_is_no_object_is_refused(tmp_path, name):
    folder = folder_of(tmp_path, tensors_of("BertModel"))
    (tmp_path / name).write_text("[]")
    with pytest.raises(BertError, match=rf"{name}: not one JSON object"):
        huggingface.read(folder), huggingface.lower_case_of(folder)


def test_pickled_file_beside_safetensors_is_not_looked_at(tmp_path):
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
    assert refusal(tmp_path) == "PATH: no checkpoint there (model.safetensors or bert_model.ckpt.index)."
    save_file({"a": np.zeros(1)}, tmp_path / "other.safetensors")
    assert refusal(tmp_path).endswith("Give the path of other.safetensors itself.")


def test_path_of_nothing_is_refused(tmp_path):
    assert refusal(tmp_path / "nowhere.safetensors") == "PATH: no such file."


@pytest.mark.parametrize("keep", [0, 4, 8, 100, 3000, -1])
def test_truncated_file_is_refused(tmp_path, keep):
    data = save(tensors_of("BertModel"))
    (tmp_path / "model.safetensors").write_bytes(data[:keep])
    assert refusal(tmp_path).startswith("PATH/model.safetensors: not a whole safetensors file")


@pytest.mark.parametrize("data", [b"garbage " * 50, b"\0" * 400, (50).to_bytes(8, "little") + b"{" * 400])
def test_garbage_is_refused(tmp_path, data):
    (tmp_path / "model.safetensors").write_bytes(data)
    assert refusal(tmp_path).startswith("PATH/model.safetensors: not a whole safetensors file")


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


def test_works_on_any_file_system(tmp_path):
    reader = huggingface.read(folder_of(tmp_path, tensors_of("BertModel")))
    huggingface.write("ram://huggingface/x", reader, CONFIG, tokens=["[PAD]", "a"], do_lower_case=False)
    assert_same(values_of(huggingface.read("ram://huggingface/x")), values_of(reader))
    assert huggingface.vocabulary_of("ram://huggingface/x") == ["[PAD]", "a"]
    assert huggingface.lower_case_of("ram://huggingface/x") is False


def release_values(architecture):
    rng = np.random.default_rng(1)
    return {ours: rng.standard_normal(shape[::-1] if transposed else shape).astype(np.float32)
            for _, shape, ours, transposed in rows_of(architecture)}


def test_variables_are_written_as_their_values(tmp_path):
    values = release_values("BertModel")
    huggingface.write(str(tmp_path), {name: tf.Variable(value) for name, value in values.items()}, CONFIG)
    assert_same(values_of(huggingface.read(str(tmp_path))), values)


def test_pooler_slots_and_step_are_left_out_by_name(tmp_path):
    values = release_values("BertForQuestionAnswering") | {
        "bert/pooler/dense/kernel": np.zeros((4, 4), np.float32), "bert/pooler/dense/bias": np.zeros(4, np.float32),
        "bert/embeddings/LayerNorm/beta/adam_m": np.zeros(4, np.float32), "global_step": np.int64(7)}
    written = huggingface.write(str(tmp_path), values, CONFIG)
    assert written == huggingface.Written("BertForQuestionAnswering", (
        "bert/pooler/dense/kernel", "bert/pooler/dense/bias", "bert/embeddings/LayerNorm/beta/adam_m", "global_step"))
    assert not [name for name in contents(tmp_path / "model.safetensors")[0] if "pooler" in name]


def test_tasks_head_comes_before_pre_trainings(tmp_path):
    written = huggingface.write(
        str(tmp_path), release_values("BertForPreTraining") | release_values("BertForSequenceClassification"), CONFIG)
    assert written.architecture == "BertForSequenceClassification"
    assert written.left_out == tuple(name for name in release_values("BertForPreTraining") if name.startswith("cls/"))


def test_model_that_reads_from_left_to_right_is_a_decoder(tmp_path):
    written = huggingface.write(str(tmp_path), release_values("BertForMaskedLM"), CONFIG.replace(causal=True))
    assert written.architecture == "BertLMHeadModel"
    assert BertConfig.from_json_file(str(tmp_path / "config.json")).causal


def test_missing_variable_is_named_and_nothing_is_written(tmp_path):
    values = release_values("BertForPreTraining")
    del values["bert/encoder/layer_1/output/dense/bias"]
    with pytest.raises(BertError, match="BertForPreTraining needs bert/encoder/layer_1/output/dense/bias, which the c"):
        huggingface.write(str(tmp_path / "out"), values, CONFIG)
    assert not (tmp_path / "out").exists()


def test_shape_other_than_the_configurations_is_refused(tmp_path):
    with pytest.raises(BertError, match=r"word_embeddings has the shape \[11, 4\], the configuration says \[12, 4\]"):
        huggingface.write(str(tmp_path / "out"), release_values("BertModel"), CONFIG.replace(vocab_size=12))
    with pytest.raises(BertError, match="has 2 layers, the configuration says 1"):
        huggingface.write(str(tmp_path / "out"), release_values("BertModel"), CONFIG.replace(num_hidden_layers=1))
    assert not (tmp_path / "out").exists()


def test_failed_write_leaves_no_half_file(tmp_path):
    reader = huggingface.read(folder_of(tmp_path / "in", tensors_of("BertModel")))
    with open(tmp_path / "in/model.safetensors", "r+b") as file:
        file.truncate(3000)
    with pytest.raises(BertError, match="cannot be read"):
        huggingface.write(str(tmp_path / "out"), reader, CONFIG)
    assert os.listdir(tmp_path / "out") == []


def test_labels_are_written_and_read_in_order(tmp_path):
    values = release_values("BertForTokenClassification")
    huggingface.write(str(tmp_path / "a"), values, CONFIG, labels=["O", "B-PER", "I-PER"])
    config = json.loads((tmp_path / "a/config.json").read_text())
    assert config["label2id"] == {"O": 0, "B-PER": 1, "I-PER": 2}
    assert huggingface.labels_of(config) == ["O", "B-PER", "I-PER"]
    huggingface.write(str(tmp_path / "b"), values, CONFIG)
    assert huggingface.labels_of(huggingface.config_values(str(tmp_path / "b"))) == ["LABEL_0", "LABEL_1", "LABEL_2"]
    with pytest.raises(BertError, match="cls/ner/output_weights has 3 rows for 2 labels"):
        huggingface.write(str(tmp_path / "c"), values, CONFIG, labels=["O", "B-PER"])


@pytest.mark.parametrize("theirs, ours, back", [
    ("gelu", "gelu_erf", "gelu"), ("gelu_new", "gelu", "gelu_new"), ("gelu_pytorch_tanh", "gelu", "gelu_new"),
    ("gelu_fast", "gelu", "gelu_new"), ("relu", "relu", "relu"),
])
def test_activation_keeps_its_curve(theirs, ours, back):
    config = huggingface.config_from_json({"vocab_size": 9, "hidden_act": theirs})
    assert config.hidden_act == ours
    assert huggingface.config_to_json(config, "BertModel")["hidden_act"] == back


def test_configuration_there_and_back_is_the_same():
    config = CONFIG.replace(causal=True)
    assert huggingface.config_from_json(huggingface.config_to_json(config, "BertModel")) == config
    assert huggingface.config_from_json({"vocab_size": 9}).hidden_act == "gelu_erf"


@pytest.mark.parametrize("key, value, message", [
    ("model_type", "roberta", "config.json: the model is a roberta, not a BERT"),
    ("position_embedding_type", "relative_key", "position_embedding_type is 'relative_key'"),
    ("add_cross_attention", True, "cross_attention"),
    ("hidden_act", "silu", "hidden_act is 'silu'"),
])
def test_configuration_of_no_bert_is_refused(key, value, message):
    with pytest.raises(BertError, match=message):
        huggingface.config_from_json({"vocab_size": 9, key: value})


def test_tokenizer_files_say_how_text_is_read(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "é", "##\u2028"]
    huggingface.write(str(tmp_path), release_values("BertModel"), CONFIG, tokens=tokens, do_lower_case=False)
    assert (tmp_path / "vocab.txt").read_bytes() == "".join(f"{token}\n" for token in tokens).encode()
    assert json.loads((tmp_path / "tokenizer_config.json").read_text()) == {
        "tokenizer_class": "BertTokenizer", "do_lower_case": False, "model_max_length": 5, "unk_token": "[UNK]",
        "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]"}
    assert huggingface.lower_case_of(str(tmp_path)) is False


@pytest.mark.parametrize("normalizer, expected", [
    ({"type": "BertNormalizer", "lowercase": False}, False),
    ({"type": "BertNormalizer", "lowercase": True}, True),
    ({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]}, True),
    ({"type": "NFD"}, None),
    (None, None),
])
def test_casing_is_found_in_tokenizer_json(tmp_path, normalizer, expected):
    assert huggingface.lower_case_of(str(tmp_path)) is None
    (tmp_path / "tokenizer.json").write_text(json.dumps({"normalizer": normalizer}))
    assert huggingface.lower_case_of(str(tmp_path)) is expected


def test_vocabulary_is_found_in_tokenizer_json(tmp_path):
    assert huggingface.vocabulary_of(str(tmp_path)) is None
    tokenizer = {"model": {"type": "WordPiece", "vocab": {"a": 1, "[PAD]": 0, "b": 2}},
                 "added_tokens": [{"content": "[PAD]", "id": 0}, {"content": "<new>", "id": 3}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert huggingface.vocabulary_of(str(tmp_path)) == ["[PAD]", "a", "b", "<new>"]
    (tmp_path / "vocab.txt").write_text("[PAD]\n x \n", newline="\n")
    assert huggingface.vocabulary_of(str(tmp_path)) == ["[PAD]", "x"]


@pytest.mark.parametrize("model, message", [
    ({"type": "BPE", "vocab": {"a": 0}}, "the tokenizer is BPE, not WordPiece"),
    ({"type": "WordPiece", "vocab": {"a": 0, "b": 2}}, "ids of its 2 word pieces are not 0 to 1"),
])
def test_tokenizer_json_that_is_no_vocabulary_is_refused(tmp_path, model, message):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model}))
    with pytest.raises(BertError, match=message):
        huggingface.vocabulary_of(str(tmp_path))

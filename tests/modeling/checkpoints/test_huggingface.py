"""Hugging Face's tensors read and written: every name, shape and bit."""

import os

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from foundation.errors import BertError
from modeling.checkpoints import google, huggingface, huggingface_writer, tokenizer_files
from modeling.config import BertConfig
from tests.modeling.checkpoints.huggingface_example import (
    ALL,
    CONFIG,
    assert_same,
    contents,
    folder_of,
    release_values,
    rows_of,
    sharded,
    tensors_of,
    values_of,
    write,
)


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
def test_round_trip_is_bit_for_bit(tmp_path, architecture):
    tensors = tensors_of(architecture)
    tensors[next(iter(tensors))][0, :3] = np.nan, -0.0, np.float32(1e-42)
    reader = huggingface.read(folder_of(tmp_path / "in", tensors, architecture))
    # As a dict, through the release's format, and straight from the reader.
    google.write(str(tmp_path / "release"), values_of(reader))
    for number, values in enumerate((values_of(reader), google.read(str(tmp_path / "release")), reader)):
        written = write(str(tmp_path / f"out{number}"), values, CONFIG)
        assert (written.architecture, written.left_out) == (architecture, ())
        back, metadata = contents(tmp_path / f"out{number}/model.safetensors")
        assert_same(back, tensors)
        assert metadata == {"format": "pt"}


def test_released_model_comes_back_bit_for_bit(golden, golden_config, tmp_path):
    released = google.read(str(golden / "model/bert_model.ckpt"))
    written = write(str(tmp_path), released, golden_config)
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


def test_given_configuration_decides_whose_classifier_it_is(tmp_path):
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


def test_tied_copies_are_read_as_the_words_embeddings(tmp_path):
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


def test_one_tensor_twice_with_different_values_is_refused(tmp_path):
    tensors = tensors_of("BertModel")
    tensors["embeddings.LayerNorm.gamma"] = tensors["embeddings.LayerNorm.weight"] + 1
    with pytest.raises(BertError, match=r"LayerNorm\.gamma and embeddings\.LayerNorm\.weight differ"):
        huggingface.read(folder_of(tmp_path / "x", tensors))


def test_shards_are_one_checkpoint(tmp_path):
    tensors = tensors_of("BertForPreTraining")
    sharded(tmp_path / "shards", tensors)
    whole = values_of(huggingface.read(folder_of(tmp_path / "whole", tensors)))
    assert_same(values_of(huggingface.read(str(tmp_path / "shards"))), whole)
    assert_same(values_of(huggingface.read(str(tmp_path / "shards/model.safetensors.index.json"))), whole)


def test_works_on_any_file_system(tmp_path):
    reader = huggingface.read(folder_of(tmp_path, tensors_of("BertModel")))
    write("ram://huggingface/x", reader, CONFIG.replace(do_lower_case=False), tokens=["[PAD]", "a"])
    assert_same(values_of(huggingface.read("ram://huggingface/x")), values_of(reader))
    assert tokenizer_files.vocabulary_of("ram://huggingface/x") == ["[PAD]", "a"]
    assert tokenizer_files.lower_case_of("ram://huggingface/x") is False


def test_variables_are_written_as_their_values(tmp_path):
    values = release_values("BertModel")
    write(str(tmp_path), {name: tf.Variable(value) for name, value in values.items()}, CONFIG)
    assert_same(values_of(huggingface.read(str(tmp_path))), values)


def test_pooler_slots_and_step_are_left_out_by_name(tmp_path):
    values = release_values("BertForQuestionAnswering") | {
        "bert/pooler/dense/kernel": np.zeros((4, 4), np.float32), "bert/pooler/dense/bias": np.zeros(4, np.float32),
        "bert/embeddings/LayerNorm/beta/adam_m": np.zeros(4, np.float32), "global_step": np.int64(7)}
    written = write(str(tmp_path), values, CONFIG)
    assert written == huggingface_writer.Written("BertForQuestionAnswering", (
        "bert/pooler/dense/kernel", "bert/pooler/dense/bias", "bert/embeddings/LayerNorm/beta/adam_m", "global_step"))
    assert not [name for name in contents(tmp_path / "model.safetensors")[0] if "pooler" in name]


def test_head_of_a_task_takes_precedence_over_pre_training_heads(tmp_path):
    written = write(
        str(tmp_path), release_values("BertForPreTraining") | release_values("BertForSequenceClassification"), CONFIG)
    assert written.architecture == "BertForSequenceClassification"
    assert written.left_out == tuple(name for name in release_values("BertForPreTraining") if name.startswith("cls/"))


def test_model_that_reads_from_left_to_right_is_a_decoder(tmp_path):
    written = write(str(tmp_path), release_values("BertForMaskedLM"), CONFIG.replace(causal=True))
    assert written.architecture == "BertLMHeadModel"
    assert BertConfig.from_json_file(str(tmp_path / "config.json")).causal


def test_missing_variable_is_named_and_nothing_is_written(tmp_path):
    values = release_values("BertForPreTraining")
    del values["bert/encoder/layer_1/output/dense/bias"]
    with pytest.raises(BertError, match="BertForPreTraining needs bert/encoder/layer_1/output/dense/bias, which the c"):
        write(str(tmp_path / "out"), values, CONFIG)
    assert not (tmp_path / "out").exists()


def test_shape_that_differs_from_the_configuration_is_refused(tmp_path):
    with pytest.raises(BertError, match=r"word_embeddings has the shape \[11, 4\], by the configuration it is \[12"):
        write(str(tmp_path / "out"), release_values("BertModel"), CONFIG.replace(vocab_size=12))
    with pytest.raises(BertError, match="has 2 layers, by the configuration 1"):
        write(str(tmp_path / "out"), release_values("BertModel"), CONFIG.replace(num_hidden_layers=1))
    assert not (tmp_path / "out").exists()


def test_failed_write_leaves_no_half_file(tmp_path):
    reader = huggingface.read(folder_of(tmp_path / "in", tensors_of("BertModel")))
    with open(tmp_path / "in/model.safetensors", "r+b") as file:
        file.truncate(3000)
    with pytest.raises(BertError, match="cannot be read"):
        write(str(tmp_path / "out"), reader, CONFIG)
    assert os.listdir(tmp_path / "out") == []

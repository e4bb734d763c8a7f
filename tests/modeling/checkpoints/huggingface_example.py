"""A small Hugging Face checkpoint of each class: its names, shapes and counterparts, written out by hand."""

import json

import numpy as np
import pytest
import safetensors
from safetensors.numpy import save_file

from modeling.checkpoints import huggingface
from modeling.checkpoints.format import Contents
from modeling.config import BertConfig
from tests.modeling.checkpoints.arrays import ArrayReader

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


def sharded(path, tensors, parts=3):
    """Writes a folder in shards with an index; returns the index's values."""
    path.mkdir(exist_ok=True)
    places = {name: f"model-{index % parts + 1:05d}-of-{parts:05d}.safetensors" for index, name in enumerate(tensors)}
    for shard in sorted(set(places.values())):
        save_file({name: value for name, value in tensors.items() if places[name] == shard}, path / shard)
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    return index


def release_values(architecture):
    rng = np.random.default_rng(1)
    return {ours: rng.standard_normal(shape[::-1] if transposed else shape).astype(np.float32)
            for _, shape, ours, transposed in rows_of(architecture)}


def write(folder, values, config, tokens=None, labels=None):
    """Writes a folder from a dict of arrays or variables, or from a reader."""
    reader = values if hasattr(values, "shapes") else ArrayReader(values)
    return huggingface.write(folder, Contents(reader, config, tokens, labels=labels))

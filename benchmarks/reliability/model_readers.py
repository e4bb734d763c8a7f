"""Readers of records, features, configurations and checkpoints, for `fuzz`."""

import dataclasses
import json
import math
import os
import pathlib
import random
import shutil
import tempfile
from typing import Any

import numpy as np

from benchmarks.reliability import mutations
from benchmarks.reliability.fuzz import Reader
from bert import undescribed
from data_prep import framing, records
from foundation import files, run_files
from foundation.errors import BertError
from inputs.feature_cache import FeatureCache
from inputs.features import Features, splits_of
from modeling.checkpoints import convert, google, hdf5_structure, keras_weights, load
from modeling.checkpoints.format import Contents
from modeling.checkpoints.huggingface import FORMAT as HUGGING_FACE
from modeling.config import BertConfig
from tasks.families import FAMILIES
from tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from training import initial_model
from training.settings import InitialModelSettings

# --- Records ---------------------------------------------------------------------------------------------------------

_SCHEMA = records.PretrainingSchema(max_seq_length=8, max_predictions_per_seq=2, vocab_size=50, type_vocab_size=2)
_RECORDS = "r.tfrecord"


def _make_records(folder: str) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(0, _SCHEMA.limits().get(name, 2), (6, length))
              for name, length in _SCHEMA.lengths().items()}
    _write_records(os.path.join(folder, _RECORDS), records.encode_pretraining(arrays))


def _write_records(path: str, serialized: list[bytes]) -> None:
    import tensorflow as tf

    with tf.io.TFRecordWriter(path) as writer:
        for record in serialized:
            writer.write(record)


def _records_edited(data: bytes, rng: random.Random) -> bytes:
    """A file of records with one record changed, its checksums right; or damaged."""
    if rng.random() < 0.4:
        return mutations.damaged(data, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, _RECORDS)
        pathlib.Path(path).write_bytes(data)
        serialized = list(framing.records(path))
        index = rng.randrange(len(serialized))
        edit = mutations.damaged if rng.random() < 0.3 else _record_edited
        serialized[index] = edit(serialized[index], rng)
        _write_records(path, serialized)
        return pathlib.Path(path).read_bytes()


def _record_edited(serialized: bytes, rng: random.Random) -> bytes:
    import tensorflow as tf

    example = tf.train.Example.FromString(serialized)
    name = rng.choice(sorted(example.features.feature))
    feature = example.features.feature[name]
    values = feature.float_list.value if name == "masked_lm_weights" else feature.int64_list.value
    change = rng.random()
    if change < 0.1:
        del example.features.feature[name]
    elif change < 0.2:
        values.append(0)
    elif change < 0.3:
        values.pop()
    elif change < 0.35:
        feature.bytes_list.value.append(b"\xff\x00")
    elif change < 0.4:
        example.features.feature["a\nnother"].CopyFrom(feature)
    elif name == "masked_lm_weights":
        values[rng.randrange(len(values))] = rng.choice((math.nan, math.inf, -1.0, 1.5, 1e38, -math.inf, 0.5))
    else:
        values[rng.randrange(len(values))] = rng.choice((-1, 1 << 31, (1 << 32) + 5, 50, -(1 << 63), 3, 7, 1))
    return example.SerializeToString()


def _read_records(folder: str) -> None:
    import tensorflow as tf

    from training import input_pipeline

    path = os.path.join(folder, _RECORDS)
    records.check([path], _SCHEMA)
    problem = records.find_problem([path], _SCHEMA)
    source = input_pipeline.RecordSource((path,), _SCHEMA)
    try:
        batches = list(input_pipeline.evaluation_batches(source, 4)(tf.distribute.InputContext()).as_numpy_iterator())
    except input_pipeline.ERRORS:
        assert problem, "the pipeline refuses records that the check accepts"
        raise problem from None
    if problem:
        raise problem
    assert sum(len(batch["input_ids"]) for batch in batches) >= records.count([path])
    for name, limit in _SCHEMA.limits().items():
        assert all(((batch[name] >= 0) & (batch[name] < limit)).all() for batch in batches), name
    assert all(((batch["masked_lm_weights"] >= 0) & (batch["masked_lm_weights"] <= 1)).all() for batch in batches)


# --- Features --------------------------------------------------------------------------------------------------------

_KEY = "0123456789abcdef"
_FEATURES = Features({"input_ids": np.arange(9, dtype=np.int32), "segment_ids": np.zeros(9, np.int32)},
                     splits_of([2, 3, 4]), {"label_ids": np.array([0, 1, 2], np.int32)})


def _make_features(folder: str) -> None:
    FeatureCache(folder).get("train", _KEY, lambda: _FEATURES)


def _read_features(folder: str) -> None:
    found = FeatureCache(folder).get("train", _KEY, lambda: _FEATURES)
    assert len(found) == 3, len(found)
    assert found.lengths.shape == (3,)
    assert set(found.tokens) == set(_FEATURES.tokens), set(found.tokens)
    assert set(found.values) == set(_FEATURES.values), set(found.values)
    for mine, right in ((found.tokens, _FEATURES.tokens), (found.values, _FEATURES.values)):
        for name, array in right.items():
            assert mine[name].shape == array.shape, name
            assert mine[name].dtype == array.dtype, name


# --- Configurations and checkpoints ----------------------------------------------------------------------------------

_CONFIG = {
    "vocab_size": 8, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 6,
    "hidden_act": "gelu", "max_position_embeddings": 5, "type_vocab_size": 2, "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02}
_HUGGING_FACE = {
    **_CONFIG, "model_type": "bert", "architectures": ["BertForSequenceClassification"], "layer_norm_eps": 1e-12,
    "position_embedding_type": "absolute", "id2label": {"0": "no", "1": "yes"}, "is_decoder": False,
    "add_cross_attention": False, "transformers_version": "5.0.0", "pad_token_id": 0}
_TASK = {"labels": ["no", "yes"], "task_name": "custom", "max_seq_length": 5}
_TOKENS = [*SPECIAL_TOKENS, "the", "cat", "##s"]


def _read_config(path: str) -> None:
    config = BertConfig.from_json_file(path)
    raw = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        assert not isinstance(value, float) or math.isfinite(value)
        if field.name in raw and field.name not in ("hidden_act", "causal"):
            assert value == raw[field.name] or math.isclose(value, raw[field.name]), field.name
    assert BertConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def _config_reader(name: str, values: dict[str, Any]) -> Reader:
    return Reader(name, lambda folder: files.write_json(os.path.join(folder, "config.json"), values),
                  {"config.json": mutations.json_edited}, lambda folder: _read_config(
                      os.path.join(folder, "config.json")))


class _Weights:
    """The weights of a tiny classifier; see `modeling.checkpoints.format.CheckpointReader`."""

    unknown: tuple[str, ...] = ()

    def __init__(self) -> None:
        hidden, wide = _CONFIG["hidden_size"], _CONFIG["intermediate_size"]
        layer = "bert/encoder/layer_0"
        shapes = {f"bert/embeddings/{name}_embeddings": [rows, hidden]
                  for name, rows in (("word", 8), ("token_type", 2), ("position", 5))}
        dense = {f"{layer}/attention/{part}": (hidden, hidden)
                 for part in ("self/query", "self/key", "self/value", "output/dense")}
        dense |= {f"{layer}/intermediate/dense": (hidden, wide), f"{layer}/output/dense": (wide, hidden),
                  "bert/pooler/dense": (hidden, hidden)}
        for name, shape in dense.items():
            shapes |= {f"{name}/kernel": list(shape), f"{name}/bias": [shape[1]]}
        for name in ("bert/embeddings", f"{layer}/attention/output", f"{layer}/output"):
            shapes |= {f"{name}/LayerNorm/beta": [hidden], f"{name}/LayerNorm/gamma": [hidden]}
        self.shapes = {**shapes, "output_weights": [2, hidden], "output_bias": [2]}

    @property
    def names(self) -> list[str]:
        return sorted(self.shapes)

    def get(self, name: str) -> np.ndarray:
        """Values that follow from the name."""
        return np.random.default_rng(len(name)).normal(size=self.shapes[name]).astype(np.float32)


def _contents() -> Contents:
    return Contents(_Weights(), BertConfig.from_dict(_CONFIG), _TOKENS, _TASK, ["no", "yes"])


def _write_shards(folder: str) -> None:
    """A Hugging Face folder of two shards."""
    from safetensors import numpy as safetensors

    HUGGING_FACE.write(folder, _contents())
    whole = os.path.join(folder, "model.safetensors")
    tensors = safetensors.load_file(whole)
    os.remove(whole)
    weight_map = {name: f"model-{1 + index % 2:05d}-of-00002.safetensors" for index, name in enumerate(tensors)}
    for shard in sorted(set(weight_map.values())):
        safetensors.save_file({name: tensor for name, tensor in tensors.items() if weight_map[name] == shard},
                              os.path.join(folder, shard))
    files.write_json(os.path.join(folder, "model.safetensors.index.json"), {
        "metadata": {"total_size": 1}, "weight_map": weight_map})


def _tokenizer_json(folder: str) -> None:
    HUGGING_FACE.write(folder, _contents())
    os.remove(os.path.join(folder, "vocab.txt"))
    files.write_json(os.path.join(folder, "tokenizer.json"), {
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]},
        "added_tokens": [{"id": 0, "content": "[PAD]"}],
        "model": {"type": "WordPiece", "vocab": {token: index for index, token in enumerate(_TOKENS)}}})


def _read_checkpoint(exact: bool):
    """Reads a folder: all tensors, and all files next to them; `exact` where the format has checksums."""

    def read(folder: str) -> None:
        checkpoint = load.find(folder)
        config, labels = checkpoint.config(), checkpoint.labels()
        assert labels is None or all(isinstance(label, str) for label in labels)
        assert checkpoint.lower_case() in (True, False, None)
        if checkpoint.vocab_file:
            Vocabulary.from_file(checkpoint.vocab_file)
        weights, reader = _Weights(), checkpoint.reader
        load.check_config(checkpoint, config)
        for name in reader.names:
            value = reader.get(name)
            assert list(value.shape) == list(reader.shapes[name]), name
            if exact:
                assert np.array_equal(value, weights.get(name)), name
        targets = {name: _Variable(shape) for name, shape in weights.shapes.items()}
        load.load_into(targets, checkpoint)

    return read


def _read_keras(folder: str) -> None:
    hdf5_structure._SECONDS = 10  # within the time of an input
    _read_checkpoint(exact=False)(folder)


def _read_undescribed(folder: str) -> None:
    """What the head of a folder without a task.json tells."""
    found = undescribed.settings_of(initial_model.find(InitialModelSettings(init_checkpoint=folder)))
    if found:
        name, settings = found
        FAMILIES[name].task(FAMILIES[name].settings(**settings))


def _convert(folder: str) -> None:
    """A conversion succeeds, and what it wrote is read, or leaves nothing."""
    target = folder + ".converted"
    shutil.rmtree(target, ignore_errors=True)
    try:
        convert.convert(folder, target, "keras")
    except BertError:
        assert not os.path.exists(target)
        raise
    checkpoint = load.find(target)
    checkpoint.config(), checkpoint.labels(), checkpoint.reader


class _Variable:
    """As much of a Keras variable as `load_into` uses."""

    def __init__(self, shape: list[int]) -> None:
        self.shape = shape

    def assign(self, value: np.ndarray) -> None:
        """Accepts values of its shape that a float32 variable takes."""
        assert list(value.shape) == self.shape
        np.asarray(value, np.float32)


_SIDE_FILES = {"vocab.txt": mutations.edited, run_files.CONFIG: mutations.json_edited,
               run_files.TASK: mutations.json_edited}

READERS = (
    Reader("records", _make_records, {_RECORDS: _records_edited}, _read_records),
    Reader("features", _make_features, {f"train-{_KEY}.npz": mutations.archive_edited}, _read_features),
    _config_reader("config_release", _CONFIG),
    _config_reader("config_huggingface", _HUGGING_FACE),
    Reader("google", lambda folder: google.FORMAT.write(folder, _contents()), {
        f"{run_files.RELEASED_CHECKPOINT}.index": mutations.damaged,
        f"{run_files.RELEASED_CHECKPOINT}.data-00000-of-00001": mutations.damaged}, _read_checkpoint(exact=True)),
    Reader("google_folder", lambda folder: google.FORMAT.write(folder, _contents()), _SIDE_FILES,
           _read_checkpoint(exact=True)),
    Reader("keras", lambda folder: keras_weights.FORMAT.write(folder, _contents()),
           {keras_weights.FILE_NAME: mutations.damaged}, _read_keras),
    Reader("safetensors", lambda folder: HUGGING_FACE.write(folder, _contents()),
           {"model.safetensors": mutations.header_edited}, _read_checkpoint(exact=False)),
    Reader("safetensors_shards", _write_shards, {
        "model.safetensors.index.json": mutations.json_edited,
        "model-00001-of-00002.safetensors": mutations.header_edited}, _read_checkpoint(exact=False)),
    Reader("huggingface_folder", _tokenizer_json, {
        "config.json": mutations.json_edited, "tokenizer.json": mutations.json_edited,
        "tokenizer_config.json": mutations.json_edited}, _read_checkpoint(exact=False)),
    Reader("undescribed", _tokenizer_json, {
        "config.json": mutations.json_edited, "model.safetensors": mutations.header_edited}, _read_undescribed),
    Reader("conversions", _tokenizer_json, {
        "config.json": mutations.json_edited, "tokenizer.json": mutations.json_edited,
        "model.safetensors": mutations.header_edited}, _convert),
)


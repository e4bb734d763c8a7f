"""Shared fixtures: where the recorded outputs of the original are, a tiny configuration, tiny records."""

import contextlib
import json
import os
import pathlib
import tempfile

# Each pytest-xdist worker is a process of its own; one thread an operation keeps two workers from fighting over two
# cores. Operations of two replicas that wait for each other need threads of their own, so their number stays.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

import numpy as np
import pytest

GOLDEN = pathlib.Path(__file__).parent / "golden"
REPOSITORY = pathlib.Path(__file__).parent.parent

TINY_CONFIG = {
    "vocab_size": 100, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 32, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}


@pytest.fixture(scope="session")
def golden():
    """Folder of recorded outputs of the original release (its README says how each was made)."""
    return GOLDEN


@pytest.fixture(scope="session")
def repository():
    """The root of the tree, where the scripts are."""
    return REPOSITORY


@pytest.fixture
def tiny_config(tmp_path):
    """Path of a configuration small enough to train in a test; without dropout."""
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps(TINY_CONFIG))
    return path


def tiny_arrays(rows=64, seq=16, predictions=3, vocab_size=100, seed=0):
    """Arrays of pre-training records with something to learn: low ids are far more frequent than high ones."""
    rng = np.random.default_rng(seed)
    ids = (5 + rng.random((rows, seq)) ** 4 * (vocab_size - 5)).astype(np.int64)
    lengths = np.where(rng.random(rows) < 0.7, seq, rng.integers(6, seq + 1, rows))
    mask = (np.arange(seq) < lengths[:, None]).astype(np.int64)
    keys = rng.random((rows, seq)) + 2 * (1 - mask)
    weights = (np.arange(predictions) < np.maximum(1, lengths * 15 // 100)[:, None]).astype(np.int64)
    positions = np.sort(np.argsort(keys, axis=1)[:, :predictions], axis=1) * weights
    ids = ids * mask
    labels = np.take_along_axis(ids, positions, axis=1) * weights
    return {
        "input_ids": ids, "input_mask": mask, "segment_ids": (np.arange(seq) >= seq // 2) * mask,
        "masked_lm_positions": positions, "masked_lm_ids": labels,
        "masked_lm_weights": weights.astype(np.float32), "next_sentence_labels": rng.integers(0, 2, (rows, 1)),
    }


def write_records(path, arrays):
    """Writes arrays as pre-training records."""
    import tensorflow as tf

    from data_prep import records

    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records.encode_pretraining(arrays):
            writer.write(record)
    return path


@pytest.fixture
def tiny_records(tmp_path):
    """Path of 64 records, 16 positions, 3 predictions, vocabulary 100."""
    return write_records(tmp_path / "tiny.tfrecord", tiny_arrays())


WORDS = [f"w{number}" for number in range(90)]


@contextlib.contextmanager
def temporary_files_in(folder):
    """Has this process write its temporary files, such as those of AutoGraph, to a new folder."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        yield


@pytest.fixture(scope="session")
def tiny_release(tmp_path_factory):
    """Folder laid out as a release: a tiny model of random weights, a vocabulary of w0 to w89."""
    from modeling.checkpoints import google
    from modeling.config import BertConfig
    from modeling.models import PretrainingModel, named_variables

    folder = tmp_path_factory.mktemp("release")
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    config = BertConfig.from_dict({**TINY_CONFIG, "initializer_range": 0.2})
    config.to_json_file(str(folder / "bert_config.json"))
    values = {name: variable.numpy() for name, variable in named_variables(PretrainingModel(config)).items()}
    google.write(str(folder / "bert_model.ckpt"), values)
    return folder

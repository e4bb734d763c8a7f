"""The recorded model of the original, loaded into a model of this project."""

import numpy as np
import pytest
import tensorflow as tf

from modeling.checkpoints import load
from modeling.config import BertConfig
from modeling.models import PretrainingModel


@pytest.fixture(scope="session")
def golden_config(golden):
    return BertConfig.from_json_file(str(golden / "model/bert_config.json"))


@pytest.fixture(scope="session")
def golden_features(golden):
    recorded = np.load(golden / "model/golden_forward.npz")
    return {name[3:]: tf.constant(recorded[name]) for name in recorded.files if name.startswith("in/")}


@pytest.fixture(scope="session")
def load_golden(golden, golden_config):
    """Makes a model with the recorded weights; keyword arguments are PretrainingModel's, `config` included."""

    def make(config=None, **arguments):
        model = PretrainingModel(config or golden_config, **arguments)
        load.load_into(model, str(golden / "model/bert_model.ckpt"))
        return model

    return make

"""The pre-training objective against the recorded original and against its definition."""

import numpy as np
import pytest
import tensorflow as tf

from modeling import objective
from modeling.losses import cross_entropy


@pytest.fixture(scope="module")
def recorded(golden):
    return np.load(golden / "model/golden_forward.npz")


@pytest.fixture(scope="module")
def outputs(recorded):
    return {
        "masked_lm_logits": tf.reshape(recorded["out/masked_lm_logits"], [4, 6, -1]),
        "next_sentence_logits": tf.constant(recorded["out/next_sentence_logits"]),
    }


def rows(values, part):
    return {name: value[part] for name, value in values.items()}


def test_losses_are_the_release_s(outputs, golden_features, recorded):
    masked = cross_entropy(outputs["masked_lm_logits"], golden_features["masked_lm_ids"])
    np.testing.assert_allclose(tf.reshape(masked, [-1]), recorded["out/masked_lm_example_loss"], rtol=1e-5)
    following = cross_entropy(outputs["next_sentence_logits"], golden_features["next_sentence_labels"][:, 0])
    np.testing.assert_allclose(following, recorded["out/next_sentence_example_loss"], rtol=1e-5)
    sums = objective.pretraining_sums(outputs, golden_features)
    np.testing.assert_allclose(objective.total_loss(sums), recorded["out/total_loss"], rtol=1e-5)


def test_counts_equal_numpy_s(outputs, golden_features, recorded):
    sums = objective.pretraining_sums(outputs, golden_features)
    weights = golden_features["masked_lm_weights"].numpy()
    right = outputs["masked_lm_logits"].numpy().argmax(-1) == golden_features["masked_lm_ids"].numpy()
    assert float(sums["masked_lm_correct"]) == (right * weights).sum()
    assert float(sums["masked_lm_weight"]) == weights.sum() == 15
    labels = golden_features["next_sentence_labels"].numpy()[:, 0]
    assert float(sums["next_sentence_correct"]) == (recorded["out/next_sentence_logits"].argmax(-1) == labels).sum()
    assert float(sums["examples"]) == 4


def test_losses_of_parts_add_up_to_the_whole_batch_s(outputs, golden_features):
    whole = objective.pretraining_sums(outputs, golden_features)
    parts = [
        objective.pretraining_sums(rows(outputs, part), rows(golden_features, part))
        for part in (slice(0, 1), slice(1, 4))
    ]
    losses = [objective.total_loss(part, whole["masked_lm_weight"], whole["examples"]) for part in parts]
    np.testing.assert_allclose(sum(losses), objective.total_loss(whole), rtol=1e-5)


def test_row_without_tokens_does_not_count(outputs, golden_features):
    three, four = rows(golden_features, slice(0, 3)), dict(golden_features)
    keep = tf.constant([1, 1, 1, 0])[:, None]
    four["input_mask"] *= keep
    four["masked_lm_weights"] *= tf.cast(keep, tf.float32)
    expected = objective.pretraining_sums(rows(outputs, slice(0, 3)), three)
    for name, value in objective.pretraining_sums(outputs, four).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5, err_msg=name)


def test_batch_without_predictions_has_a_finite_loss(outputs, golden_features):
    features = {**golden_features, "masked_lm_weights": tf.zeros([4, 6])}
    sums = objective.pretraining_sums(outputs, features)
    np.testing.assert_allclose(objective.total_loss(sums), sums["next_sentence_loss"] / 4, rtol=1e-6)

import numpy as np
import pytest
import tensorflow as tf

from modeling import objective


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
    masked = objective.masked_lm_losses(outputs["masked_lm_logits"], golden_features["masked_lm_ids"])
    np.testing.assert_allclose(tf.reshape(masked, [-1]), recorded["out/masked_lm_example_loss"], rtol=1e-5)
    following = objective.next_sentence_losses(outputs["next_sentence_logits"], golden_features["next_sentence_labels"])
    np.testing.assert_allclose(following, recorded["out/next_sentence_example_loss"], rtol=1e-5)
    sums = objective.pretraining_sums(outputs, golden_features)
    np.testing.assert_allclose(objective.total_loss(sums), recorded["out/total_loss"], rtol=1e-5)


def test_loss_and_gradient_are_tensorflow_s_even_where_a_probability_underflows():
    logits = tf.Variable([[[3.0, -1.0, 0.5], [0.0, -250.0, 1.0], [1e4, 0.0, -1e4], [2.0, 2.0, 2.0]]])
    ids, weights = tf.constant([[0, 1, 2, 1]]), tf.constant([[1.0, 0.5, 2.0, 0.0]])
    results = []
    for losses_of in (
        objective.masked_lm_losses,
        lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
    ):
        with tf.GradientTape() as tape:
            losses = losses_of(logits, ids)
            loss = tf.reduce_sum(weights * losses)
        results.append((losses.numpy(), tape.gradient(loss, logits).numpy()))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-6, atol=1e-6)


def test_counts_are_those_of_numpy(outputs, golden_features, recorded):
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

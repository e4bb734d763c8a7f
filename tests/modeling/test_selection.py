"""The last layer at some positions gives the vectors, and the gradients, that it gives there among all positions."""

import numpy as np
import pytest
import tensorflow as tf

from modeling import objective
from modeling.config import BertConfig
from modeling.encoder import BertEncoder
from modeling.models import PretrainingModel
from modeling.unpadding import Selection, layout_of

TINY = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                  max_position_embeddings=8, initializer_range=0.3)
MASK = np.array([[1] * 8, [1] * 5 + [0] * 3, [0] * 8])
# Out of order and repeated, as the unused slots of a record are; the last row only completes a batch, and its vectors
# mean nothing.
POSITIONS = np.array([[6, 2, 0], [4, 4, 0], [0, 0, 0]])
PARTS = np.array([[1, 1, 1, 2, 2, 2, 3, 0], [1, 1, 1, 1, 1, 0, 0, 0], [0] * 8])
PART_STARTS = np.array([[0, 3, 6], [0, 0, 0], [0, 0, 0]])


def encoder(unpad=False, **changes):
    model = BertEncoder(TINY.replace(**changes), unpad=unpad)
    for number, variable in enumerate(model.trainable_weights):
        variable.assign(np.random.default_rng(number).normal(0.0, 0.3, variable.shape))
    return model


def outputs_and_gradients(model, features, positions, at):
    """Vectors at `positions` and pooled, read by `at` from the encoder's outputs, and gradients of a sum over them."""
    with tf.GradientTape() as tape:
        vectors, pooled = at(model(**features, positions=positions))
        mixed = tf.reduce_sum(vectors * tf.range(1.0, 17.0)) + tf.reduce_sum(pooled**2)
    gradients = tape.gradient(mixed, model.trainable_weights)
    return vectors, pooled, [tf.convert_to_tensor(each) for each in gradients]


@pytest.mark.parametrize("unpad, causal, packed", [
    (False, False, False), (True, False, False), (True, True, False), (False, True, False), (False, False, True),
    (False, True, True)])
def test_selected_vectors_are_those_of_the_whole_row(unpad, causal, packed):
    model = encoder(unpad, causal=causal)
    ids = np.random.default_rng(0).integers(1, 50, MASK.shape)
    features = {"input_ids": tf.constant(ids), "input_mask": tf.constant(PARTS if packed else MASK)}
    if packed:
        features["part_starts"] = tf.constant(PART_STARTS)
    positions = tf.constant(POSITIONS)

    def selected(outputs):
        return outputs["sequence_output"][:2], outputs["pooled_output"][:2]

    def gathered(outputs):
        return tf.gather(outputs["sequence_output"], positions, batch_dims=1)[:2], outputs["pooled_output"][:2]

    expected = outputs_and_gradients(model, features, None, gathered)
    found = outputs_and_gradients(model, features, positions, selected)
    for one, other in zip(tf.nest.flatten(expected), tf.nest.flatten(found)):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_no_positions_leave_the_pooled_vectors():
    model, ids = encoder(), tf.constant(np.random.default_rng(0).integers(1, 50, (2, 8)))
    outputs = model(ids, positions=ids[:, :0])
    assert outputs["sequence_output"].shape == (2, 0, 16)
    np.testing.assert_allclose(outputs["pooled_output"], model(ids)["pooled_output"], rtol=1e-5, atol=1e-6)


def test_a_model_without_layers_selects_embeddings():
    model, ids = encoder(num_hidden_layers=0), tf.constant([[5, 6, 7]])
    np.testing.assert_allclose(model(ids, positions=tf.constant([[2]]))["sequence_output"],
                               model(ids)["sequence_output"][:, 2:], rtol=1e-6)


@pytest.mark.parametrize("unpad", [False, True])
def test_a_selection_of_a_batch_without_tokens_is_zero(unpad):
    layout = layout_of(tf.zeros((2, 4), tf.int32), unpad)
    taken = Selection(layout, tf.constant([[0, 3], [1, 1]])).take(layout.flatten(tf.zeros((2, 4, 3))))
    np.testing.assert_array_equal(taken, np.zeros((4, 3)))


def test_the_last_layer_computes_the_selected_positions_alone():
    """The products of the last feed-forward half have as many rows as there are positions."""
    model = encoder()
    ids = tf.zeros((4, 8), tf.int32)
    graph = tf.function(lambda: model(ids, positions=ids[:, :1])["sequence_output"]).get_concrete_function().graph
    rows = {op.name: op.outputs[0].shape[0] for op in graph.get_operations()
            if op.type == "MatMul" and "/intermediate" in op.name}
    assert sorted(rows.values()) == [4 * 2, 4 * 8]


@pytest.mark.parametrize("used", [(2, 1), (0, 3), (0, 0)])
def test_empty_prediction_slots_are_not_computed_and_change_nothing(used):
    padded, unpadded = (PretrainingModel(TINY, unpad=unpad) for unpad in (False, True))
    for number, variables in enumerate(zip(padded.trainable_weights, unpadded.trainable_weights)):
        for variable in variables:
            variable.assign(np.random.default_rng(number).normal(0.0, 0.3, variable.shape))
    rng = np.random.default_rng(0)
    features = {
        "input_ids": tf.constant(rng.integers(1, 50, (2, 8))), "input_mask": tf.constant(MASK[:2]),
        "segment_ids": tf.zeros((2, 8), tf.int32), "masked_lm_positions": tf.constant(rng.integers(1, 5, (2, 3))),
        "masked_lm_ids": tf.constant(rng.integers(1, 50, (2, 3))), "next_sentence_labels": tf.constant([[0], [1]]),
        "masked_lm_weights": tf.cast(np.arange(3) < np.array(used)[:, None], tf.float32)}
    sums, gradients = [], []
    for model in (padded, unpadded):
        with tf.GradientTape() as tape:
            outputs = model(features, words_only=model is unpadded)
            sums.append(objective.pretraining_sums(outputs, features))
            loss = objective.total_loss(sums[-1])
        gradients.append([tf.convert_to_tensor(each) for each in tape.gradient(loss, model.trainable_weights)])
    assert outputs["masked_lm_logits"].shape == (sum(used), 50)
    for name, expected in sums[0].items():
        np.testing.assert_allclose(sums[1][name], expected, rtol=1e-5, atol=1e-6, err_msg=name)
    for one, other in zip(*gradients):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)

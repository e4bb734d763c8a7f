"""Several sequences in a row give each the outputs, losses and gradients that it has in a row of its own."""

import numpy as np
import pytest
import tensorflow as tf

from modeling import objective
from modeling.config import BertConfig
from modeling.models import PretrainingModel

TINY = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                  max_position_embeddings=12, initializer_range=0.3, hidden_dropout_prob=0.0,
                  attention_probs_dropout_prob=0.0)
LENGTHS = (12, 5, 4, 3, 7, 4)
# Sequences of each row; the last row has a part less, and both have padding.
ROWS = ((0, 1, 2), (4, 3, 5))
PREDICTIONS = 2


def unpacked(seed=0):
    """Each of LENGTHS in a row of its own, as records hold them."""
    rng = np.random.default_rng(seed)
    mask = np.arange(12) < np.array(LENGTHS)[:, None]
    positions = np.sort(np.stack([rng.choice(length, PREDICTIONS, replace=False) for length in LENGTHS]), axis=1)
    return {"input_ids": rng.integers(0, 50, mask.shape) * mask, "input_mask": mask.astype(int),
            "segment_ids": rng.integers(0, 2, mask.shape) * mask, "masked_lm_positions": positions,
            "masked_lm_ids": rng.integers(0, 50, positions.shape), "masked_lm_weights": np.ones(positions.shape),
            "next_sentence_labels": rng.integers(0, 2, (len(LENGTHS), 1))}


def packed(arrays, rows=ROWS, seq=22, parts=4, predictions=8):
    """The same sequences in packed rows, built one by one."""
    out = {name: np.zeros((len(rows), seq), int) for name in ("input_ids", "input_mask", "segment_ids")}
    out |= {name: np.zeros((len(rows), predictions), int) for name in ("masked_lm_positions", "masked_lm_ids")}
    out["masked_lm_weights"] = np.zeros((len(rows), predictions))
    out |= {name: np.zeros((len(rows), parts), int) for name in ("part_starts", "next_sentence_labels")}
    for row, members in enumerate(rows):
        start = 0
        for number, each in enumerate(members):
            end, slots = start + LENGTHS[each], slice(number * PREDICTIONS, (number + 1) * PREDICTIONS)
            for name in ("input_ids", "segment_ids"):
                out[name][row, start:end] = arrays[name][each, : LENGTHS[each]]
            out["input_mask"][row, start:end] = number + 1
            out["part_starts"][row, number] = start
            out["masked_lm_positions"][row, slots] = arrays["masked_lm_positions"][each] + start
            out["masked_lm_ids"][row, slots] = arrays["masked_lm_ids"][each]
            out["masked_lm_weights"][row, slots] = 1
            out["next_sentence_labels"][row, number] = arrays["next_sentence_labels"][each, 0]
            start = end
    return out


def tensors(arrays):
    return {name: tf.constant(value, tf.float32 if name == "masked_lm_weights" else tf.int32)
            for name, value in arrays.items()}


def loss_and_gradients(model, features):
    with tf.GradientTape() as tape:
        sums = objective.pretraining_sums(model(features), features)
        loss = objective.total_loss(sums)
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_weights])
    return sums, loss, [tf.convert_to_tensor(gradient) for gradient in gradients]


@pytest.mark.parametrize("unpad", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_losses_and_gradients_are_those_of_rows_of_their_own(causal, unpad):
    model = PretrainingModel(TINY.replace(causal=causal), unpad=unpad, dtype="float32")
    arrays = unpacked()
    sums, loss, gradients = loss_and_gradients(model, tensors(arrays))
    packed_sums, packed_loss, packed_gradients = loss_and_gradients(model, tensors(packed(arrays)))
    assert float(packed_sums["examples"]) == len(LENGTHS)
    for name, value in sums.items():
        np.testing.assert_allclose(packed_sums[name], value, rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(packed_loss, loss, rtol=1e-5)
    for variable, gradient, expected in zip(model.trainable_weights, packed_gradients, gradients):
        np.testing.assert_allclose(gradient, expected, atol=1e-5, err_msg=variable.path)


def test_each_part_has_the_vectors_of_a_row_of_its_own():
    model = PretrainingModel(TINY, dtype="float32")
    arrays = unpacked()
    alone, together = (model.bert(each["input_ids"], each["input_mask"], each["segment_ids"],
                                  part_starts=each.get("part_starts"))
                       for each in (tensors(arrays), tensors(packed(arrays))))
    pooled = tf.reshape(together["pooled_output"], [2, 4, -1])
    for row, members in enumerate(ROWS):
        start = 0
        for number, each in enumerate(members):
            end = start + LENGTHS[each]
            np.testing.assert_allclose(together["sequence_output"][row, start:end],
                                       alone["sequence_output"][each, : LENGTHS[each]], atol=1e-5)
            np.testing.assert_allclose(pooled[row, number], alone["pooled_output"][each], atol=1e-5)
            start = end


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_no_part_sees_another_also_with_dropout(dtype):
    model = PretrainingModel(TINY.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1), dtype=dtype)
    arrays = packed(unpacked())
    other = {**arrays, "input_ids": np.where(arrays["input_mask"] == 2, 49 - arrays["input_ids"], arrays["input_ids"])}
    seed = tf.constant([1, 2])
    one, two = (model.bert(each["input_ids"], each["input_mask"], each["segment_ids"], dropout_seed=seed,
                           part_starts=each["part_starts"])["sequence_output"].numpy()
                for each in (tensors(arrays), tensors(other)))
    changed = (one != two).any(axis=-1)
    assert not changed[arrays["input_mask"] != 2].any()
    assert changed[arrays["input_mask"] == 2].all()


def test_dropout_in_packed_rows_keeps_the_mean_of_the_loss():
    """Over many masks, the mean loss of the same sequences with dropout is the same packed and unpacked."""
    model = PretrainingModel(TINY.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1,
                                          initializer_range=0.1), dtype="float32")
    arrays = unpacked()

    @tf.function
    def losses(features):
        return tf.map_fn(
            lambda seed: objective.total_loss(objective.pretraining_sums(model(features, dropout_seed=seed), features)),
            tf.random.stateless_uniform([400, 2], [3, 4], 0, 1 << 30, tf.int32), fn_output_signature=tf.float32)

    one, two = losses(tensors(arrays)).numpy(), losses(tensors(packed(arrays))).numpy()
    error = np.hypot(one.std(), two.std()) / np.sqrt(len(one))
    assert abs(one.mean() - two.mean()) < 4 * error
    assert 0.5 < one.std() / two.std() < 2

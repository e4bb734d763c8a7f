"""The whole model against the recorded original: names, outputs of every layer and head, gradients."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from modeling import objective
from modeling.config import BertConfig
from modeling.models import PretrainingModel, named_variables

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
TINY = BertConfig(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
)


def features(batch=3, seq=12, lengths=(12, 7, 3), seed=0):
    draw = np.random.default_rng(seed)
    return {
        "input_ids": tf.constant(draw.integers(0, TINY.vocab_size, (batch, seq)), tf.int32),
        "input_mask": tf.constant(np.arange(seq) < np.array(lengths)[:, None], tf.int32),
        "segment_ids": tf.constant(draw.integers(0, 2, (batch, seq)), tf.int32),
        "masked_lm_positions": tf.constant([[1, 2, 0]] * batch, tf.int32),
    }


@pytest.fixture(scope="module", params=[False, True], ids=["padded", "unpadded"])
def unpad(request):
    return request.param


@pytest.fixture(scope="module")
def recorded(golden):
    return np.load(golden / "model/golden_forward.npz")


def test_variables_have_the_names_and_shapes_of_the_release(golden, golden_config):
    listed = json.loads((golden / "model/all_variable_names_with_slots.json").read_text())
    names = {name.removesuffix(":0") for name in listed if "adam_" not in name and "global_step" not in name}
    variables = named_variables(PretrainingModel(golden_config))
    assert set(variables) == names
    reader = tf.train.load_checkpoint(str(golden / "model/bert_model.ckpt"))
    assert all(tuple(variables[name].shape) == reader.get_tensor(name).shape for name in names)


def test_outputs_of_every_layer_and_head_are_the_release_s(load_golden, golden_features, recorded, unpad):
    model = load_golden(dtype="float32", unpad=unpad)
    encoded = model.bert(*(golden_features[name] for name in ("input_ids", "input_mask", "segment_ids")))
    real = golden_features["input_mask"].numpy().astype(bool) if unpad else slice(None)
    for index, layer in enumerate(encoded["layer_outputs"]):
        np.testing.assert_allclose(layer.numpy()[real], recorded[f"out/encoder_layer_{index}"][real], **CLOSE)
    for name in ("embedding_output", "sequence_output"):
        np.testing.assert_allclose(encoded[name].numpy()[real], recorded[f"out/{name}"][real], **CLOSE)
    np.testing.assert_allclose(encoded["pooled_output"], recorded["out/pooled_output"], **CLOSE)
    outputs = model(golden_features)
    logits = tf.reshape(outputs["masked_lm_logits"], [-1, model.config.vocab_size])
    np.testing.assert_allclose(logits, recorded["out/masked_lm_logits"], **CLOSE)
    np.testing.assert_allclose(outputs["next_sentence_logits"], recorded["out/next_sentence_logits"], **CLOSE)


def test_gradients_are_the_release_s(golden, load_golden, golden_features, unpad):
    model = load_golden(dtype="float32", unpad=unpad)
    names, variables = zip(*named_variables(model).items())

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            loss = objective.total_loss(objective.pretraining_sums(model(golden_features), golden_features))
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, [v.value for v in variables])]

    expected = np.load(golden / "model/golden_grads.npz")
    for name, gradient in zip(names, gradients()):
        np.testing.assert_allclose(gradient, expected[f"grad/{name}"], rtol=1e-3, atol=1e-5, err_msg=name)


def test_xla_gives_the_same_outputs(load_golden, golden_features, recorded):
    model = load_golden(dtype="float32")
    outputs = tf.function(lambda: model(golden_features), jit_compile=True)()
    logits = tf.reshape(outputs["masked_lm_logits"], [-1, model.config.vocab_size])
    np.testing.assert_allclose(logits, recorded["out/masked_lm_logits"], **CLOSE)


def test_bfloat16_stays_close_and_keeps_float32_weights(load_golden, golden_features, recorded):
    model = load_golden(dtype="mixed_bfloat16", unpad=True)
    outputs = model(golden_features)
    assert {variable.dtype for variable in model.trainable_variables} == {"float32"}
    assert {output.dtype for output in outputs.values()} == {tf.float32}
    assert model.bert(golden_features["input_ids"])["sequence_output"].dtype == tf.bfloat16
    sums = objective.pretraining_sums(outputs, golden_features)
    assert float(objective.total_loss(sums)) == pytest.approx(float(recorded["out/total_loss"]), rel=0.02)
    logits = tf.reshape(outputs["masked_lm_logits"], [-1, model.config.vocab_size]).numpy()
    assert np.corrcoef(logits.ravel(), recorded["out/masked_lm_logits"].ravel())[0, 1] > 0.999


def test_next_sentence_head_can_be_left_out():
    model = PretrainingModel(TINY, next_sentence=False)
    assert set(model(features())) == {"masked_lm_logits"}
    assert not any("seq_relationship" in name for name in named_variables(model))


def test_padding_does_not_reach_real_tokens(unpad):
    model = PretrainingModel(TINY, unpad=unpad)
    first, other = features(), features()
    padding = 1 - other["input_mask"]
    other["input_ids"] = (other["input_ids"] + 7 * padding) % TINY.vocab_size
    for name, output in model(first).items():
        np.testing.assert_allclose(output, model(other)[name], atol=1e-6)


def test_unpadding_works_for_holes_and_empty_rows():
    batch = features()
    batch["input_mask"] = tf.constant([[1, 0, 1] * 4, [1] * 12, [0] * 12])
    padded, unpadded = PretrainingModel(TINY), PretrainingModel(TINY, unpad=True)
    for source, target in zip(padded.variables, unpadded.variables):
        target.assign(source)
    real = batch["input_mask"].numpy().astype(bool)
    one, two = (m.bert(batch["input_ids"], batch["input_mask"])["sequence_output"] for m in (padded, unpadded))
    np.testing.assert_allclose(one.numpy()[real], two.numpy()[real], atol=1e-5)
    assert not two.numpy()[~real].any()


def test_causal_output_does_not_depend_on_later_tokens(unpad):
    model = PretrainingModel(TINY.replace(causal=True), unpad=unpad)
    ids = features()["input_ids"]
    for position in (0, 4, 11):
        changed = tf.concat([ids[:, : position + 1], (ids[:, position + 1 :] + 1) % TINY.vocab_size], axis=1)
        one, two = (model.bert(x)["sequence_output"] for x in (ids, changed))
        np.testing.assert_allclose(one[:, : position + 1], two[:, : position + 1], atol=1e-6)
        assert position == 11 or np.abs(one[:, position + 1 :] - two[:, position + 1 :]).max() > 1e-3


def test_without_the_causal_switch_later_tokens_matter():
    model, ids = PretrainingModel(TINY), features()["input_ids"]
    changed = tf.concat([ids[:, :-1], (ids[:, -1:] + 1) % TINY.vocab_size], axis=1)
    one, two = (model.bert(x)["sequence_output"] for x in (ids, changed))
    assert np.abs(one[:, 0] - two[:, 0]).max() > 1e-6


def test_no_two_layers_start_with_the_same_weights():
    keras.utils.set_random_seed(1)
    kernels = [v.numpy() for v in PretrainingModel(TINY).trainable_variables if len(v.shape) == 2]
    heads = {kernel.ravel()[:8].tobytes() for kernel in kernels}
    assert len(heads) == len(kernels)
    spread = np.concatenate([kernel.ravel() for kernel in kernels])
    # A normal cut at two standard deviations has 0.88 of its spread.
    assert np.abs(spread).max() <= 0.04 + 1e-6
    assert spread.std() == pytest.approx(0.88 * 0.02, rel=0.05)


def test_dropout_follows_its_seed_and_is_off_without_one(unpad):
    model = PretrainingModel(TINY, unpad=unpad)

    def logits(seed):
        return model(features(), dropout_seed=seed)["masked_lm_logits"].numpy()

    assert np.array_equal(logits(tf.constant([1, 2])), logits(tf.constant([1, 2])))
    assert not np.allclose(logits(tf.constant([1, 2])), logits(tf.constant([1, 3])))
    assert np.array_equal(logits(None), logits(None))


@pytest.mark.parametrize("name", ["gelu", "gelu_erf", "relu", "tanh"])
def test_every_activation_of_the_configuration_runs(name):
    model = PretrainingModel(TINY.replace(hidden_act=name))
    assert np.isfinite(model(features())["masked_lm_logits"]).all()

"""Schedule, clipping and optimizers against the recorded original and tensorflow-addons."""

import types

import numpy as np
import pytest
import tensorflow as tf

from modeling import objective
from modeling.checkpoints import load
from modeling.config import BertConfig
from modeling.models import PretrainingModel, named_variables
from training.optimizers.adamw import AdamWeightDecay
from training.optimizers.lamb import Lamb
from training.optimizers.optimizer import Optimizer, clip_by_global_norm, make_optimizer
from training.schedule import WarmupLinearDecay
from training.settings import OPTIMIZERS, OptimizationSettings

NAMES = ("dense/kernel", "dense/bias", "LayerNorm/gamma", "LayerNorm/beta")


@pytest.mark.parametrize(
    "case", ["lr5e-05_N100_W10", "lr0.0001_N50_W0", "lr0.05_N20_W5", "lr2e-05_N7_W7", "lr0.0001_N5_W8"]
)
def test_learning_rate_is_the_release_s(golden, case):
    expected = np.load(golden / "optimizer/schedules.npz")[case]
    rate, total, warmup = (part.lstrip("lrNW") for part in case.split("_"))
    rates = [
        float(WarmupLinearDecay(float(rate), int(total), int(warmup))(tf.constant(step, tf.int64)))
        for step in range(len(expected))
    ]
    np.testing.assert_allclose(rates, expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("case", ["warm5_decay20", "nowarm_decay20", "past_end_25_of_20"])
def test_toy_regression_follows_the_release_step_by_step(golden, case):
    recorded = np.load(golden / f"optimizer/{case}.npz")
    x, y = tf.constant(recorded["X"]), tf.constant(recorded["Y"])
    variables = {name: tf.Variable(recorded[name.split("/")[1] + "0"]) for name in NAMES}
    optimizer = AdamWeightDecay()
    optimizer.build(variables)
    for step, rate in enumerate(recorded["step/lr"]):
        gradients, loss = toy_gradients(variables, x, y)
        gradients, norm = clip_by_global_norm(gradients, 1.0)
        assert float(loss) == pytest.approx(float(recorded["step/loss"][step]), rel=1e-4)
        assert float(norm) == pytest.approx(float(recorded["step/gnorm"][step]), rel=1e-4)
        optimizer.apply(gradients, rate)
        for name, variable in variables.items():
            np.testing.assert_allclose(variable, recorded[f"step/{name.split('/')[1]}"][step], rtol=1e-4, atol=1e-5)
    for name, slot in optimizer.slots().items():
        np.testing.assert_allclose(slot, recorded[f"final/{name}"], rtol=1e-3, atol=1e-6, err_msg=name)


def toy_gradients(variables, x, y):
    kernel, bias, gamma, beta = variables.values()
    with tf.GradientTape() as tape:
        prediction = (x @ kernel + bias) * gamma + beta
        loss = tf.reduce_mean(tf.reduce_sum(tf.square(prediction - y), axis=1))
    return tape.gradient(loss, list(variables.values())), loss


@pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])
def test_ten_updates_of_bert_are_the_release_s(golden, golden_model, jit):
    model, features = golden_model
    recorded = np.load(golden / "model/golden_train10.npz")
    variables = {name: variable.value for name, variable in named_variables(model).items()}
    optimizer = AdamWeightDecay()
    optimizer.build(variables)

    @tf.function(jit_compile=jit)
    def step(rate):
        with tf.GradientTape() as tape:
            sums = objective.pretraining_sums(model(features), features)
            loss = objective.total_loss(sums)
        gradients, norm = clip_by_global_norm(tape.gradient(loss, list(variables.values())), 1.0)
        optimizer.apply(gradients, rate)
        return loss, sums["next_sentence_loss"] / sums["examples"], norm

    for index, rate in enumerate(recorded["lr"]):
        loss, following, norm = step(tf.constant(rate))
        total, _, recorded_following = recorded["losses"][index]
        assert float(loss) == pytest.approx(float(total), rel=1e-3)
        assert float(following) == pytest.approx(float(recorded_following), rel=1e-2, abs=1e-3)
        assert float(norm) == pytest.approx(float(recorded["gnorm"][index]), rel=1e-3)
    for name, variable in variables.items():
        np.testing.assert_allclose(variable, recorded[f"param/{name}"], rtol=1e-3, atol=1e-3, err_msg=name)


@pytest.fixture
def golden_model(golden):
    model = PretrainingModel(BertConfig.from_json_file(str(golden / "model/bert_config.json")), dtype="float32")
    load.load_into(model, str(golden / "model/bert_model.ckpt"))
    recorded = np.load(golden / "model/golden_forward.npz")
    return model, {name[3:]: tf.constant(recorded[name]) for name in recorded.files if name.startswith("in/")}


@pytest.mark.parametrize(
    ("case", "optimizer"),
    [
        ("lamb_no_decay", lambda: Lamb(weight_decay=0.0)),
        ("lamb_decay_all", lambda: Lamb(exclude=())),
        ("lamb_decay_excluded", Lamb),
        # Its decay of 1e-4 a step is ours of 0.01 times the rate of 0.01.
        ("adamw_decay_all", lambda: AdamWeightDecay(bias_correction=True, exclude=())),
    ],
)
def test_bias_corrected_optimizers_follow_tensorflow_addons(golden, case, optimizer):
    recorded = np.load(golden / "optimizer/lamb_tfa_0_23.npz")
    variables = {name: tf.Variable(recorded[f"init/{name}"]) for name in NAMES}
    optimizer = optimizer()
    optimizer.build(variables)
    for step in range(20):
        optimizer.apply([tf.constant(recorded[f"grads/{name}"][step]) for name in NAMES], 0.01, step)
        for name, variable in variables.items():
            np.testing.assert_allclose(
                variable, recorded[f"{case}/step{step + 1}/{name}"], rtol=1e-5, atol=1e-6, err_msg=f"{name} {step}"
            )


def test_bias_correction_asks_for_the_step():
    optimizer = Lamb()
    optimizer.build({"w": tf.Variable([1.0])})
    with pytest.raises(ValueError, match="needs the step"):
        optimizer.apply([tf.constant([1.0])], 0.1)


def test_repeated_rows_of_a_sparse_gradient_are_summed_first():
    sparse = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([1, 1]), tf.constant([3, 1]))
    results = []
    for gradient in (sparse, tf.constant([[0.0], [3.0], [0.0]])):
        variable, optimizer = tf.Variable([[1.0], [1.0], [1.0]]), AdamWeightDecay()
        optimizer.build({"w": variable})
        optimizer.apply([gradient], 0.1)
        results.append(variable.numpy())
    np.testing.assert_array_equal(*results)
    assert float(clip_by_global_norm([sparse], 1.0)[1]) == 3.0


def test_clip_leaves_small_gradients_and_scales_large_ones_together():
    small, norm = clip_by_global_norm([tf.constant([0.3]), tf.constant([0.4])], 1.0)
    assert (float(small[0][0]), float(norm)) == pytest.approx((0.3, 0.5))
    large, norm = clip_by_global_norm([tf.constant([3.0]), tf.constant([4.0])], 1.0)
    assert ([float(g[0]) for g in large], float(norm)) == (pytest.approx([0.6, 0.8]), pytest.approx(5.0))


def test_clipped_gradients_are_the_release_s(golden):
    recorded = np.load(golden / "model/golden_grads.npz")
    names = [key.removeprefix("clipped/") for key in recorded.files if key.startswith("clipped/")]
    assert len(names) == 62
    clipped, _ = clip_by_global_norm([tf.constant(recorded[f"grad/{name}"]) for name in names], 1.0)
    for name, gradient in zip(names, clipped):
        np.testing.assert_allclose(gradient, recorded[f"clipped/{name}"], rtol=1e-5, atol=1e-8, err_msg=name)


def test_clip_by_zero_leaves_gradients_alone():
    gradients, norm = clip_by_global_norm([tf.constant([3.0]), tf.constant([4.0])], 0.0)
    assert ([float(g[0]) for g in gradients], float(norm)) == ([3.0, 4.0], 5.0)


def test_settings_choose_the_optimizer():
    settings = OptimizationSettings(optimizer="lamb", weight_decay=0.02)
    optimizer = make_optimizer(settings)
    assert isinstance(optimizer, Lamb)
    assert optimizer.weight_decay == 0.02
    settings = OptimizationSettings(adam_bias_correction=True)
    optimizer = make_optimizer(settings)
    assert isinstance(optimizer, AdamWeightDecay)
    assert optimizer.bias_correction
    assert optimizer.decays("a/kernel")
    assert not any(optimizer.decays(name) for name in ("a/bias", "x/LayerNorm/gamma", "cls/predictions/output_bias"))


class Momentum(Optimizer):
    """Followed from docs/architecture.md: an optimizer with one slot."""

    SLOTS = ("momentum",)

    def update_variable(self, variable, slots, gradient, learning_rate, count, decays):
        velocity = slots[0].assign(0.9 * slots[0] + gradient)
        variable.assign_sub(learning_rate * velocity)


def make(settings):
    """What an optimizer's module offers."""
    return Momentum(settings.weight_decay)


def test_new_optimizer_is_one_module_and_one_line(monkeypatch):
    monkeypatch.setitem(OPTIMIZERS, "momentum", __name__)
    optimizer = make_optimizer(types.SimpleNamespace(optimizer="momentum", weight_decay=0.0))
    optimizer.build({"a/kernel": tf.Variable([1.0, 2.0])})
    assert list(optimizer.slots()) == ["a/kernel/momentum"]
    for step in range(2):
        optimizer.apply([tf.constant([1.0, 1.0])], 0.1, step)
    np.testing.assert_allclose(optimizer.slots()["a/kernel/momentum"], [1.9, 1.9])

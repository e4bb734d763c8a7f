"""Packed fine-tuning: the losses, gradients, predictions and weights of unpacked examples, in every family."""

import dataclasses
import types

import numpy as np
import pytest
import tensorflow as tf

from finetuning import packing
from finetuning.objective import TaskObjective
from finetuning.prediction import RowPredictor
from finetuning.settings import FineTuningSettings
from foundation.errors import BertError
from inputs import batching
from inputs import packing as packed_inputs
from inputs.features import Features, splits_of
from modeling.checkpoints import load
from modeling.config import BertConfig
from tasks.classification.network import ClassificationNetwork
from tasks.multiple_choice.network import MultipleChoiceNetwork
from tasks.ner.files import NerSettings
from tasks.ner.network import NerNetwork
from tasks.squad.network import SquadNetwork
from tests.finetuning.process import run, settings
from training import devices
from training.settings import HardwareSettings, LoopSettings

TINY = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                  max_position_embeddings=24, initializer_range=0.3, hidden_dropout_prob=0.0,
                  attention_probs_dropout_prob=0.0)
ROWS, LONGEST = 14, 24
NETWORKS = {
    "classification": ClassificationNetwork(3), "regression": ClassificationNetwork(None),
    "squad": SquadNetwork(), "ner": NerNetwork(NerSettings(data_dir="x"), 4), "choice": MultipleChoiceNetwork(),
}


def features_of(family):
    """Random examples of 3 to 24 tokens."""
    rng = np.random.default_rng(1)
    choices = 3 if family == "choice" else 1
    lengths = rng.integers(3, LONGEST + 1, ROWS * choices)
    lengths[0] = LONGEST
    total = lengths.sum()
    tokens = {"input_ids": rng.integers(5, 50, total), "segment_ids": rng.integers(0, 2, total)}
    if family == "ner":
        tokens["token_labels"] = rng.integers(-1, 4, total)
    values = {"label_ids": rng.integers(0, 3, ROWS)}
    if family == "squad":
        values = {f"{side}_positions": rng.integers(0, lengths) for side in ("start", "end")}
    return Features({name: column.astype(np.int32) for name, column in tokens.items()}, splits_of(lengths),
                    {name: value.astype(np.int32) for name, value in values.items()}, choices)


def only_batch(dataset):
    [batch] = dataset(tf.distribute.InputContext(1, 0, 1))
    return batch


@pytest.mark.parametrize("family", NETWORKS)
def test_losses_and_gradients_are_those_of_unpacked_examples(family):
    features, network = features_of(family), NETWORKS[family]
    objective = TaskObjective(network, network.model(TINY, "float32", False), 1.5 if family == "ner" else 1.0)
    alone = only_batch(batching.batches(features, batching.prediction_plan(features.lengths, ROWS, LONGEST, True)))
    plan = packed_inputs.prediction_plan(features, ROWS + 4, LONGEST)
    assert plan.examples.shape[0] == 1 and plan.examples.shape[1] < ROWS
    together = only_batch(packed_inputs.batches(features, plan))
    results = []
    for batch in (alone, together):
        with tf.GradientTape() as tape:
            loss, sums = objective.loss(batch, objective.denominators(batch), None)
        gradients = tape.gradient(loss, list(objective.variables.values()),
                                  unconnected_gradients=tf.UnconnectedGradients.ZERO)
        results.append((loss, sums["term_weight"], [tf.convert_to_tensor(gradient) for gradient in gradients]))
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-5)
    assert results[1][1] == results[0][1]
    for name, one, two in zip(objective.variables, results[0][2], results[1][2]):
        np.testing.assert_allclose(two, one, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("family", NETWORKS)
def test_outputs_come_back_in_the_order_of_the_examples(family):
    features, network = features_of(family), NETWORKS[family]
    objective = TaskObjective(network, network.model(TINY, "float32", False))
    task = types.SimpleNamespace(
        max_seq_length=LONGEST,
        token_outputs={"squad": ("start_logits", "end_logits"), "ner": ("logits",)}.get(family, ()))
    placement = devices.create(HardwareSettings(strategy="one_device", precision="float32"))
    padded, packed = (RowPredictor(task, placement, objective, True, packs).outputs(features, 4, "test")
                      for packs in (False, True))
    for name, values in padded.items():
        for one, two in zip(values, packed[name], strict=True):
            assert one.shape == two.shape
            np.testing.assert_allclose(two, one, atol=1e-5)


def values(**rest):
    return FineTuningSettings(loop=LoopSettings(output_dir="x"), do_train=True, **rest)


def placement(xla, platform="cpu"):
    return types.SimpleNamespace(xla=xla, platform=platform)


def test_auto_packs_where_xla_compiles():
    network = NETWORKS["squad"]
    assert packing.is_on(values(), placement(True), network)
    assert packing.is_on(values(), placement(False, "tpu"), network)
    assert packing.is_on(values(pack="true"), placement(False), network)
    assert not packing.is_on(values(), placement(False), network)
    assert not packing.is_on(values(pack="false"), placement(True), network)
    assert not packing.is_on(values(static_shapes="false"), placement(True), network)


def test_flags_and_models_that_speak_against_packing_are_named():
    with pytest.raises(BertError, match=r"--pack=true: --static_shapes=false asks for batches of several lengths"):
        packing.is_on(values(static_shapes="false", pack="true"), placement(True), NETWORKS["squad"])
    tagger = NerNetwork(dataclasses.replace(NerSettings(data_dir="x"), feature_based=True), 4)
    assert not packing.is_on(values(), placement(True), tagger)
    with pytest.raises(BertError, match="--pack=true: this model takes one sequence a row"):
        packing.is_on(values(pack="true"), placement(True), tagger)


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """Settings of a task of sentences of very different lengths."""
    folder = tmp_path_factory.mktemp("packed_task")
    rng = np.random.default_rng(0)
    for name in ("train", "dev", "test"):
        lines = [f"{' '.join(f'w{number}' for number in rng.integers(0, 90, rng.integers(1, 12)))}\t{label}"
                 for label in rng.integers(0, 2, 48)]
        (folder / f"{name}.tsv").write_text("".join(f"{line}\n" for line in ["text\tlabel", *lines]))
    return {"task_name": "custom", "labels": ("0", "1"), "text_a_column": "text", "label_column": "label",
            "header": True, "max_seq_length": 16,
            **{f"{name}_file": str(folder / f"{name}.tsv") for name in ("train", "dev", "test")}}


def test_packed_run_stopped_and_resumed_ends_with_the_weights_of_a_whole_one(task, tiny_release, tmp_path, capsys):
    start = {"init_checkpoint": str(tiny_release)}

    def options(name, **rest):
        return settings(tmp_path / name, initial_model=start, pack="true", **rest)

    run(task, options("whole"))
    printed = capsys.readouterr().out
    assert "Packed: an update has" in printed and "examples on average" in printed
    run(task, options("cut", loop={"stop_at_step": 3}))
    run(task, options("cut"))
    one, other = (load.find(str(tmp_path / name)).reader for name in ("whole", "cut"))
    for name in one.names:
        np.testing.assert_allclose(one.get(name), other.get(name), atol=1e-6, err_msg=name)
    packed, unpacked = (
        run(task, settings(tmp_path / f"eval_{pack}", initial_model={"init_checkpoint": str(tmp_path / "whole")},
                           do_train=False, do_eval=True, pack=pack)).evaluation for pack in ("true", "false"))
    assert packed["eval_loss"] == pytest.approx(unpacked["eval_loss"], rel=1e-4)
    with pytest.raises(BertError, match=r"belongs to a run with other settings.*packed_rows"):
        run(task, {**options("cut"), "pack": "false"})

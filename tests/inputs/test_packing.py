"""Packed rows hold every example once an epoch, whole and within the row, and can start at any batch."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from foundation.errors import BertError
from inputs import packing
from tests.inputs.test_batching import features_of

LENGTHS = st.lists(st.integers(3, 60), min_size=1, max_size=80).map(np.array)


def batches_of(features, plan, first_batch=0, pipelines=1, pipeline=0, replicas=1):
    context = tf.distribute.InputContext(pipelines, pipeline, replicas)
    return list(packing.batches(features, plan, first_batch)(context).as_numpy_iterator())


@settings(deadline=None, max_examples=100)
@given(LENGTHS, st.integers(60, 90), st.integers(1, 12))
def test_every_item_is_in_one_row_that_has_space_for_it(sizes, length, slots):
    rows = packing.best_fit(sizes, length, slots)
    assert sorted(rows[rows >= 0]) == list(range(len(sizes)))
    assert rows.shape[1] <= slots
    used = np.where(rows >= 0, sizes[rows], 0).sum(axis=1)
    assert (used <= length).all()
    # Best fit: two rows whose items fit into one would be one.
    counts = (rows >= 0).sum(axis=1)
    joinable = (used[:, None] + used <= length) & (counts[:, None] + counts <= slots)
    assert not (joinable & ~np.eye(len(rows), dtype=bool)).any()


@settings(deadline=None, max_examples=50)
@given(LENGTHS, st.integers(1, 8), st.sampled_from([0.5, 1.0, 2.0, 2.5]), st.integers(1, 3))
def test_training_sees_each_example_once_an_epoch(lengths, batch_size, epochs, divisor):
    plan = packing.training_plan(features_of(lengths), batch_size, epochs, 7, 64, divisor)
    batches, rows, _ = plan.examples.shape
    assert rows % divisor == 0 and plan.length <= 64
    times = np.bincount(plan.examples[plan.examples >= 0], minlength=len(lengths))
    if batches > 1:  # one batch may need more epochs than asked for
        assert times.max() <= np.ceil(epochs)
    assert (np.where(plan.examples >= 0, lengths[plan.examples], 0).sum(axis=2) <= plan.length).all()


@settings(deadline=None, max_examples=50)
@given(LENGTHS, st.integers(1, 8), st.integers(1, 3))
def test_prediction_sees_each_example_once(lengths, batch_size, divisor):
    plan = packing.prediction_plan(features_of(lengths), batch_size, 64, divisor)
    assert sorted(plan.examples[plan.examples >= 0]) == list(range(len(lengths)))


@pytest.mark.parametrize("divisor", [1, 8])
def test_batches_hold_the_examples_asked_for_and_hardly_any_padding(divisor):
    """Also where a device's part of a batch is less than a row of the maximum length."""
    lengths = np.clip(np.random.default_rng(0).gamma(4, 3, 5000).astype(int) + 3, 3, 48)
    plan = packing.training_plan(features_of(lengths), 64, 1.0, 0, 128, divisor)
    assert plan.examples_per_batch == pytest.approx(64, rel=0.1)
    assert plan.filled > 0.95


def test_other_seed_and_epoch_give_another_order_and_more_epochs_the_same_beginning():
    features = features_of(np.random.default_rng(0).integers(3, 60, 200))
    one, longer, other = (packing.training_plan(features, 8, epochs, seed, 64).examples
                          for epochs, seed in ((1.0, 1), (3.0, 1), (1.0, 2)))
    np.testing.assert_array_equal(longer[: len(one), :, : one.shape[2]], one)
    assert (longer[: len(one)] != longer[len(one) : 2 * len(one)]).any()
    assert one.shape != other.shape or (one != other).any()


def test_parts_are_the_examples_end_to_end():
    features = features_of([5, 9, 3, 4])
    plan = packing.PackedPlan(np.array([[[1, 0, -1], [3, 2, -1]]], np.int32), 16, 0.0)
    [batch] = batches_of(features, plan)
    ids = batch["input_ids"]
    np.testing.assert_array_equal(ids[0], [*range(101, 110), *range(1, 6), 0, 0])
    np.testing.assert_array_equal(batch["input_mask"][1], [1] * 4 + [2] * 3 + [0] * 9)
    np.testing.assert_array_equal(batch["token_labels"][1, 6:], [203, *[-1] * 9])
    np.testing.assert_array_equal(batch["part_starts"], [[0, 9, 0], [0, 4, 0]])
    np.testing.assert_array_equal(batch["is_real_example"], [[1, 1, 0], [1, 1, 0]])
    np.testing.assert_array_equal(batch["label_ids"][:, :2], [[1, 0], [3, 2]])
    for each in packing.places(plan.examples[0], packing.tokens_of(features)):
        np.testing.assert_array_equal(ids[each.row, each.start : each.end],
                                      each.example * 100 + 1 + np.arange(each.end - each.start))
        assert batch["label_ids"].reshape(-1)[each.slot] == each.example


def test_choices_of_an_example_are_parts_of_one_row():
    features = features_of([5, 9, 3, 4], choices=2)
    [batch] = batches_of(features, packing.prediction_plan(features, 2, 64))
    assert batch["part_starts"].tolist() == [[[0, 5], [14, 17]]]
    assert batch["input_ids"][0, :21].tolist() == [*range(1, 6), *range(101, 110), 201, 202, 203, *range(301, 305)]


def test_resumed_run_sees_the_remaining_batches():
    features = features_of(np.random.default_rng(0).integers(3, 60, 100))
    plan = packing.training_plan(features, 4, 1.0, 3, 64)
    whole, rest = batches_of(features, plan), batches_of(features, plan, first_batch=5)
    for left, right in zip(whole[5:], rest, strict=True):
        np.testing.assert_array_equal(left["input_ids"], right["input_ids"])


def test_workers_and_replicas_share_the_same_batches():
    features = features_of(np.random.default_rng(0).integers(3, 60, 100))
    plan = packing.training_plan(features, 8, 1.0, 3, 64, divisor=4)
    whole = batches_of(features, plan)
    parts = [batches_of(features, plan, pipelines=2, pipeline=pipeline, replicas=4) for pipeline in range(2)]
    for step, batch in enumerate(whole):
        shares = [part for worker in parts for part in worker[2 * step : 2 * step + 2]]
        np.testing.assert_array_equal(np.concatenate([share["input_ids"] for share in shares]), batch["input_ids"])
    with pytest.raises(BertError, match="cannot be divided among 3 replicas"):
        batches_of(features, plan, replicas=3)


def test_shapes_are_known_when_the_step_is_traced():
    features = features_of([5, 9, 3, 4])
    spec = packing.batches(features, packing.prediction_plan(features, 2, 64))(tf.distribute.InputContext(1, 0, 1))
    assert all(value.shape.is_fully_defined() for value in spec.element_spec.values())

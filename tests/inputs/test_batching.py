"""Batches hold every row as often as they should, padded to a fixed length, and can start at any step."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from foundation.errors import BertError
from inputs import batching
from inputs.features import Features

LENGTHS = st.lists(st.integers(3, 60), min_size=1, max_size=80).map(np.array)


def features_of(lengths, choices=1):
    """Row r's tokens are r * 100 + 1, r * 100 + 2 and so on; its label is r."""
    splits = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.concatenate([row * 100 + 1 + np.arange(length) for row, length in enumerate(lengths)])
    rows = len(lengths) // choices
    return Features({"input_ids": ids.astype(np.int32), "token_labels": ids.astype(np.int32)}, splits,
                    {"label_ids": np.arange(rows, dtype=np.int32)}, choices)


def batches_of(features, plan, first_batch=0, pipelines=1, pipeline=0, replicas=1):
    context = tf.distribute.InputContext(pipelines, pipeline, replicas)
    return list(batching.batches(features, plan, first_batch)(context).as_numpy_iterator())


@settings(deadline=None, max_examples=50)
@given(LENGTHS, st.integers(1, 8), st.integers(1, 3), st.booleans())
def test_training_sees_each_row_once_an_epoch(lengths, batch_size, epochs, static):
    steps = len(lengths) * epochs // batch_size
    if not steps:
        return
    plan = batching.training_plan(lengths, batch_size, steps, 7, 64, static)
    times = np.bincount(plan.rows.ravel(), minlength=len(lengths))
    assert times.sum() == steps * batch_size
    assert times.max() <= epochs
    assert (times < epochs).sum() < batch_size
    assert (lengths[plan.rows].max(axis=1) <= plan.lengths).all()
    assert set(plan.lengths) <= ({64} if static else {*batching.LENGTHS, 64})


@settings(deadline=None, max_examples=50)
@given(LENGTHS, st.integers(1, 8), st.booleans())
def test_prediction_sees_each_row_once(lengths, batch_size, static):
    plan = batching.prediction_plan(lengths, batch_size, 64, static)
    assert sorted(plan.rows[plan.rows >= 0]) == list(range(len(lengths)))
    assert (plan.rows < 0).sum() < batch_size


def test_batches_have_similar_lengths_in_a_shuffled_order():
    lengths = np.random.default_rng(0).integers(3, 128, 3200)
    plan = batching.training_plan(lengths, 32, 100, 0, 128)
    assert plan.lengths.sum() * 32 < 1.15 * lengths.sum()
    assert (np.diff(plan.lengths) < 0).sum() > 30


def test_other_seed_gives_another_order_and_the_same_seed_the_same():
    lengths = np.random.default_rng(0).integers(3, 60, 200)
    one, same, other = (batching.training_plan(lengths, 8, 50, seed, 64) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.rows, same.rows)
    assert not (one.rows == other.rows).all()


def test_longest_length_is_the_maximum_of_a_row():
    plan = batching.training_plan(np.array([33, 34]), 1, 2, 0, 40)
    assert list(plan.lengths) == [40, 40]


def test_rows_are_padded_and_completed():
    features = features_of([5, 9, 3])
    [first, last] = batches_of(features, batching.prediction_plan(features.lengths, 2, 64))
    assert first["input_ids"].shape == (2, 16)
    np.testing.assert_array_equal(first["label_ids"], [2, 0])
    np.testing.assert_array_equal(first["input_ids"][1, :6], [1, 2, 3, 4, 5, 0])
    np.testing.assert_array_equal(first["input_mask"].sum(axis=1), [3, 5])
    assert first["token_labels"][0, 3] == -1
    np.testing.assert_array_equal(last["is_real_example"], [1, 0])
    np.testing.assert_array_equal(last["input_mask"].sum(axis=1), [9, 0])


def test_choices_of_a_row_stay_together():
    features = features_of([5, 9, 3, 4], choices=2)
    [batch] = batches_of(features, batching.prediction_plan(features.lengths, 2, 64))
    assert batch["input_ids"].shape == (2, 2, 16)
    np.testing.assert_array_equal(batch["input_ids"][:, :, 0], [[201, 301], [1, 101]])


def test_resumed_run_sees_the_remaining_batches():
    features = features_of(np.random.default_rng(0).integers(3, 60, 40))
    plan = batching.training_plan(features.lengths, 4, 12, 3, 64)
    whole, rest = batches_of(features, plan), batches_of(features, plan, first_batch=5)
    for left, right in zip(whole[5:], rest, strict=True):
        np.testing.assert_array_equal(left["input_ids"], right["input_ids"])


@pytest.mark.parametrize("static", [False, True])
def test_workers_and_replicas_share_the_same_batches(static):
    features = features_of(np.random.default_rng(0).integers(3, 60, 40))
    plan = batching.training_plan(features.lengths, 8, 5, 3, 64, static)
    whole = batches_of(features, plan)
    parts = [batches_of(features, plan, pipelines=2, pipeline=pipeline, replicas=4) for pipeline in range(2)]
    for step, batch in enumerate(whole):
        shares = [part for worker in parts for part in worker[2 * step : 2 * step + 2]]
        np.testing.assert_array_equal(np.concatenate([share["input_ids"] for share in shares]), batch["input_ids"])


def test_batch_that_does_not_divide_is_refused():
    features = features_of([3, 4, 5])
    with pytest.raises(BertError, match="batch of 3 rows cannot be divided among 2 replicas"):
        batches_of(features, batching.prediction_plan(features.lengths, 3, 64), replicas=2)


def test_static_shapes_are_known_when_the_step_is_traced():
    features = features_of([5, 9, 3, 4])
    context = tf.distribute.InputContext(1, 0, 1)
    fixed = batching.batches(features, batching.training_plan(features.lengths, 2, 2, 0, 64, True))(context)
    assert fixed.element_spec["input_ids"].shape == (2, 64)
    bucketed = batching.batches(
        features_of([5, 40]), batching.prediction_plan(np.array([5, 40]), 1, 64))(context)
    assert bucketed.element_spec["input_ids"].shape.as_list() == [1, None]

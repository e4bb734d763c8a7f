"""What the speed table rests on: batches that stand for all, costs of a unit, the fastest variant of each engine."""

import numpy as np
import pytest

from benchmarks.speed import batches, chip, job, rows, turns
from benchmarks.speed.job import Case, Cost, Job
from inputs.features import Features, splits_of


@pytest.mark.parametrize("size", batches.SIZES)
def test_sorted_batches_have_the_tokens_of_mixed_ones_and_less_padding(size):
    mixed, by_length = (batches.sample(size, each) for each in (False, True))
    assert sum(mixed.weights) == pytest.approx(1) and sum(by_length.weights) == pytest.approx(1)
    assert by_length.tokens == pytest.approx(mixed.tokens, rel=0.01)
    assert padding(by_length) < 0.04 < 0.08 < padding(mixed)


def padding(sample):
    computed = sum(weight * batch["input_mask"].size for weight, batch in zip(sample.weights, sample.batches))
    return 1 - sample.tokens / computed


def test_spread_batches_stand_for_all():
    draw = np.random.default_rng(0)
    lengths = draw.integers(4, 128, 3200)
    plan = np.sort(lengths.argsort().reshape(100, 32))
    chosen = rows.spread(lengths, plan, 4)
    assert len(set(chosen)) == 4
    assert lengths[plan[chosen]].mean() == pytest.approx(lengths.mean(), rel=0.05)


def test_padded_rows_are_those_of_the_features():
    found = Features({"input_ids": np.arange(1, 10, dtype=np.int32)}, splits_of([2, 4, 3]), {})
    columns = rows.padded(found, np.array([2, 0]))
    assert columns["input_ids"].tolist() == [[7, 8, 9], [1, 2, 0]]
    assert columns["input_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]


def test_cost_of_a_unit_weighs_the_runs(monkeypatch):
    monkeypatch.setattr(job, "cost_of", lambda run: Cost(cpu=run()))
    found = job.turn(Job([lambda: 8.0, lambda: 4.0], [0.75, 0.25], units=10, warmups=2), seconds=0)
    assert found.cpu == pytest.approx(0.7)


def test_fastest_variant_is_chosen_and_failures_are_left_out():
    trial = {("a", "slow"): Cost(cpu=2.0), ("a", "fast"): Cost(cpu=1.0, wall=9.0), ("a", "broken"): "no such module",
             ("b", "broken"): "no such module"}
    assert turns.Result({}, trial).variant("a") == "fast"
    with pytest.raises(KeyError):
        turns.Result({}, trial).variant("b")


def test_ratios_are_paired():
    result = turns.Result({"ours": [Cost(cpu=1), Cost(cpu=2)], "peer": [Cost(cpu=2), Cost(cpu=3)]}, {})
    assert result.ratios("ours", "peer") == [2.0, 1.5]


def test_case_survives_the_way_to_its_process():
    case = Case("pretraining", "ours", "float32", {"size": "tiny"}, {"compiled": True})
    assert Case.from_json(case.to_json()) == case


def test_emulated_chip_has_no_bfloat16():
    assert chip.default_precision("avx2") == "float32"
    assert chip.environment("avx2", "auto")["TF_ENABLE_ONEDNN_OPTS"] == "1"
    assert chip.environment("avx2", "0")["TF_ENABLE_ONEDNN_OPTS"] == "0"
    assert "TF_ENABLE_ONEDNN_OPTS" not in chip.environment("native", "auto")

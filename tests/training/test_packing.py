"""Packed records: each in one row, within the space of a row, in an order that seed and files determine alone."""

import json
import signal

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep import records
from foundation.errors import BertError
from modeling.checkpoints import google
from tests.conftest import TINY_CONFIG, write_records
from tests.training import pretraining_process
from tests.training.pretraining_process import finish, from_dict, start
from tests.training.test_resume import wait_for_checkpoint
from training import metrics_log, packing, pretraining
from training.input_pipeline import RecordSource
from training.record_counter import RecordCounter

SEQ, PREDICTIONS = 32, 5
SCHEMA = records.PretrainingSchema(SEQ, PREDICTIONS, 5000, 2)
RECORDS = 300


def short_arrays(rows=RECORDS, seed=0):
    """Records of 3 to 32 tokens whose first id tells the record."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, SEQ + 1, rows)
    mask = (np.arange(SEQ) < lengths[:, None]).astype(np.int64)
    counts = (np.arange(PREDICTIONS) < np.maximum(1, lengths * 15 // 100)[:, None]).astype(np.int64)
    chosen = np.argsort(rng.random((rows, SEQ)) + 2 * (1 - mask), axis=1)[:, :PREDICTIONS] * counts
    ids = rng.integers(5, 100, (rows, SEQ)) * mask
    ids[:, 0] = 100 + np.arange(rows)
    return {"input_ids": ids, "input_mask": mask, "segment_ids": rng.integers(0, 2, (rows, SEQ)) * mask,
            "masked_lm_positions": chosen, "masked_lm_ids": rng.integers(5, 100, chosen.shape) * counts,
            "masked_lm_weights": counts.astype(np.float32), "next_sentence_labels": rng.integers(0, 2, (rows, 1))}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = write_records(tmp_path_factory.mktemp("packing") / "a.tfrecord", short_arrays())
    return RecordSource((str(path),), SCHEMA)


def context(workers=1, worker=0, replicas=1):
    return tf.distribute.InputContext(workers, worker, workers * replicas)


def batches(dataset, count):
    return list(dataset.take(count).as_numpy_iterator())


def parts(batch):
    """The parts of a batch as records: [(row, record, arrays)]."""
    for row in range(len(batch["input_ids"])):
        numbers = batch["input_mask"][row]
        for number in range(1, numbers.max() + 1):
            at = np.flatnonzero(numbers == number)
            assert at[0] == batch["part_starts"][row, number - 1]
            assert (np.diff(at) == 1).all()
            counts = batch["masked_lm_weights"][row] > 0
            predicted = batch["masked_lm_positions"][row]
            own = counts & (predicted >= at[0]) & (predicted <= at[-1])
            yield row, int(batch["input_ids"][row, at[0]]) - 100, {
                "input_ids": batch["input_ids"][row, at], "segment_ids": batch["segment_ids"][row, at],
                "masked_lm_positions": predicted[own] - at[0], "masked_lm_ids": batch["masked_lm_ids"][row, own],
                "next_sentence_labels": batch["next_sentence_labels"][row, number - 1]}


def test_each_record_is_whole_in_one_row_once_an_epoch(source):
    expected, rows = short_arrays(), 40
    found = []
    for batch in batches(packing.evaluation_batches(source, rows)(context()), -1):
        assert batch["input_ids"].shape == (rows, SEQ) and batch["masked_lm_ids"].shape == (rows, PREDICTIONS)
        for _, record, part in parts(batch):
            found.append(record)
            counts = expected["masked_lm_weights"][record] > 0
            np.testing.assert_array_equal(part["input_ids"], expected["input_ids"][record][: len(part["input_ids"])])
            assert len(part["input_ids"]) == expected["input_mask"][record].sum()
            np.testing.assert_array_equal(part["segment_ids"],
                                          expected["segment_ids"][record][: len(part["input_ids"])])
            np.testing.assert_array_equal(part["masked_lm_positions"], expected["masked_lm_positions"][record][counts])
            np.testing.assert_array_equal(part["masked_lm_ids"], expected["masked_lm_ids"][record][counts])
            assert part["next_sentence_labels"] == expected["next_sentence_labels"][record, 0]
    assert sorted(found) == list(range(RECORDS))


def test_hardly_any_padding_is_left(source):
    rows = np.concatenate([batch["input_mask"] for batch in batches(packing.training_batches(source, 20, 1)(context()),
                                                                    20)])
    assert (rows > 0).mean() > 0.95
    measured = packing.measure(source, 32, 1, 100, 2)
    assert measured.filled > 0.95
    assert measured.rows % 2 == 0 and abs(measured.records - 32) < 3


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 4)), min_size=1, max_size=40))
def test_rows_never_hold_more_than_they_have_space_for(needs):
    needs = np.array([(*need, 1) for need in sorted(needs, reverse=True)], np.int32)
    rows = packing.best_fit(tf.constant(needs), [20, 4, 5]).numpy()
    used = np.zeros((rows.max() + 1, 3), int)
    np.add.at(used, rows, needs)
    assert (used <= [20, 4, 5]).all() and (used > 0).any(axis=1).all()
    # Best fit: a row is only opened where no earlier one had space.
    for opened in range(1, rows.max() + 1):
        first = int(np.argmax(rows == opened))
        before = np.zeros((opened, 3), int)
        np.add.at(before, rows[:first][rows[:first] < opened], needs[:first][rows[:first] < opened])
        assert (before + needs[first] > [20, 4, 5]).any(axis=1).all()


def test_batches_follow_the_seed_and_start_after_any_batch(source, monkeypatch):
    monkeypatch.setattr(packing, "WINDOW", 64)  # so that batches cross windows and epochs

    def stream(seed=1, first_record=0, count=40):
        return batches(packing.training_batches(source, 12, seed, first_record=first_record)(context()), count)

    whole, other = stream(), stream(seed=2)
    assert any((one["input_ids"] != two["input_ids"]).any() for one, two in zip(whole, other))
    counts = np.cumsum([batch["input_mask"].max(axis=1).sum() for batch in whole])
    assert counts[-1] > 2 * RECORDS
    for done in (1, 2, 13, 36):
        for late, expected in zip(stream(first_record=counts[done - 1], count=3), whole[done:]):
            for name, value in expected.items():
                np.testing.assert_array_equal(late[name], value, err_msg=name)


def test_workers_and_replicas_share_the_global_batch_in_order(source):
    make = packing.training_batches(source, 8, 1)
    whole = batches(make(context()), 3)
    shares = [batches(make(context(2, worker, 2)), 6) for worker in range(2)]
    for index, batch in enumerate(whole):
        own = [shares[worker][2 * index + replica] for worker in range(2) for replica in range(2)]
        np.testing.assert_array_equal(np.concatenate([each["input_ids"] for each in own]), batch["input_ids"])


def test_a_record_that_does_not_fit_is_named_before_training(tmp_path):
    arrays = short_arrays()
    arrays["input_ids"][200, 1] = 1 << 40
    bad = RecordSource((str(write_records(tmp_path / "bad", arrays)),), SCHEMA)
    with pytest.raises(BertError, match=r"bad, record 200: token id 1099511627776 does not fit"):
        packing.measure(bad, 32, 1, 100, 1)


def test_records_of_an_update_are_told_by_the_counts_before_it():
    assert RecordCounter(100).records_of(np.array([10, 12, 9], np.float32), 1) == (110, 122)


def command(folder, output_dir, **rest):
    return pretraining_process.settings(
        folder / "bert_config.json", folder / "a.tfrecord", output_dir, max_seq_length=SEQ,
        max_predictions_per_seq=PREDICTIONS, train_batch_size=12, pack="true", shuffle_buffer=50,
        **{"num_train_steps": 300, "loop": {"save_checkpoints_steps": 20, "seconds_per_report": 0.05}, **rest})


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed_runs")
    config = {**TINY_CONFIG, "vocab_size": 500, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    (folder / "bert_config.json").write_text(json.dumps(config))
    write_records(folder / "a.tfrecord", short_arrays())
    return folder


def test_killed_run_ends_with_the_weights_of_one_never_killed(shared, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    pretraining.run(from_dict(command(shared, whole)))
    process = start(command(shared, killed))
    wait_for_checkpoint(killed, process, 40)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not list(killed.glob("model.ckpt-300.index"))
    printed = finish(start(command(shared, killed)))
    assert "Resuming from step" in printed and "Packed: an update has 7 rows of 32" in printed
    run, expected = google.read(f"{killed}/model.ckpt-300"), google.read(f"{whole}/model.ckpt-300")
    assert run.get(RecordCounter.NAME) == expected.get(RecordCounter.NAME) > 300 * 10
    for name in expected.names:
        np.testing.assert_allclose(run.get(name), expected.get(name), atol=1e-6, err_msg=name)


def test_two_replicas_train_as_one_and_evaluation_equals_the_unpacked(shared, tmp_path):
    """Also over XLA, which packs by itself."""
    (shared / "plain.json").write_text(json.dumps({**TINY_CONFIG, "vocab_size": 500}))

    def values(name, **hardware):
        return {**command(shared, tmp_path / name, num_train_steps=4, do_eval=True, eval_batch_size=8,
                          loop={"iterations_per_loop": 2}, optimization={"gradient_accumulation_steps": 2}),
                "initial_model": {"bert_config_file": str(shared / "plain.json")},
                "hardware": {"precision": "float32", **hardware}}

    one = pretraining.run(from_dict(values("one")))
    assert "2 CPU replicas" in finish(start(values("two", strategy="mirrored"), logical_devices=2))
    pretraining.run(from_dict({**values("xla", xla="true"), "pack": "auto"}))
    runs = [google.read(f"{tmp_path}/{name}/model.ckpt-4") for name in ("one", "two", "xla")]
    for name in runs[0].names:
        for other in runs[1:]:
            np.testing.assert_allclose(other.get(name), runs[0].get(name), atol=5e-5, err_msg=name)
    alone = pretraining.run(from_dict({
        **values("alone"), "pack": "false", "do_train": False,
        "initial_model": {"bert_config_file": str(shared / "plain.json"),
                          "init_checkpoint": str(tmp_path / "one" / "final_model")}}))
    for name, value in one.evaluation.items():
        assert alone.evaluation[name] == pytest.approx(value, rel=1e-4), name
    speeds = [line["examples_per_second"] for line in metrics_log.read(str(tmp_path / "one"))
              if "examples_per_second" in line]
    assert speeds

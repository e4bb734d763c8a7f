"""Kills and stops of real processes: the same command goes on, and ends with the weights of a run never stopped."""

import json
import signal
import time

import numpy as np
import pytest

from modeling.checkpoints import google
from tests.conftest import TINY_CONFIG, tiny_arrays, write_records
from tests.training.pretraining_process import finish, from_dict, settings, start, start_cluster
from training import metrics_log, pretraining

STEPS = 400


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A run with dropout, a shuffle window and two files, never stopped; and how to start it elsewhere."""
    folder = tmp_path_factory.mktemp("resume")
    config = folder / "bert_config.json"
    config.write_text(json.dumps({**TINY_CONFIG, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}))
    for index in range(2):
        write_records(folder / f"{index}.tfrecord", tiny_arrays(rows=50, seed=index))

    def command(output_dir):
        return settings(config, f"{folder}/*.tfrecord", output_dir, shuffle_buffer=20,
                        num_train_steps=STEPS,
                        loop={"save_checkpoints_steps": 20, "seconds_per_report": 0.05})

    pretraining.run(from_dict(command(folder / "whole")))
    return folder / "whole", command


def wait_for_checkpoint(folder, process, step):
    deadline = time.monotonic() + 120
    while not list(folder.glob(f"model.ckpt-{step}.index")):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.005)


def assert_same_end(folder, whole):
    run, expected = google.read(f"{folder}/model.ckpt-{STEPS}"), google.read(f"{whole}/model.ckpt-{STEPS}")
    for name in expected.names:
        np.testing.assert_allclose(run.get(name), expected.get(name), atol=1e-6, err_msg=name)


def test_killed_run_ends_with_the_weights_of_one_never_killed(shared, tmp_path):
    whole, command = shared
    process = start(command(tmp_path))
    wait_for_checkpoint(tmp_path, process, 40)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not list(tmp_path.glob(f"model.ckpt-{STEPS}.index"))
    assert "Resuming from step" in finish(start(command(tmp_path)))
    assert_same_end(tmp_path, whole)
    steps = [line["step"] for line in metrics_log.read(str(tmp_path)) if line["kind"] == "train"]
    assert steps == sorted(set(steps))


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_signal_saves_before_the_end_and_the_same_command_resumes(shared, tmp_path, stop):
    whole, command = shared
    process = start(command(tmp_path))
    wait_for_checkpoint(tmp_path, process, 20)
    process.send_signal(stop)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    stopped = int(printed.rsplit("Stopped at step ", 1)[1].split()[0].replace(",", ""))
    assert (tmp_path / f"model.ckpt-{stopped}.index").exists()
    assert stopped < STEPS
    assert f"Resuming from step {stopped}" in finish(start(command(tmp_path)))
    assert_same_end(tmp_path, whole)


def test_sigterm_of_one_machine_stops_all_of_them_at_one_step(shared, tmp_path):
    _, command = shared
    first, second = start_cluster(command(tmp_path), 2)
    wait_for_checkpoint(tmp_path, first, 20)
    second.send_signal(signal.SIGTERM)
    stopped = [process.communicate(timeout=120)[0].rsplit("Stopped at step ", 1)[1].split()[0]
               for process in (first, second)]
    assert stopped[0] == stopped[1]
    assert (tmp_path / f"model.ckpt-{stopped[0]}.index").exists()
    assert int(stopped[0]) < STEPS


def test_machine_that_dies_ends_the_other_and_both_resume(shared, tmp_path):
    _, command = shared
    first, second = start_cluster(command(tmp_path), 2)
    wait_for_checkpoint(tmp_path, first, 40)
    second.send_signal(signal.SIGKILL)
    printed, _ = first.communicate(timeout=120)
    assert first.returncode == 1 and "Another machine does not answer any more" in printed
    printed = [finish(process) for process in start_cluster(command(tmp_path), 2)]
    assert "Resuming from step" in printed[0]
    # Two replicas draw other dropout masks than one device: the end is reached, not that of the run on one.
    assert (tmp_path / f"model.ckpt-{STEPS}.index").exists()

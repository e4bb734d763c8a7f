"""The best evaluation's weights stay, ties go to the first, and patience ends a run."""

import numpy as np
import tensorflow as tf

from finetuning.best_model import BestModel, read_evaluations
from modeling.checkpoints import google
from training.run_directory import RunDirectory


def run(folder, scores, patience=0):
    best = BestModel(RunDirectory(str(folder)), "f1", patience)
    stops = [best.add(step, {"f1": score, "loss": 1.0}, {"w": tf.Variable(float(step))})
             for step, score in enumerate(scores, start=1)]
    return best, stops


def test_weights_of_the_best_evaluation_are_kept(tmp_path):
    best, _ = run(tmp_path, [0.1, 0.9, 0.9, 0.5])
    assert best.best["step"] == 2
    assert google.read(best.prefix).get("w") == 2.0
    assert {path.name.partition(".data")[0] for path in (tmp_path / "best_model").glob("*.data*")} == {
        "bert_model.ckpt-2"}
    lines = best.table().splitlines()
    assert lines[0].split() == ["step", "f1", "loss"]
    assert [line.endswith("best") for line in lines] == [False, False, True, False, False]


def test_the_best_weights_up_to_the_newest_checkpoint_stay_for_a_run_that_resumes_there(tmp_path):
    directory = RunDirectory(str(tmp_path))
    directory.save(2, {"w": tf.Variable(2.0)})
    run(tmp_path, [0.5, 0.4, 0.9])
    resumed = BestModel(directory, "f1", 0, read_evaluations(str(tmp_path), 2))
    assert google.read(resumed.prefix).get("w") == 1.0
    directory.save(3, {"w": tf.Variable(3.0)})
    best = BestModel(directory, "f1", 0, read_evaluations(str(tmp_path), 3))
    best.remove_others()
    assert len(list((tmp_path / "best_model").glob("*.index"))) == 1 and google.read(best.prefix).get("w") == 3.0


def test_patience_counts_evaluations_without_a_better_one(tmp_path):
    assert run(tmp_path, [0.1, 0.9, 0.9, 0.5, 0.95, 0.1], patience=2)[1] == [False, False, False, True, False, False]
    assert not any(run(tmp_path, [0.9, 0.1, 0.1, 0.1])[1])


def test_resumed_run_forgets_evaluations_it_will_make_again(tmp_path):
    run(tmp_path, [0.5, 0.9, 0.4])
    directory = RunDirectory(str(tmp_path))
    resumed = BestModel(directory, "f1", 1, read_evaluations(str(tmp_path), 1))
    assert [each["step"] for each in resumed.evaluations] == [1]
    finished = BestModel(directory, "f1", 1, read_evaluations(str(tmp_path), 3))
    assert finished.best["step"] == 2 and finished.given_up


def test_machines_after_the_first_write_nothing(tmp_path):
    best = BestModel(RunDirectory(str(tmp_path / "run"), writable=False), "f1")
    best.add(1, {"f1": np.float64(0.5)}, {"w": tf.Variable(1.0)})
    assert not (tmp_path / "run").exists() and best.best["step"] == 1

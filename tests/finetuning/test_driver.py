"""The driver on a tiny task: learning, resume, the best weights, predictions from a finished folder, messages."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from finetuning import description, driver
from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import google, load
from modeling.config import BertConfig
from modeling.models import QuestionAnsweringModel, named_variables
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tests import cluster
from tests.conftest import WORDS, temporary_files_in
from tests.finetuning.process import from_dict, run, settings
from training import metrics_log


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with sentences whose label says which words they are made of."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for split, rows in (("train", 64), ("dev", 24), ("test", 10)):
        lines = ["text\tlabel"] if split != "test" else ["text"]
        for row in range(rows):
            words = rng.choice(WORDS[:45] if row % 2 else WORDS[45:], rng.integers(2, 20))
            lines.append(" ".join(words) + ("" if split == "test" else f"\t{'yes' if row % 2 else 'no'}"))
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def task(data):
    return {"task_name": "custom", "text_a_column": "text", "label_column": "label", "header": True,
            "max_seq_length": 24, **{f"{split}_file": str(data / f"{split}.tsv") for split in ("train", "dev", "test")}}


@pytest.fixture(scope="module")
def start(tiny_release):
    return {"init_checkpoint": str(tiny_release / "bert_model.ckpt")}


@pytest.fixture(scope="module")
def trained(task, start, tmp_path_factory):
    """Folder of a run of 16 steps with evaluations, and what it reported."""
    folder = tmp_path_factory.mktemp("trained")
    values = settings(folder, initial_model=start, loop={"eval_every_steps": 4, "save_checkpoints_steps": 4},
                      do_eval=True, do_predict=True, num_train_epochs=6.0, keep_checkpoints=True,
                      optimization={"learning_rate": 3e-3})
    with temporary_files_in(folder.parent / "temporary"):
        return folder, run(task, values)


def test_run_writes_no_temporary_file(trained):
    assert list((trained[0].parent / "temporary").iterdir()) == []


def test_task_is_learned_and_metrics_are_written(trained):
    folder, report = trained
    assert report.evaluation["eval_accuracy"] > 0.8
    written = dict(line.split(" = ") for line in (folder / "eval_results.txt").read_text().splitlines())
    assert float(written["eval_accuracy"]) == report.evaluation["eval_accuracy"]
    assert written["global_step"] == str(report.step)
    losses = [line["loss"] for line in metrics_log.read(str(folder)) if line["kind"] == "train"]
    assert losses[-1] < losses[0]
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")


def test_final_model_is_the_best_evaluation_s(trained):
    folder, report = trained
    evaluations = json.loads((folder / "evaluations.json").read_text())
    assert [each["step"] for each in evaluations] == [*range(4, 48, 4), 48]
    best = max(evaluations, key=lambda each: each["eval_accuracy"])
    assert report.step == best["step"] and report.evaluation["eval_accuracy"] == best["eval_accuracy"]
    kept = google.read(str(folder / f"best_model/bert_model.ckpt-{best['step']}"))
    final = load.find(str(folder / "final_model")).reader
    assert kept.names == final.names
    assert all((kept.get(name) == final.get(name)).all() for name in kept.names)


def test_finished_folder_predicts_with_nothing_but_the_input(trained, task, tmp_path):
    folder, report = trained
    before = (folder / "test_results.tsv").read_text()
    (folder / "test_results.tsv").unlink()
    known = description.read(str(folder))
    again = run({"task_name": known["task_name"], "labels": known["labels"], "text_a_column": known["text_a_column"],
                 "header": True, "max_seq_length": known["max_seq_length"], "test_file": task["test_file"]},
                settings(folder, do_train=False, do_predict=True))
    assert set(again.predictions) == set(report.predictions)
    assert (folder / "test_results.tsv").read_text() == before


def test_finished_folder_predicts_for_a_task_of_another_metric(trained, task):
    folder, report = trained
    class OtherTask(ClassificationTask):
        metric = "f1"

    again = driver.run(OtherTask(ClassificationSettings(**task)),
                       from_dict(settings(folder, do_train=False, do_predict=True)))
    assert again.step == report.step


@pytest.mark.parametrize("options", [{"static_shapes": "true"}, {"hardware": {"xla": "true"}}], ids=["static", "xla"])
def test_predictions_do_not_depend_on_padding(trained, task, tmp_path, options):
    folder, _ = trained
    run(task, settings(tmp_path, initial_model={"init_checkpoint": str(folder)}, do_train=False, do_predict=True,
                       **options))
    padded, bucketed = (np.loadtxt(path / "test_results.tsv") for path in (tmp_path, folder))
    np.testing.assert_allclose(padded, bucketed, atol=1e-5)


def test_stopped_run_resumes_to_the_same_weights(task, start, tmp_path):
    whole = settings(tmp_path / "whole", initial_model=start)
    run(task, whole)
    run(task, settings(tmp_path / "cut", initial_model=start, loop={"stop_at_step": 5}))
    run(task, settings(tmp_path / "cut", initial_model=start))
    one, other = (load.find(str(tmp_path / name)).reader for name in ("whole", "cut"))
    for name in one.names:
        np.testing.assert_allclose(one.get(name), other.get(name), atol=1e-6)


def test_two_devices_train_the_weights_of_one(task, start, tmp_path):
    run(task, settings(tmp_path / "one", initial_model=start, optimization={"learning_rate": 1e-3}))
    two = settings(tmp_path / "two", initial_model=start, optimization={"learning_rate": 1e-3}, do_eval=True,
                   hardware={"strategy": "mirrored"})
    done = subprocess.run([sys.executable, "-m", "tests.finetuning.process",
                           json.dumps({"task": task, "settings": two}), "2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 CPU replicas" in done.stdout and "evaluation at step 16" in done.stdout
    one, other = (load.find(str(tmp_path / name)).reader for name in ("one", "two"))
    for name in one.names:
        np.testing.assert_allclose(one.get(name), other.get(name), atol=5e-5)


def test_two_machines_train_the_weights_of_one(task, start, tmp_path):
    run(task, settings(tmp_path / "one", initial_model=start, do_predict=True))
    two = settings(tmp_path / "two", initial_model=start, do_eval=True, do_predict=True)
    machines = [subprocess.Popen(
        [sys.executable, "-m", "tests.finetuning.process", json.dumps({"task": task, "settings": two}), "1"],
        env={**os.environ, **each}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for each in cluster.environments(2)]
    first, second = (machine.communicate(timeout=240)[0] for machine in machines)
    assert [machine.returncode for machine in machines] == [0, 0], first + second
    assert "2 CPU replicas on 2 machines" in first and "evaluation at step" not in second
    one, other = (load.find(str(tmp_path / name)).reader for name in ("one", "two"))
    for name in one.names:
        np.testing.assert_allclose(one.get(name), other.get(name), atol=5e-5)
    predictions = [np.loadtxt(tmp_path / name / "test_results.tsv") for name in ("one", "two")]
    np.testing.assert_allclose(*predictions, atol=1e-4)


def test_early_stop_ends_a_run_that_gets_no_better_and_stays_ended(task, start, tmp_path, capsys):
    values = settings(tmp_path, initial_model=start, loop={"eval_every_steps": 2}, early_stop=2, num_train_epochs=10.0,
                      optimization={"learning_rate": 1e-9})
    report = run(task, values)
    assert report.step == 2
    steps = [each["step"] for each in json.loads((tmp_path / "evaluations.json").read_text())]
    assert steps == [2, 4, 6]
    assert "The weights of step 2 are the best." in capsys.readouterr().out
    assert run(task, values).step == 2
    assert [each["step"] for each in json.loads((tmp_path / "evaluations.json").read_text())] == steps
    assert "holds this run, finished; its model is that of step 2." in capsys.readouterr().out


def test_finished_run_keeps_one_copy_of_its_weights_and_reports_the_same_again(task, start, tmp_path):
    values = settings(tmp_path, initial_model=start, loop={"eval_every_steps": 4}, do_eval=True)
    report = run(task, values)
    assert not list(tmp_path.glob("model.ckpt*")) and not (tmp_path / "best_model").exists()
    before = (tmp_path / "final_model/bert_model.ckpt.data-00000-of-00001").read_bytes()
    again = run(task, values)
    assert (again.step, again.evaluation, again.final_model) == (report.step, report.evaluation, report.final_model)
    assert (tmp_path / "final_model/bert_model.ckpt.data-00000-of-00001").read_bytes() == before
    with pytest.raises(BertError, match="this run is finished, and the checkpoints to train it further were removed"):
        run(task, {**values, "num_train_epochs": 4.0})
    assert run(task, values).evaluation == report.evaluation


def test_finished_run_whose_checkpoints_are_kept_can_be_extended(task, start, tmp_path):
    values = settings(tmp_path, initial_model=start, keep_checkpoints=True)
    assert run(task, values).step == 16
    assert run(task, {**values, "num_train_epochs": 3.0}).step == 24
    with pytest.raises(BertError, match=r"num_train_epochs was 3\.0, is 2\.0"):
        run(task, values)


def test_evaluation_that_a_kill_cut_short_is_made_by_the_next_start(task, start, tmp_path):
    values = settings(tmp_path / "whole", initial_model=start, loop={"eval_every_steps": 8}, do_eval=True)
    run(task, values)
    cut = settings(tmp_path / "cut", initial_model=start, loop={"eval_every_steps": 8, "stop_at_step": 8})
    run(task, cut)
    (tmp_path / "cut/evaluations.json").write_text("[]")  # as a kill after the checkpoint of step 8 leaves it
    run(task, {**cut, "loop": {**cut["loop"], "stop_at_step": 0}, "do_eval": True})
    whole, cut = (json.loads((tmp_path / name / "evaluations.json").read_text()) for name in ("whole", "cut"))
    assert [each["step"] for each in cut] == [8, 16]
    assert [pytest.approx(each) for each in whole] == cut


def test_second_process_in_a_folder_is_refused(task, start, tmp_path):
    with files.lock(str(tmp_path)), pytest.raises(BertError, match="another process is writing there"):
        run(task, settings(tmp_path, initial_model=start))


def test_link_in_the_folder_is_refused(task, start, tmp_path):
    (tmp_path / "outside").write_text("")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/metrics.jsonl").symlink_to(tmp_path / "outside")
    with pytest.raises(BertError, match=r"metrics\.jsonl: a symbolic link"):
        run(task, settings(tmp_path / "run", initial_model=start))
    assert (tmp_path / "outside").read_text() == ""


@pytest.mark.parametrize(("name", "content", "message"), [
    ("evaluations.json", "{}", "evaluations.json: not a state file"),
    ("evaluations.json", '[{"step": "x"}]', r"evaluations.json: not a state file .*\[0\].step is a string"),
    ("run.json", "[1]", "run.json: not a state file"),
    ("metrics.jsonl", '{"step": 1}\n', "metrics.jsonl, line 1: not a report of a run"),
    ("run_finished.json", "{}", "run_finished.json: not a state file"),
])
def test_state_file_of_another_shape_is_one_line(task, start, tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(BertError, match=message) as error:
        run(task, settings(tmp_path, initial_model=start))
    assert "\n" not in str(error.value)

def test_head_of_another_task_is_dropped_and_said_so(tiny_release, task, tmp_path, capsys):
    config = BertConfig.from_json_file(str(tiny_release / "bert_config.json"))
    values = {name: variable.numpy() for name, variable in named_variables(QuestionAnsweringModel(config)).items()}
    google.write(str(tmp_path / "first/bert_model.ckpt"), values)
    config.to_json_file(str(tmp_path / "first/bert_config.json"))
    run(task, settings(tmp_path / "second", num_train_epochs=0.2, initial_model={
        "init_checkpoint": str(tmp_path / "first"), "vocab_file": str(tiny_release / "vocab.txt")}))
    printed = capsys.readouterr().out
    assert "unused: cls/squad/output_bias, cls/squad/output_weights" in printed
    assert "at initial values: output_weights, output_bias" in printed


def test_checkpoint_without_the_head_is_not_evaluated(task, start, tmp_path):
    with pytest.raises(BertError, match=r"not a trained custom model \(output_weights is missing\)"):
        run(task, settings(tmp_path, initial_model=start, do_train=False, do_eval=True))


@pytest.mark.parametrize(("changes", "message"), [
    ({"do_train": False}, "Nothing to do: pass --do_train=true"),
    ({"early_stop": 2}, "--early_stop counts evaluations during training: pass --eval_every"),
    ({"do_train": False, "do_predict": True, "initial_model": {}}, "no trained model there. Train first"),
    ({"initial_model": {}}, "No model given. Pass --bert_config_file"),
])
def test_wrong_settings_are_one_line(task, start, tmp_path, changes, message):
    with pytest.raises(BertError, match=message) as error:
        run(task, settings(tmp_path, **{"initial_model": start, **changes}))
    assert "\n" not in str(error.value)


def test_sequence_longer_than_the_model_is_refused(task, start, tmp_path):
    with pytest.raises(BertError, match=r"--max_seq_length=64 exceeds the model's 32 positions"):
        run({**task, "max_seq_length": 64}, settings(tmp_path, initial_model=start))


@pytest.mark.parametrize(("parts", "message"), [
    (3, r"--train_batch_size=8 does not divide into 1 replica of 3 micro-batches each"), (4, None)])
def test_batch_is_cut_into_micro_batches_where_it_divides(task, start, tmp_path, parts, message):
    values = settings(tmp_path / "cut", initial_model=start, optimization={"gradient_accumulation_steps": parts})
    if message:
        with pytest.raises(BertError, match=message):
            run(task, values)
        return
    run(task, values)
    run(task, settings(tmp_path / "whole", initial_model=start))
    one, other = (load.find(str(tmp_path / name)).reader for name in ("whole", "cut"))
    for name in one.names:
        np.testing.assert_allclose(one.get(name), other.get(name), atol=1e-4)


def test_finished_run_goes_before_the_checkpoint_it_started_from(trained, task, start):
    folder, _ = trained
    before = (folder / "test_results.tsv").read_text()
    run(task, settings(folder, initial_model=start, do_train=False, do_predict=True))
    assert (folder / "test_results.tsv").read_text() == before


def test_deterministic_runs_predict_the_same_bits(task, start, tmp_path):
    results = []
    for name in ("one", "two"):
        values = settings(tmp_path / name, initial_model=start, do_predict=True, hardware={"deterministic": True})
        told = json.dumps({"task": task, "settings": values})
        done = subprocess.run([sys.executable, "-m", "tests.finetuning.process", told, "1"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        results.append((tmp_path / name / "test_results.tsv").read_text())
    assert results[0] == results[1]


def test_mistake_in_test_data_is_told_before_training(task, start, tmp_path):
    with pytest.raises(BertError, match="no such file"):
        run({**task, "test_file": str(tmp_path / "gone.tsv")},
            settings(tmp_path / "run", initial_model=start, do_predict=True))
    assert not list(tmp_path.glob("run/model.ckpt*"))


def test_vocabulary_that_is_missing_or_too_large_is_refused(tiny_release, task, tmp_path):
    config, larger = str(tiny_release / "bert_config.json"), tmp_path / "vocab.txt"
    larger.write_text((tiny_release / "vocab.txt").read_text() + "".join(f"more{number}\n" for number in range(10)))
    (tmp_path / "alone").mkdir()
    BertConfig.from_json_file(config).to_json_file(str(tmp_path / "alone/bert_config.json"))
    with pytest.raises(BertError, match="No vocabulary found: give --vocab_file"):
        run(task, settings(tmp_path / "run", initial_model={
            "bert_config_file": str(tmp_path / "alone/bert_config.json")}))
    with pytest.raises(BertError, match="has 105 word pieces, the model 100"):
        run(task, settings(tmp_path / "run", initial_model={"bert_config_file": config, "vocab_file": str(larger)}))


def test_folder_of_other_data_or_settings_is_refused(trained, task, data, start, tmp_path):
    folder, _ = trained
    with pytest.raises(BertError, match=r"belongs to a run with other settings: .*learning_rate was 0.003, is 0.01"):
        run(task, settings(folder, initial_model=start, num_train_epochs=6.0))
    (tmp_path / "train.tsv").write_text((data / "train.tsv").read_text() + "w1 w2\tyes\n")
    with pytest.raises(BertError, match="data was"):
        run({**task, "train_file": str(tmp_path / "train.tsv")}, settings(
            folder, initial_model=start, num_train_epochs=6.0, optimization={"learning_rate": 3e-3}))


def test_ensemble_averages_the_scores_of_its_members(task, start, tmp_path):
    names = ["one", "two"]
    for seed, name in enumerate(names):
        run(task, settings(tmp_path / name, initial_model=start, optimization={"random_seed": seed}, do_predict=True))
    members = tuple(str(tmp_path / name) for name in names)
    run(task, settings(tmp_path / "both", do_train=False, do_predict=True, ensemble=members))
    one, two, both = (np.log(np.loadtxt(tmp_path / name / "test_results.tsv")) for name in (*names, "both"))
    margin = [scores[:, 1] - scores[:, 0] for scores in (one, two, both)]
    assert np.abs(margin[0] - margin[1]).max() > 1e-3
    np.testing.assert_allclose(margin[2], (margin[0] + margin[1]) / 2, atol=1e-4)
    with pytest.raises(BertError, match="--ensemble averages finished runs"):
        run(task, settings(tmp_path / "x", ensemble=members))

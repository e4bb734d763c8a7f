"""What a person sees: speed without the compilation, time left, results in the release's form, a curve."""

import json
import re

import pytest

from foundation.durations import duration
from foundation.errors import BertError
from training import curve, metrics_log, reporting
from training.run_directory import RunDirectory

METRICS = {"loss": 7.25, "masked_lm_loss": 6.5, "masked_lm_accuracy": 0.125, "learning_rate": 1e-4,
           "gradient_norm": 2.0}


@pytest.fixture
def reporter(tmp_path, monkeypatch):
    clock = iter([0.0, 10.0, 15.0, 20.0])
    monkeypatch.setattr(reporting.time, "monotonic", lambda: next(clock))
    return reporting.Reporter(RunDirectory(str(tmp_path)), 1000, 32, 128)


def test_first_line_says_that_it_holds_the_compilation_and_later_ones_say_speed_and_time_left(reporter, capsys):
    reporter.train(1, METRICS)
    reporter.train(11, METRICS)
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("(10 s, compilation included)")
    assert second == ("step    11/1,000  loss 7.25  mlm loss 6.5  mlm acc 0.125  lr 1.00e-04  "
                      "64.0 examples/s  8,192 tokens/s  left 0:08:14")


def test_results_are_written_as_the_release_writes_them(reporter, tmp_path):
    reporter.evaluation(5, {"masked_lm_loss": 1.5, "loss": 2.0})
    assert (tmp_path / "eval_results.txt").read_text() == "global_step = 5\nloss = 2.0\nmasked_lm_loss = 1.5\n"


def test_lines_after_the_step_of_a_restart_are_dropped(reporter, tmp_path):
    for step in (10, 20, 30):
        reporter.train(step, METRICS)
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"kind": "train", "st')  # a process killed while it wrote
    assert [line["step"] for line in metrics_log.read(str(tmp_path))] == [10, 20, 30]


def test_restart_rewrites_the_metrics_up_to_its_step(tmp_path):
    directory = RunDirectory(str(tmp_path))
    before = reporting.Reporter(directory, 100, 1, 1)
    for step in (10, 20, 30):
        before.train(step, METRICS)
    directory.drop_reports_after(20)
    assert [line["step"] for line in metrics_log.read(str(tmp_path))] == [10, 20]


def test_report_after_half_a_line_is_whole(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"kind": "tr')  # a process killed at its first report
    directory = RunDirectory(str(tmp_path))
    directory.drop_reports_after(0)
    reporting.Reporter(directory, 100, 1, 1).train(10, METRICS)
    assert [line["step"] for line in metrics_log.read(str(tmp_path))] == [10]


def test_an_evaluation_made_again_is_reported_once(tmp_path):
    for loss in (2.0, 1.0):
        reporter = reporting.Reporter(RunDirectory(str(tmp_path)), 100, 1, 1)
        reporter.train(10, METRICS)
        reporter.evaluation(10, {"loss": loss})
    lines = metrics_log.read(str(tmp_path))
    assert [line["kind"] for line in lines] == ["train", "train", "eval"] and lines[-1]["loss"] == 1.0


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00:00"), (59.6, "0:01:00"), (3661, "1:01:01"), (-5, "0:00:00")])
def test_duration(seconds, shown):
    assert duration(seconds) == shown


def test_curve_is_a_picture_of_what_was_reported(tmp_path):
    reporter = reporting.Reporter(RunDirectory(str(tmp_path)), 100, 1, 1)
    for step in (10, 20):
        reporter.train(step, METRICS)
    reporter.evaluation(20, METRICS)
    panels = (curve.Panel("loss, nats", {"loss": "loss"}, reference=("entropy", 6.0)), curve.PRETRAINING_ACCURACY)
    curve.draw(str(tmp_path), str(tmp_path / "curve.png"), "A run", panels)
    content = (tmp_path / "curve.png").read_bytes()
    curve.draw(str(tmp_path), str(tmp_path / "none.png"), "A run", (curve.Panel("F1", {"f1": "f1"}),))
    assert not (tmp_path / "none.png").exists()
    assert content.startswith(b"\x89PNG")
    assert re.search(rb"IEND", content)


@pytest.mark.parametrize(("values", "problem"), [
    ({"loss": [1.5]}, "loss is a list"), ({"loss": 10**400}, "loss is a number too large"), ({"loss": None}, "null"),
    ({"step": 10**400}, "step is a number too large"), ({"step": 1.5}, "step is a number"),
    ({"kind": "test"}, "neither train nor eval"), ({"kind": []}, "kind is a list"),
])
def test_report_of_another_form_is_one_line(tmp_path, values, problem):
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"kind": "train", "step": 1, "loss": 1.5, **values}) + "\n")
    with pytest.raises(BertError, match=rf"metrics\.jsonl, line 1: not a report of a run \(.*{problem}.*\)\. Remove"):
        curve.draw(str(tmp_path), str(tmp_path / "curve.png"), "run", [curve.LOSS])

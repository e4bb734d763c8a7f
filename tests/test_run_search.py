"""The search as a command: killed or stopped at any time, it resumes where it was."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.light_start import run_light

RUNS = [f"lr{rate}_batch32_epochs3_seed1" for rate in ("5e-05", "3e-05", "2e-05")]


@pytest.fixture
def start(repository, tmp_path):
    """Starts a search of three runs over the stand-in; its flags are the stand-in's."""
    started = []

    def begin(*flags, script=repository / "tests/search/stand_in.py"):
        process = subprocess.Popen(
            [sys.executable, str(repository / "run_search.py"), str(script), "--learning_rate=5e-5,3e-5,2e-5",
             "--random_seed=1", f"--output_dir={tmp_path}/s", "--", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def journal(folder):
    path = folder / "s/journal.txt"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_what_was_finished_before_it_was_stopped_is_not_run_again(number, start, tmp_path):
    flags = ("--wait_at=3e-05", f"--until={tmp_path}/go_on")
    first = start(*flags)
    log = tmp_path / "s" / RUNS[1] / "output.log"
    until(lambda: log.exists() and "step" in log.read_text())
    first.send_signal(number)
    error = first.communicate()[1]
    if number != signal.SIGKILL:
        assert (first.returncode, error) == (
            1, f"error: Stopped by {number.name}; 1 of 3 runs are finished. Rerun the same command to resume.\n")
        assert (tmp_path / "s" / RUNS[1] / "saved").exists()
    assert journal(tmp_path) == RUNS[:2]
    (tmp_path / "go_on").touch()
    second = start(*flags)
    output, error = second.communicate(timeout=120)
    assert (second.returncode, error) == (0, "")
    assert journal(tmp_path) == [*RUNS[:2], *RUNS[1:]]
    assert output.splitlines()[-2] == f"Best on dev: {RUNS[0]}, eval_accuracy 0.5600 ({tmp_path}/s/{RUNS[0]})"
    assert os.readlink(tmp_path / "s/best") == RUNS[0]


def test_failures_end_in_an_error_after_all_runs(start, tmp_path):
    process = start("--fail_at=3e-05")
    _output, error = process.communicate(timeout=120)
    assert journal(tmp_path) == RUNS
    assert (process.returncode, error) == (
        1, f"error: 1 of 3 runs failed: {RUNS[1]}. Rerun the same command to repeat them.\n")


def test_an_unknown_script_is_named(start):
    process = start(script="run_everything")
    assert process.communicate(timeout=120)[1] == (
        "error: 'run_everything' is neither run_classifier, run_multiple_choice, run_ner, run_squad nor the path of a "
        "script of your own.\n")


@pytest.mark.parametrize(("arguments", "code", "text"), [
    (("run_classifier", "--help"), 0, "--delete_models  (default false)"),
    (("run_ner", "--learnin_rate=1", "--output_dir=s"), 1, "Did you mean --learning_rate?"),
    (("run_ner",), 1, "error: --output_dir is required"),
])
def test_help_and_mistakes_in_flags_need_no_tensorflow(arguments, code, text, repository, tmp_path):
    returned, output, error = run_light(repository / "run_search.py", *arguments, cwd=tmp_path)
    assert returned == code and text in output + error

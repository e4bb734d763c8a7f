"""Ctrl-C and SIGTERM from the first import of a script on: one line, and no traceback."""

import os
import signal
import subprocess
import sys
import threading

import pytest

# Seconds after the script's first import. At the later ones it may have ended by itself, with a line on its flags.
MOMENTS = (0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.35, 0.5)


def interrupted(path, number, moment):
    """Sends a signal to a script; returns its exit code and what it wrote to stderr."""
    # The interpreter notes each import on stderr when it is done.
    process = subprocess.Popen([sys.executable, "-X", "importtime", str(path)], stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, text=True)
    with process:
        for line in process.stderr:
            if line.rstrip().endswith("foundation.start"):
                break
        timer = threading.Timer(moment, process.send_signal, [number])
        timer.start()
        lines = [line for line in process.stderr if not line.startswith("import time:")]
        timer.cancel()
    return process.returncode, lines


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("script", ["run_ner.py", "run_search.py", "data_prep/split_sentences.py"])
def test_ctrl_c_is_one_line_while_a_script_starts(repository, script, moment):
    code, lines = interrupted(repository / script, signal.SIGINT, moment)
    assert len(lines) == 1 and lines[0].startswith(("Interrupted (SIGINT).", "error: ")), (code, lines)
    if not moment:
        assert (code, lines) == (130, ["Interrupted (SIGINT).\n"])


def test_sigterm_is_one_line_too(repository):
    assert interrupted(repository / "run_squad.py", signal.SIGTERM, 0) == (143, ["Interrupted (SIGTERM).\n"])


def test_installed_command_is_a_script(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(repository))
    (tmp_path / "bert-run-ner").write_text("import sys\nfrom run_ner import cli\nsys.exit(cli())\n")
    assert interrupted(tmp_path / "bert-run-ner", signal.SIGINT, 0) == (130, ["Interrupted (SIGINT).\n"])


def test_program_that_imports_a_script_keeps_its_handlers(repository):
    program = """
import signal
import run_ner, data_prep.split_sentences
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
"""
    subprocess.run([sys.executable, "-c", program], cwd=repository, check=True)


def test_job_that_ignores_ctrl_c_still_does(repository):
    process = subprocess.Popen([sys.executable, "run_ner.py"], cwd=repository, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate()[1].startswith("error: ") and process.returncode == 1

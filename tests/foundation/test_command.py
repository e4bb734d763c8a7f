"""The frame of a script: a mistake is one line on stderr and exit code 1; help and mistakes need no TensorFlow."""

import subprocess
import sys

PROGRAM = """
import dataclasses
from foundation import command
from foundation.errors import BertError
from foundation.settings import OTHER, Settings, setting

@dataclasses.dataclass(frozen=True, kw_only=True)
class Some(Settings):
    size: int = setting(1, group=OTHER, help="A size.")

def main(settings):
    {body}

command.run_with(main, Some, "Does something.")
import sys
assert "tensorflow" not in sys.modules or "import tensorflow" in {body!r}
"""


def run(body, *arguments):
    return subprocess.run([sys.executable, "-c", PROGRAM.format(body=body), *arguments], capture_output=True, text=True)


def test_mistake_is_one_line_and_exit_code_one():
    done = run("raise BertError('a.txt: wrong.')")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "error: a.txt: wrong.\n")


def test_wrong_flag_is_named():
    done = run("print('ran')", "--sise=3")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: --sise: no such flag. Did you mean --size? See --help.\n"


def test_help_is_printed_and_nothing_runs():
    done = run("print('ran')", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Does something.\n") and "--size" in done.stdout and "ran" not in done.stdout


def test_settings_reach_main_and_tensorflow_is_imported_quietly_when_it_is_needed():
    done = run("import tensorflow; print(settings.size, bool(tensorflow.config.list_physical_devices('GPU')))",
               "--size=3")
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "3", "")


def test_tensorflow_is_imported_without_a_folder_for_temporary_files():
    done = run("import tempfile; tempfile.tempdir = '/full'; import tensorflow; print('done')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_interrupt_is_one_line():
    done = run("raise KeyboardInterrupt")
    assert done.returncode == 130
    assert done.stderr == "Interrupted (SIGINT). Nothing that is already written is lost: rerun the same command.\n"


def test_sigterm_is_one_line():
    done = run("import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)")
    assert done.returncode == 143 and done.stderr.startswith("Interrupted (SIGTERM).")


def test_stop_of_a_training_run_is_its_message():
    done = run("from foundation.errors import Stopped; raise Stopped('Stopped at step 3.')")
    assert (done.returncode, done.stderr) == (130, "Stopped at step 3.\n")


def test_characters_that_the_terminal_lacks_are_escaped():
    done = run("import os; print(chr(0xd800), chr(0xe9), os.linesep, end='')")
    assert (done.returncode, done.stdout) == (0, "\\ud800 \xe9 \n")

"""The frame of a script: a mistake is one line on stderr and exit code 1, without a traceback."""

import subprocess
import sys


def run(body, *arguments):
    program = f"from foundation import command\nfrom foundation.errors import BertError\n{body}\ncommand.run(main)"
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)


def test_mistake_is_one_line_and_exit_code_one():
    done = run("def main(_):\n    raise BertError('a.txt: wrong.')")
    assert done.returncode == 1
    assert done.stderr == "error: a.txt: wrong.\n"


def test_argument_that_is_no_flag_is_named():
    done = run("def main(_):\n    print('ran')", "do_train")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: 'do_train' is not a flag. Flags are written --name=value; see --help.\n"


def test_success_prints_nothing_of_tensorflow():
    done = run("def main(_):\n    print('ran')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")

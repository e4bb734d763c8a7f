"""Jobs killed at file operations and started again, a sample of `benchmarks.reliability`; and whether such
kills find faults."""

import re
import subprocess
import sys

PROGRAM = """
import os, sys
from benchmarks.reliability import kills

folder = sys.argv[1]
path = os.path.join(folder, "file")

def sound():
    with open(path + ".new", "w") as file:
        file.write("0123456789")
    os.replace(path + ".new", path)

def in_place():
    if not os.path.exists(path):
        with open(path, "w") as file:
            file.write("0123456789")

def leaves_a_file():
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w") as file:
        file.write("0123456789")
    os.replace(temporary, path)

for run in (sound, in_place, leaves_a_file):
    print(kills.kill_points(kills.Job(run.__name__, folder, run), twice=3).summary())
"""


def test_kills_find_halves_and_leftovers(repository, tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "job")], cwd=repository, capture_output=True,
                          text=True, check=True)
    sound, *unsound = re.split(r"\n(?=\w)", done.stdout)
    assert re.match(r"sound +3 +[4-9] +0", sound)
    assert "different: file" in unsound[0]
    assert "left over: file." in unsound[1]


def test_jobs_killed_at_some_operations_end_the_same(repository):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.reliability", "--jobs=data", "--points=4", "--twice=1", "--damaged=3",
         "--processes=0"],
        cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    totals = r"^(1[6-9]|2\d|3\d) kills, 0 faults.*[1-3] were followed by damage"
    assert re.search(totals, done.stdout, re.MULTILINE), done.stdout

"""A sample of `python -m benchmarks.reliability`: jobs killed at file operations end as an undisturbed run does."""

import re
import subprocess
import sys


def test_jobs_killed_at_some_operations_end_the_same(repository):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.reliability", "--jobs=conversion,finetuning", "--points=0", "--twice=1",
         "--processes=0"], cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    kills, faults = re.search(r"^(\d+) kills, (\d+) faults", done.stdout, re.MULTILINE).groups()
    assert int(kills) >= 6 and faults == "0", done.stdout


def test_an_unknown_job_is_one_line(repository):
    done = subprocess.run([sys.executable, "-m", "benchmarks.reliability", "--jobs=all"], cwd=repository,
                          capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: --jobs: 'all' is not one of data, pretraining")

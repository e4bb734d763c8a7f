"""A small sample of `benchmarks.reliability.fuzz`; and whether it finds faults."""

import re
import subprocess
import sys

PROGRAM = """
import os, sys, time
from benchmarks.reliability import fuzz
from foundation.errors import BertError

def make(folder):
    open(folder + "/a", "w").write("valid")

def read(reaction):
    def react(folder):
        if open(folder + "/a", "rb").read() != b"valid":
            reaction(folder)
    return react

def refuse(folder):
    raise BertError(folder + ": bad.")

def raise_other(folder):
    raise ValueError

def forget_the_name(folder):
    raise BertError("bad.")

def fail_to_check(folder):
    assert False

def end(folder):
    os._exit(3)

def take_too_long(folder):
    time.sleep(60)

def take_too_much(folder):
    bytearray(1 << 40)

fuzz._SECONDS = fuzz._SECONDS_TO_PASS = 1
for reaction in (print, refuse, raise_other, forget_the_name, fail_to_check, end, take_too_long, take_too_much):
    folder = os.path.join(sys.argv[1], reaction.__name__)
    os.mkdir(folder)
    reader = fuzz.Reader(reaction.__name__, make, {"a": lambda data, rng: b"x"}, read(reaction))
    report = fuzz.feed(reader, 2, 0, folder)
    print(reaction.__name__, dict(report.outcomes), [text.strip().splitlines()[-1] for _, text in report.crashes])
"""


def test_what_is_neither_a_result_nor_one_line_counts_as_a_crash(repository, tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=repository, capture_output=True,
                          text=True, check=True)
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert found.pop("print") == "{'accepted': 2} []"
    assert found.pop("refuse") == "{'refused': 2} []"
    assert all(text.startswith("{'crashed': 2}") for text in found.values()), found
    assert len(found) == 6
    assert "ends the process (3)" in found["end"]
    assert "MemoryError" in found["take_too_much"]


def test_no_reader_crashes_on_a_sample(repository):
    done = subprocess.run([sys.executable, "-m", "benchmarks.reliability.fuzz", "--inputs=500"], cwd=repository,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(r"^all +500 +(\d+) +(\d+) +0 ", done.stdout, re.MULTILINE)
    # Neither is everything taken nor everything refused.
    assert min(map(int, counts.groups())) > 100, done.stdout

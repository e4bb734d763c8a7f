"""Units of work: results in order, nothing done twice, errors passed on."""

import functools
import multiprocessing
import os
import signal

import pytest

from data_prep import workers
from data_prep.settings import RecordSettings, SentenceSettings, VocabularySettings
from data_prep.workers import Workers
from foundation import flags, parallel
from foundation.errors import BertError


def double(unit, log):
    """Notes that it ran, and returns twice the number."""
    with open(log, "a") as file:
        file.write(f"{unit[0]}\n")
    return {"value": 2 * unit[1]}


def fail_at(unit, number, error):
    if unit[1] == number:
        raise error
    return {}


def die(unit):
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_a_worker(item):
    if multiprocessing.parent_process():
        die(item)


UNITS = [(f"unit{number}", number) for number in range(6)]


@pytest.fixture(scope="module")
def two_workers():
    """Two processes of a fork server, for all tests of this file: starting it takes seconds."""
    with Workers(2) as workers:
        yield workers


def test_results_come_in_the_order_of_the_units(tmp_path, two_workers):
    with Workers(1) as one_worker:
        for name, workers in (("one", one_worker), ("two", two_workers)):
            function = functools.partial(double, log=str(tmp_path / f"{name}.log"))
            results = workers.run(function, UNITS, str(tmp_path / name), "Doubling")
            assert [result["value"] for result in results] == [0, 2, 4, 6, 8, 10]


def test_what_is_done_is_not_done_again(tmp_path):
    log, seen = tmp_path / "log", []
    function = functools.partial(double, log=str(log))
    with Workers(1) as workers:
        workers.run(function, UNITS[:4], str(tmp_path / "done"), "Doubling")
        results = workers.run(
            function, UNITS, str(tmp_path / "done"), "Doubling", after=lambda unit, result: seen.append(unit[0])
        )
    assert log.read_text().split() == [name for name, _ in UNITS]
    assert len(results) == 6
    assert sorted(seen) == [name for name, _ in UNITS]


def test_what_was_done_before_an_error_stays_done(tmp_path):
    function = functools.partial(fail_at, number=2, error=BertError("the disk is full"))
    with Workers(1) as workers, pytest.raises(BertError, match="the disk is full"):
        workers.run(function, UNITS, str(tmp_path), "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["unit0.json", "unit1.json"]


def test_an_error_in_a_worker_is_passed_on(tmp_path, two_workers):
    with pytest.raises(BertError, match=r"^a\.txt: no such file\.$"):
        function = functools.partial(fail_at, number=3, error=BertError("a.txt: no such file."))
        two_workers.run(function, UNITS, str(tmp_path), "")


def test_a_killed_worker_is_reported(tmp_path):
    message = r"worker process was killed.*fewer workers \(--num_workers\)"
    with Workers(2) as crew, pytest.raises(BertError, match=message):
        crew.run(die, UNITS, str(tmp_path), "")


@pytest.mark.parametrize("start", [workers._forked_pool, workers._served_pool])
def test_workers_that_are_killed_while_they_start_are_reported(tmp_path, monkeypatch, start):
    monkeypatch.setattr(parallel, "_start_worker", functools.partial(die, None))
    monkeypatch.setattr(Workers, "_start_pool", lambda self, modules: start(2, modules))
    with Workers(2) as crew, pytest.raises(BertError, match=r"worker process was killed.*\(--num_workers\)"):
        crew.run(double, UNITS, str(tmp_path), "")


def test_a_command_without_the_flag_is_not_told_of_it():
    with pytest.raises(BertError, match=r"Run the same command again\.$"):
        list(parallel.map_in_order(die_in_a_worker, range(20), 2))


@pytest.mark.parametrize("kind", [SentenceSettings, VocabularySettings, RecordSettings])
def test_at_least_one_worker(kind):
    line = flags.CommandLine([kind])
    line.parse(["script", "--input_file=a", "--output_file=b", "--num_workers=0"]
               + ["--vocab_file=v"] * (kind is RecordSettings))
    with pytest.raises(BertError, match="--num_workers=0: must be at least 1"):
        line.settings(kind)

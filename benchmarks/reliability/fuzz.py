"""Damaged, extreme and hostile input for every reader: each ends in a right result or in one plain line.

    python -m benchmarks.reliability.fuzz
    python -m benchmarks.reliability.fuzz --readers=records,squad --inputs=1000 --output_dir=/tmp/crashes

An input is a valid file with mutations (`benchmarks.reliability.mutations`), read in a forked process with bounds on
time and memory. Anything else than a result, which is compared with a simpler reading where there is one, or a
BertError of one line that names the file, counts as a crash.
"""

import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import platform
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.reliability import kills
from benchmarks.reliability.mutations import Mutation
from foundation import command, files
from foundation.errors import BertError
from foundation.settings import EVALUATION, SAVING, Settings, setting

# Inputs that one process reads.
_TOGETHER = 100
# Of CPU time; other jobs may be running, so the time that passes has a wider bound.
_SECONDS = 5
_SECONDS_TO_PASS = 4 * _SECONDS
_MORE_MEMORY = 3 << 30
_LONGEST_MESSAGE = 1000
# After so long in one input a process is stopped from outside: no Python code ran that could have ended it.
_HANGS_AFTER = 60

ACCEPTED, REFUSED, CRASHED = "accepted", "refused", "crashed"


@dataclasses.dataclass(frozen=True)
class Reader:
    """One reader of files, or of a text that is no file.

    Attributes:
        name: for the report.
        make: writes a valid input into a folder.
        targets: how each of its files is mutated; an input has one of them mutated.
        read: reads the folder; raises AssertionError where a result is not right.
        named: one of these is in every message; none: the folder's path.
    """

    name: str
    make: Callable[[str], object]
    targets: dict[str, Mutation]
    read: Callable[[str], object]
    named: tuple[str, ...] = ()


def one_file(name: str, file: str, text: str, mutation: Mutation, read: Callable[[str], object],
         named: tuple[str, ...] = ()) -> Reader:
    """A reader of one file, of this text where it is valid."""
    return Reader(name, lambda folder: files.write_text(os.path.join(folder, file), text), {file: mutation},
                  lambda folder: read(os.path.join(folder, file)), named)


def expect(found: Any, expected: Any) -> None:
    """Raises AssertionError where a result is another one than expected."""
    assert found == expected, f"{str(found)[:200]} where {str(expected)[:200]} is right"


def bytes_of(path: str) -> bytes:
    """What a file holds, read without this project's code."""
    return pathlib.Path(path).read_bytes()


@dataclasses.dataclass
class Report:
    """What became of a reader's inputs.

    Attributes:
        name: of the reader.
        outcomes: number of inputs by outcome.
        crashes: (number of the input, what happened).
        seconds: that it took.
    """

    name: str
    outcomes: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    crashes: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    def summary(self) -> str:
        """A row of the table."""
        counts = "".join(f"{self.outcomes[outcome]:10,}" for outcome in (ACCEPTED, REFUSED, CRASHED))
        return f"{self.name:20}{self.outcomes.total():10,}{counts}{self.seconds:10.1f}"


HEADING = f"{'reader':20}{'inputs':>10}{'accepted':>10}{'refused':>10}{'crashes':>10}{'seconds':>10}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FuzzSettings(Settings):
    """How much is read."""

    inputs: int = setting(10_000, at_least=1, group=EVALUATION, help="Inputs, shared among the readers.")
    random_seed: int = setting(0, at_least=0, group=EVALUATION, help="Seed of the mutations.")
    readers: tuple[str, ...] = setting((), group=EVALUATION, help="Names of readers. Default: all.")
    output_dir: str | None = setting(None, group=SAVING, help="Folder to keep the inputs that crash. Default: none.")


def run(settings: FuzzSettings, readers: Sequence[Reader]) -> Iterator[Report]:
    """Feeds readers.

    Args:
        settings: FuzzSettings.
        readers: those to feed.

    Yields:
        Report of each.
    """
    import tensorflow_text  # noqa: F401  (before the fork, and not run: children share it)

    for index, reader in enumerate(readers):
        count = settings.inputs // len(readers) + (index < settings.inputs % len(readers))
        with tempfile.TemporaryDirectory() as folder:
            yield feed(reader, count, settings.random_seed, folder, settings.output_dir)


def feed(reader: Reader, count: int, seed: int, folder: str, keep: str | None = None) -> Report:
    """Feeds one reader.

    Args:
        reader: Reader.
        count: of inputs.
        seed: of the mutations.
        folder: an empty one to work in.
        keep: folder for inputs that crash.
    """
    started = time.monotonic()
    valid, work = os.path.join(folder, "valid"), os.path.join(folder, "work")
    os.mkdir(valid)
    status, log, _ = kills.run_forked(lambda: (reader.make(valid), _copy(valid, work), reader.read(work)))
    if status:
        raise RuntimeError(f"{reader.name} does not read its valid input: {log}")
    report, first = Report(reader.name), 0
    while first < count:
        for number, outcome, text in _outcomes_of(reader, range(first, min(count, first + _TOGETHER)), seed, valid,
                                                  work):
            report.outcomes[outcome] += 1
            if outcome == CRASHED:
                report.crashes.append((number, text))
                if keep:
                    _prepare(reader, seed, number, valid, os.path.join(keep, f"{reader.name}-{number}"))
            first = number + 1
    report.seconds = time.monotonic() - started
    return report


def _outcomes_of(reader: Reader, numbers: range, seed: int, valid: str, work: str) -> Iterator[tuple[int, str, str]]:
    """What becomes of inputs in one process; it ends early where the process does."""
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.close(read_end)
        _be_the_child(reader, numbers, seed, valid, work, write_end)
    os.close(write_end)
    done = numbers.start
    with os.fdopen(read_end, "rb", buffering=0) as results:
        # The first input waits for what a library does when it first runs.
        while done < numbers.stop and select.select([results], [], [], _HANGS_AFTER)[0]:
            line = results.readline()
            if not line:
                break
            outcome, text = json.loads(line)
            yield done, outcome, text
            done += 1
    if done < numbers.stop:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if done < numbers.stop:
        code = os.waitstatus_to_exitcode(status)
        ended = "hangs" if code == -signal.SIGKILL else f"ends the process ({code})"
        yield done, CRASHED, ended


class _TooSlow(BaseException):
    """Not an Exception, so that no reader takes it for one of a library's."""


def _be_the_child(reader: Reader, numbers: range, seed: int, valid: str, work: str, results: int) -> None:
    status = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        signal.signal(signal.SIGALRM, _stop)
        signal.signal(signal.SIGPROF, _stop)
        with contextlib.suppress(Exception):
            _copy(valid, work)
            reader.read(work)  # what a library does when it first runs counts for no input
        _limit_memory()
        for number in numbers:
            _prepare(reader, seed, number, valid, work)
            outcome, text = _outcome(reader, work)
            os.write(results, (json.dumps((outcome, text[-3000:])) + "\n").encode())
        status = 0
    finally:
        os._exit(status)


def _stop(*_: object) -> None:
    raise _TooSlow


def _limit_memory() -> None:
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + _MORE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _prepare(reader: Reader, seed: int, number: int, valid: str, work: str) -> None:
    """Makes the folder of an input, which follows from the seed and its number."""
    _copy(valid, work)
    rng = random.Random(f"{seed} {reader.name} {number}")
    target = rng.choice(list(reader.targets))
    data = pathlib.Path(valid, target).read_bytes()
    pathlib.Path(work, target).write_bytes(reader.targets[target](data, rng))


def _copy(valid: str, work: str) -> None:
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(valid, work)


def _outcome(reader: Reader, folder: str) -> tuple[str, str]:
    try:
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        signal.alarm(_SECONDS_TO_PASS)
        try:
            reader.read(folder)
        finally:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
        return ACCEPTED, ""
    except BertError as error:
        problem = _problem(str(error), reader.named or (folder,))
        return (CRASHED, f"{problem}: {error}") if problem else (REFUSED, str(error))
    except _TooSlow:
        return CRASHED, f"takes more than {_SECONDS} seconds\n{traceback.format_exc()}"
    except BaseException:
        return CRASHED, traceback.format_exc()


def _problem(message: str, named: tuple[str, ...]) -> str | None:
    """What is wrong with a message; None where nothing is."""
    if len(message.splitlines()) != 1:
        return "not one line"
    if len(message) > _LONGEST_MESSAGE:
        return f"a line of {len(message)} characters"
    return None if any(name in message for name in named) else "does not name the file"


def main(settings: FuzzSettings) -> None:
    """Prints a row for each reader; fails where one crashed."""
    from benchmarks.reliability.data_set_readers import READERS as OF_DATA_SETS
    from benchmarks.reliability.model_readers import READERS as OF_MODELS
    from benchmarks.reliability.state_readers import READERS as OF_STATE
    from benchmarks.reliability.text_readers import READERS as OF_TEXTS

    os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
    readers = {reader.name: reader for reader in (*OF_TEXTS, *OF_DATA_SETS, *OF_STATE, *OF_MODELS)}
    if unknown := set(settings.readers) - set(readers):
        raise BertError(f"--readers={sorted(unknown)[0]}: not one of {', '.join(readers)}.")
    if settings.output_dir:
        files.make_folder(settings.output_dir)
    print(HEADING)
    total = Report("all")
    for report in run(settings, [readers[name] for name in settings.readers or readers]):
        print(report.summary(), flush=True)
        for number, text in report.crashes:
            print(f"    input {number}: {text.strip()}" if settings.output_dir else
                  f"    input {number}: {text.strip().splitlines()[-1][:200]}", flush=True)
        total.outcomes += report.outcomes
        total.seconds += report.seconds
    print(total.summary())
    print(f"Seed {settings.random_seed}, {_processor()}")
    if total.outcomes[CRASHED]:
        raise BertError(f"{total.outcomes[CRASHED]} inputs crashed.")


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    command.run_with(main, FuzzSettings, __doc__)

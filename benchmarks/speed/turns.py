"""Engines that take turns, each in a process of its own, so that other jobs on the machine slow all down alike."""

import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

from benchmarks.speed.job import Case, Cost

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@dataclasses.dataclass(frozen=True)
class Engine:
    """One way of computing a cell of the table.

    Attributes:
        name: of the engine; of several variants of one name, the fastest is measured.
        variant: name of the variant.
        python: interpreter.
        case: Case.
    """

    name: str
    variant: str
    python: str
    case: Case


@dataclasses.dataclass(frozen=True)
class Result:
    """What was measured of one cell.

    Attributes:
        rounds: for each engine that was measured a Cost per round; rounds of the same number are paired.
        trial: for each engine and variant that was tried the Cost of one turn, or what went wrong.
    """

    rounds: Mapping[str, list[Cost]]
    trial: Mapping[tuple[str, str], Cost | str]

    def variant(self, engine: str) -> str:
        """The fastest variant of an engine."""
        return _fastest(self.trial)[engine]

    def costs(self, engine: str, field: str) -> list[float]:
        """One measurement of each round."""
        return [getattr(cost, field) for cost in self.rounds[engine]]

    def median(self, engine: str, field: str) -> float:
        """Its median."""
        return statistics.median(self.costs(engine, field))

    def ratios(self, engine: str, other: str, field: str = "cpu") -> list[float]:
        """How many times more `other` needs than `engine`, in each round."""
        return [theirs / own for own, theirs in zip(self.costs(engine, field), self.costs(other, field))]


class Worker:
    """An engine's process.

    Args:
        engine: Engine.
        process: of `benchmarks.speed.worker`.
        errors: its standard error.
    """

    def __init__(self, engine: Engine, process: "subprocess.Popen[str]", errors: IO[str]) -> None:
        self.engine, self.process, self.errors = engine, process, errors

    def ready(self) -> None:
        """Waits until it is. Raises RuntimeError, with the last line of its errors, where the process has ended."""
        self._answer()

    def turn(self, seconds: float) -> Cost:
        """Lets it work; returns the cost of a unit. Raises RuntimeError as above."""
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
        return Cost(**self._answer())

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.errors.close()

    def _answer(self) -> dict[str, float]:
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self.process.wait()
        self.errors.seek(0)
        lines = [line for line in self.errors.read().splitlines() if line.strip()]
        raise RuntimeError(lines[-1][:200] if lines else f"exit code {self.process.returncode}")


def measure(engines: Sequence[Engine], environment: Mapping[str, str], rounds: int, seconds: float) -> Result:
    """Tries every variant for a turn, then measures the fastest of each engine in paired rounds.

    Args:
        engines: all variants of all engines.
        environment: variables of each process, added to those of this one.
        rounds: after the trial.
        seconds: of a turn.
    """
    trial: dict[tuple[str, str], Cost | str] = {}
    fastest: dict[str, Worker] = {}
    try:
        # Few at a time: models of all variants may not fit into memory together.
        at_once = len(os.sched_getaffinity(0))
        for first in range(0, len(engines), at_once):
            few = [_start(engine, environment) for engine in engines[first : first + at_once]]
            _try_out(few, seconds, trial, fastest)
        costs: dict[str, list[Cost]] = {name: [] for name in fastest}
        for _ in range(rounds):
            for name, worker in fastest.items():
                costs[name].append(worker.turn(seconds))
        return Result(costs, trial)
    finally:
        for worker in fastest.values():
            worker.close()


def _try_out(workers: Sequence[Worker], seconds: float, trial: dict[tuple[str, str], Cost | str],
             fastest: dict[str, Worker]) -> None:
    """Adds the workers' costs to `trial`, and keeps in `fastest` one worker of each engine; closes the others."""
    keys = [(worker.engine.name, worker.engine.variant) for worker in workers]
    for key, worker in zip(keys, workers):
        trial[key] = _tried(worker.ready)
    for key, worker in zip(keys, workers):
        trial[key] = trial[key] or _tried(lambda worker=worker: worker.turn(seconds))
        before = fastest.get(key[0])
        if _fastest(trial).get(key[0]) == key[1]:
            fastest[key[0]], worker = worker, before
        if worker:
            worker.close()


def _start(engine: Engine, environment: Mapping[str, str]) -> Worker:
    errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115, closed by the worker
    process = subprocess.Popen(
        [engine.python, "-m", "benchmarks.speed.worker", f"--case={engine.case.to_json()}"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        env={**os.environ, **environment})
    return Worker(engine, process, errors)


def _tried(action):
    """What it returns, or the text of what went wrong: a variant that does not run is left out, and reported."""
    try:
        return action()
    except RuntimeError as error:
        return str(error)


def _fastest(trial: Mapping[tuple[str, str], Cost | str]) -> dict[str, str]:
    """The variant of each engine that needed the fewest CPU-seconds."""
    found: dict[str, tuple[float, str]] = {}
    for (name, variant), cost in trial.items():
        if isinstance(cost, Cost):
            found[name] = min(found.get(name, (float("inf"), "")), (cost.cpu, variant))
    return {name: variant for name, (_, variant) in found.items()}

"""What an engine measures, and the case that says which: parent and worker both know these."""

import dataclasses
import json
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Case:
    """One engine's task, sent to its process as JSON.

    Attributes:
        part: a function of the engine's module: "pretraining", "finetuning", "prediction" or "product".
        module: the engine's, in this package.
        precision: "float32" or "bfloat16".
        data: what is computed, the same for all engines of a table's cell: the function's other arguments.
        variant: how this engine computes it.
    """

    part: str
    module: str
    precision: str
    data: Mapping[str, Any]
    variant: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def to_json(self) -> str:
        """One line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Case":
        """The reverse."""
        return cls(**json.loads(text))


@dataclasses.dataclass(frozen=True)
class Job:
    """An engine that is ready.

    Attributes:
        runs: what one pass runs.
        weights: how much the cost of each run counts.
        units: of work that a pass stands for: real tokens, rows, or operations.
        warmups: how many of the first runs compile or load something, and so are run before any is measured.
    """

    runs: Sequence[Callable[[], object]]
    weights: Sequence[float]
    units: float
    warmups: int

    @classmethod
    def of(cls, runs: Sequence[Callable[[], object]], units: float, warmups: int) -> "Job":
        """A job whose runs all count alike."""
        return cls(runs, [1.0] * len(runs), units, warmups)


@dataclasses.dataclass
class Cost:
    """Seconds, CPU-seconds, how many of these the kernel took, and page faults; per unit unless stated otherwise."""

    wall: float = 0.0
    cpu: float = 0.0
    system: float = 0.0
    faults: float = 0.0

    def add(self, other: "Cost", weight: float) -> None:
        """Adds another cost."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + weight * getattr(other, field.name))


def cost_of(run: Callable[[], object]) -> Cost:
    """Runs it."""
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    run()
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    system = after.ru_stime - before.ru_stime
    return Cost(wall, after.ru_utime - before.ru_utime + system, system, after.ru_minflt - before.ru_minflt)


def turn(job: Job, seconds: float) -> Cost:
    """Passes until `seconds` are over, at least one; returns the mean cost of a unit."""
    total, passes, started = Cost(), 0, time.perf_counter()
    while not passes or time.perf_counter() - started < seconds:
        for run, weight in zip(job.runs, job.weights):
            total.add(cost_of(run), weight)
        passes += 1
    mean = Cost()
    mean.add(total, 1 / (passes * job.units))
    return mean

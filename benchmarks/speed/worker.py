"""An engine's process: makes its job, then answers each line, a number of seconds, with the cost of a turn as JSON.

It starts as the scripts do, through `foundation.command`, so that every engine has the process settings of the scripts.
"""

import dataclasses
import importlib
import json
import sys
import time

from benchmarks.speed.job import Case, turn
from foundation import command
from foundation.settings import OTHER, Settings, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerSettings(Settings):
    """One process."""

    case: str = setting(group=OTHER, help="A Case as JSON.")


def main(settings: WorkerSettings) -> None:
    """Serves until standard input ends."""
    case = Case.from_json(settings.case)
    started = time.perf_counter()
    engine = importlib.import_module(f"benchmarks.speed.{case.module}")
    job = getattr(engine, case.part)(**case.data, **case.variant, precision=case.precision)
    for run in job.runs[: job.warmups]:
        run()
    print(json.dumps({"ready": time.perf_counter() - started}), flush=True)
    for line in sys.stdin:
        print(json.dumps(dataclasses.asdict(turn(job, float(line)))), flush=True)


if __name__ == "__main__":
    command.run_with(main, WorkerSettings, __doc__)

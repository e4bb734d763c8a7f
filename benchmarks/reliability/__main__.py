"""Kills every job at its file operations, starts it again, and compares what it leaves with an undisturbed run.

    python -m benchmarks.reliability
    python -m benchmarks.reliability --jobs=conversion,extraction
    python -m benchmarks.reliability --jobs=finetuning --points=40 --processes=10
"""

import dataclasses
import os
import sys
import tempfile
from types import ModuleType

from benchmarks.reliability import data_jobs, kills, training_jobs
from benchmarks.reliability.kills import Job, Report
from foundation import command, parallel
from foundation.errors import BertError
from foundation.settings import EVALUATION, Settings, setting

# What --jobs names, and where its jobs are; these begin with the name, except for those of data preparation.
_GROUPS = {"data": data_jobs, "pretraining": training_jobs, "finetuning": training_jobs, "search": training_jobs,
           "conversion": training_jobs, "extraction": training_jobs}


@dataclasses.dataclass(frozen=True, kw_only=True)
class KillSettings(Settings):
    """What to kill, and how often."""

    jobs: tuple[str, ...] = setting(
        tuple(_GROUPS), group=EVALUATION, help=f"Of {', '.join(_GROUPS)}, separated by commas. Default: all.")
    points: int | None = setting(
        None, at_least=0, group=EVALUATION, help="File operations of each job to kill it at. Default: all.")
    twice: int = setting(
        20, at_least=0, group=EVALUATION, help="Further times that the start after the kill is killed too.")
    damaged: int = setting(
        40, at_least=0, group=EVALUATION,
        help="Further times that an intermediate file of create_pretraining_data is damaged before the next start.")
    processes: int = setting(
        15, at_least=0, group=EVALUATION, help="Times that each command is killed as a process.")


def run(settings: KillSettings, folder: str) -> list[Report]:
    """Kills the jobs; prints a line for each.

    Args:
        settings: KillSettings.
        folder: to work in.

    Raises:
        BertError: --jobs names something else.
    """
    for group in settings.jobs:
        if group not in _GROUPS:
            raise BertError(f"--jobs: {group!r} is not one of {', '.join(_GROUPS)}.")
    if set(settings.jobs) - {"data"}:
        training_jobs.import_all()  # before the fork: children share it

    materials = {module: module.write_material(os.path.join(folder, module.__name__))
                 for module in {_GROUPS[group] for group in settings.jobs}}
    reports = []
    print(kills.HEADING)
    for group in settings.jobs:
        module, out = _GROUPS[group], os.path.join(folder, "out")
        for job in module.jobs(materials[module], out):
            if _belongs(job, group, module):
                reports.append(kills.kill_points(job, settings.points, settings.twice, settings.damaged))
                print(reports[-1].summary(), flush=True)
        for job, arguments in module.commands(materials[module], out) if settings.processes else ():
            if _belongs(job, group, module):
                reports.append(kills.kill_processes(job.name, [sys.executable, *arguments], job, settings.processes))
                print(reports[-1].summary(), flush=True)
    return reports


def _belongs(job: Job, group: str, module: ModuleType) -> bool:
    return module is data_jobs or job.name.startswith(group)


def main(settings: KillSettings) -> None:
    """Prints the report; fails where an outcome differed."""
    # Children compute with the same number of threads, and so with the same result.
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_NUM_INTRAOP_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        reports = run(settings, folder)
    faults = sum(len(report.faults) for report in reports)
    kills_of = {name: sum(getattr(report, name) for report in reports) for name in ("kills", "processes", "damaged")}
    print(f"{kills_of['kills']:,} kills, {faults:,} faults, on {parallel.default_num_workers()} cores; "
          f"{kills_of['processes']:,} kills were of commands with all their processes, {kills_of['damaged']:,} were "
          "followed by damage to an intermediate file")
    if faults:
        raise BertError(f"{faults} outcomes differ from the undisturbed run's.")


if __name__ == "__main__":
    command.run_with(main, KillSettings, __doc__)

"""Kills a job at each of its file operations, starts it again, and compares what it leaves with an undisturbed run.

Jobs run in forked children of a process that has imported what they need and has run none of it, so that a kill costs
a fraction of a second. Commands are killed as real processes, with all their workers, at moments spread over their
time.
"""

import dataclasses
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.reliability import kill_hook

Outcome = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Job:
    """What is killed.

    Attributes:
        name: for the report.
        folder: that the job writes to; it is emptied before each run, and is the same for all of them.
        run: does the job in this process.
        prepare: puts into the empty folder what the job needs there.
        outcome: from the folder to what is compared; by default the bytes of all files, so that leftovers differ too.
        intermediates: pattern of the files, below the folder, that may be damaged between a kill and the next start;
            empty where there are none.
        refused: what the next start may say, in a message of its own, where it does not take damaged files over.
    """

    name: str
    folder: str
    run: Callable[[], Any]
    prepare: Callable[[], Any] = lambda: None
    outcome: Callable[[str], Outcome] | None = None
    intermediates: str = ""
    refused: tuple[str, ...] = ()

    def clear(self) -> None:
        """Makes the folder as it is before the job."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.prepare()

    def result(self) -> Outcome:
        """What is compared."""
        return (self.outcome or contents)(self.folder)


@dataclasses.dataclass
class Report:
    """The outcome of kills.

    Attributes:
        name: of the job.
        operations: how many an undisturbed run has.
        kills: how many processes were killed.
        processes: how many of them were commands, with all their workers.
        damaged: after how many of them a file was damaged.
        faults: where the outcome was another, in words.
        seconds: that it took.
    """

    name: str
    operations: int = 0
    kills: int = 0
    processes: int = 0
    damaged: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    def summary(self) -> str:
        """One line for the console, and one for each of the first faults."""
        lines = [f"{self.name:36} {self.operations:10,} {self.kills:6,} {len(self.faults):6,} {self.seconds:8.0f}"]
        return "\n".join(lines + [f"    {fault}" for fault in self.faults[:5]])


HEADING = f"{'job':36} {'operations':>10} {'kills':>6} {'faults':>6} {'seconds':>8}"


def contents(folder: str) -> Outcome:
    """The bytes of all files below a folder, and None for each folder, by path."""
    root = pathlib.Path(folder)
    return {str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
            for path in sorted(root.rglob("*"))}


def kill_points(job: Job, points: int | None = None, twice: int = 0, damaged: int = 0, seed: int = 0) -> Report:
    """Kills a job at its file operations, in forked children.

    Args:
        job: Job.
        points: how many operations, spread evenly; None for each of them.
        twice: so many further times the start after the kill is killed too, both at random operations.
        damaged: so many further times an intermediate file is damaged before the next start, where the job has such.
        seed: of the random operations.

    Returns:
        Report.
    """
    started = time.monotonic()
    job.clear()
    status, log, operations = run_forked(job.run)
    if status:
        raise RuntimeError(f"{job.name} fails undisturbed: {log}")
    expected = job.result()
    report = Report(job.name, operations)
    rng = random.Random(seed)
    chosen = _spread(operations, points)
    plans = [(point,) for point in chosen]
    plans += [(rng.randint(1, operations), rng.randint(1, operations)) for _ in range(twice)]
    for plan in plans:
        _kill(job, plan, report)
        _compare(job, expected, report, f"killed at {plan} of {operations}")
    # A kill may come before there is a file to damage.
    for _ in range(4 * damaged if job.intermediates else 0):
        if report.damaged == damaged:
            break
        point = rng.randint(1, operations)
        _kill(job, (point,), report)
        what = _damage(job, rng)
        report.damaged += what is not None
        _compare(job, expected, report, f"killed at {point} of {operations}, then {what}", job.refused)
    report.seconds = time.monotonic() - started
    return report


def _kill(job: Job, plan: Iterable[int], report: Report) -> None:
    job.clear()
    for point in plan:
        # A start that is not killed has fewer operations left than the point; what it leaves must be right too.
        status, log, _ = run_forked(job.run, point)
        report.kills += status == -signal.SIGKILL
        if status not in (0, -signal.SIGKILL):
            report.faults.append(f"killed at {plan}: {log.strip()[-500:]}")


def _compare(job: Job, expected: Outcome, report: Report, when: str, refused: tuple[str, ...] = ()) -> None:
    """Starts the job again to its end and notes where the outcome is another."""
    status, log, _ = run_forked(job.run)
    if status and any(f"BertError: {job.folder}" in log and each in log for each in refused):
        return
    fault = log.strip()[-500:] if status else difference(expected, job.result())
    if fault:
        report.faults.append(f"{when}: {fault}")


def _damage(job: Job, rng: random.Random) -> str | None:
    """Flips a bit of an intermediate file, cuts it off or removes it; returns what was done, None where none is there.
    """
    found = [path for path in sorted(pathlib.Path(job.folder).glob(job.intermediates))
             if path.is_file() and path.stat().st_size]
    if not found:
        return None
    path = rng.choice(found)
    data = bytearray(path.read_bytes())
    place = rng.randrange(len(data))
    kind = rng.choice(("flipped", "flipped", "cut off", "removed"))
    if kind == "removed":
        path.unlink()
    else:
        if kind == "flipped":
            data[place] ^= 1 << rng.randrange(8)
        path.write_bytes(data if kind == "flipped" else data[:place])
    return f"{path.relative_to(job.folder)} {kind} at byte {place}"


def kill_processes(name: str, command: Sequence[str], job: Job, kills: int) -> Report:
    """Kills a command with all its processes at moments spread over its time.

    Args:
        name: for the report.
        command: what is run; it writes to the job's folder.
        job: its folder and outcome; `run` is not used.
        kills: how many. A command that ends before its moment is started once more, with an earlier one.
    """
    started = time.monotonic()
    durations = []
    for _ in range(2):  # the first start reads what is not in memory yet
        job.clear()
        before = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        durations.append(time.monotonic() - before)
    expected = job.result()
    report = Report(name)
    for number in range(kills):
        moment = min(durations) * (number + 1) / (kills + 1)
        while not _killed_after(moment, command, job):
            moment *= 0.8
        report.kills += 1
        report.processes += 1
        again = subprocess.run(command, capture_output=True, text=True)
        fault = again.stderr.strip()[-500:] if again.returncode else difference(expected, job.result())
        if fault:
            report.faults.append(f"killed after {moment:.2f} s: {fault}")
    report.seconds = time.monotonic() - started
    return report


def _killed_after(seconds: float, command: Sequence[str], job: Job) -> bool:
    """Starts a command and kills it with all its processes; false where it ended before."""
    job.clear()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def difference(expected: Outcome, found: Outcome) -> str | None:
    """What differs between two outcomes, in words; None where nothing does."""
    missing, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    changed = [key for key in expected.keys() & found.keys() if expected[key] != found[key]]
    parts = [f"{word}: {', '.join(sorted(map(str, keys))[:5])}"
             for word, keys in (("missing", missing), ("left over", more), ("different", changed)) if keys]
    return "; ".join(parts) or None


def run_forked(run: Callable[[], Any], stop_at: int | None = None) -> tuple[int, str, int]:
    """Runs a function in a copy of this process.

    Args:
        run: the function.
        stop_at: the file operation to be killed at; None for none.

    Returns:
        exit status, negative for a signal; what it printed; its number of operations, 0 where it was killed.
    """
    log_read, log_write = os.pipe()
    count_read, count_write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        os.close(log_read)
        os.close(count_read)
        os.dup2(log_write, 1)
        os.dup2(log_write, 2)
        _be_the_child(run, stop_at, count_write)
    os.close(log_write)
    os.close(count_write)
    log = b"".join(_read_all(log_read)).decode("utf-8", "replace")
    count = b"".join(_read_all(count_read))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), log, int(count or 0)


def _be_the_child(run: Callable[[], Any], stop_at: int | None, count_write: int) -> None:
    status = 1
    try:
        kill_hook.install(stop_at)
        run()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os.write(count_write, str(kill_hook.kinds.total()).encode())
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _read_all(descriptor: int) -> Iterable[bytes]:
    with os.fdopen(descriptor, "rb") as file:
        while data := file.read(1 << 16):
            yield data


def _spread(total: int, wanted: int | None) -> list[int]:
    """At most so many numbers from 1 to the total, evenly."""
    if wanted is None or wanted >= total:
        return list(range(1, total + 1))
    return sorted({1 + round(index * (total - 1) / max(1, wanted - 1)) for index in range(wanted)})

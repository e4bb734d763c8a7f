"""The processes of a search's runs: started a few at a time, watched, and stopped on a signal."""

import concurrent.futures
import contextlib
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence

from foundation import files
from foundation.durations import duration
from foundation.errors import BertError
from search import results
from search.run import Finished, Run

# Seconds that a process has to write its checkpoint when it is asked to stop.
_PATIENCE = 120
# Last lines of a failed process that the message repeats.
_LAST_LINES = 5


class Queue:
    """Makes those runs of a search that are not finished.

    Args:
        runs: all runs of the search.
        jobs: processes at the same time.
        delete_models: keep only the weights of the best run, at any time.

    Attributes:
        failures: what went wrong, by the name of the run.
    """

    def __init__(self, runs: Sequence[Run], jobs: int = 1, delete_models: bool = False) -> None:
        self.runs = runs
        self.jobs = jobs
        self.delete_models = delete_models
        self.failures: dict[str, str] = {}
        self._processes: set[subprocess.Popen] = set()
        self._lock = threading.Lock()
        self._stopping = False

    def run(self) -> dict[str, str]:
        """Makes the runs.

        Returns:
            `failures`.

        Raises:
            BertError: SIGINT or SIGTERM asked the search to stop; its processes have saved and ended.
        """
        pool = concurrent.futures.ThreadPoolExecutor(self.jobs)
        with _signals_raise():
            try:
                for future in [pool.submit(self._make, run) for run in self.runs if not run.finished]:
                    future.result()
            except _StopRequested as request:
                self._stop(pool)
                done = sum(run.finished is not None for run in self.runs)
                raise BertError(f"Stopped by {request}; {done} of {len(self.runs)} runs are finished. Rerun the same "
                                f"command to resume.") from None
            except BaseException:
                self._stop(pool)
                raise
        pool.shutdown()
        return self.failures

    def _make(self, run: Run) -> None:
        """Makes a run and reports how it ended."""
        place = f"[{self.runs.index(run) + 1}/{len(self.runs)}]"
        print(f"{place} {run.name}", flush=True)
        started = time.monotonic()
        finished = failure = None
        try:
            code, last_lines = self._execute(run)
            if self._stopping:
                return
            if code:
                failure = _failure(code, last_lines)
            else:
                finished = run.finish(time.monotonic() - started)
        except BertError as error:
            failure = str(error)
        if not finished:
            self.failures[run.name] = str(failure)
            print(f"{place} {run.name}: failed, {failure}\n    complete output: {run.log}", flush=True)
            return
        if self.delete_models:
            with self._lock:
                results.delete_all_but_best(self.runs)
        print(f"{place} {run.name}: {finished.metric} {finished.score:.4f} in {duration(finished.seconds)}"
              f"{self._remaining()}", flush=True)

    def _execute(self, run: Run) -> tuple[int | None, list[str]]:
        """Executes the process of a run. Returns its exit code and the last lines of its output."""
        with self._lock:
            if self._stopping:
                return None, []
            # In a session of its own, Ctrl-C at the terminal does not reach it: the search asks it to save and stop.
            process = subprocess.Popen(run.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       errors="replace", start_new_session=True, close_fds=False)
            self._processes.add(process)
        last_lines = self._copy_output(process, run)
        code = process.wait()
        with self._lock:
            self._processes.discard(process)
        return code, last_lines

    def _copy_output(self, process: subprocess.Popen, run: Run) -> list[str]:
        """Copies a process' output to the run's log, and to the console where no other process writes there."""
        last_lines: list[str] = []
        files.make_folder(run.folder)
        with files.open_file(run.log, "a") as log:
            log.write(f"$ {shlex.join(run.command())}\n")
            for line in process.stdout or ():
                log.write(line)
                log.flush()
                if line.strip():
                    last_lines = [*last_lines, line.rstrip()][-_LAST_LINES:]
                if self.jobs == 1:
                    print(f"    {line.rstrip()}", flush=True)
        return last_lines

    def _remaining(self) -> str:
        """`, 0:12:30 left`, from the durations of the finished runs; empty after the last run."""
        ended: list[tuple[Run, Finished]] = [(run, finished) for run in self.runs if (finished := run.finished)]
        names = {run.name for run, _ in ended} | set(self.failures)
        cost = sum(run.cost for run in self.runs if run.name not in names)
        if not cost:
            return ""
        seconds_per_cost = sum(finished.seconds for _, finished in ended) / sum(run.cost for run, _ in ended)
        return f", {duration(cost * seconds_per_cost / self.jobs)} left"

    def _stop(self, pool: concurrent.futures.ThreadPoolExecutor) -> None:
        """Asks the processes to save and stop, and waits for them."""
        with self._lock:
            self._stopping = True
            processes = list(self._processes)
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
        pool.shutdown(cancel_futures=True)


class _StopRequested(Exception):
    """A signal asked the search to stop."""


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """Turns the first SIGINT or SIGTERM into an exception of the main thread; further ones are ignored."""
    def raise_once(number: int, _: object) -> None:
        for each in previous:
            signal.signal(each, lambda *_: None)
        raise _StopRequested(signal.Signals(number).name)

    previous = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    for each in previous:
        signal.signal(each, raise_once)
    try:
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


def _failure(code: int, last_lines: list[str]) -> str:
    """How a process failed: its exit code or signal, then its last lines."""
    reason = f"exit code {code}" if code > 0 else f"ended by {signal.Signals(-code).name}"
    return "\n".join([reason, *(f"    {line}" for line in last_lines)])

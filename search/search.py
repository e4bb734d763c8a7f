"""The paper's way to fine-tune (section 4.1, appendix A.3): a run for each rate, batch size, number of epochs and seed,
and the best on the dev set is kept.

    output_dir/
        search.json        script and flags, so that the folder holds one search
        features/          shared by the runs
        lr5e-05_batch32_epochs3_seed1/
                           a run's own folder, with what it printed in output.log, and finished.json once it is done
        results.tsv        a row a run
        best.json, best    the best run; best is a link to its folder

A run is a process. What is finished is not run again, what was interrupted goes on from its last checkpoint.
"""

import concurrent.futures
import contextlib
import dataclasses
import fcntl
import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import load
from search import results
from training.reporting import duration

SEED = "random_seed"
# Flags that the search sets, and those it sets where the command does not.
_OWN_FLAGS = ("output_dir",)
_DEFAULTS = {"do_train": "true", "do_eval": "true", "keep_checkpoint_max": "1"}
_SHORT = {"learning_rate": "lr", "train_batch_size": "batch", "num_train_epochs": "epochs", SEED: "seed"}
_FINISHED = "finished.json"
_LOG = "output.log"
# Seconds that a child has to write its checkpoint when it is asked to stop.
_PATIENCE = 120


@dataclasses.dataclass(frozen=True)
class SearchSettings:
    """One `run_search.py` command.

    Attributes:
        script: path of the script to run.
        flags: its flags that are the same in each run, as `--name=value`.
        grid: dict of flag name to tuple of str, its values.
        output_dir: folder of the search.
        metric: figure of eval_results.txt that decides; the task's own where None. Of a loss the least is best.
        jobs: runs at once.
        delete_models: keep the weights of the best run only.
    """

    script: str
    flags: tuple
    grid: dict
    output_dir: str
    metric: str | None = None
    jobs: int = 1
    delete_models: bool = False


class Run:
    """One point of the grid, with one seed.

    Args:
        settings: SearchSettings.
        values: dict of flag name to str.

    Attributes:
        name: str, of its folder.
    """

    def __init__(self, settings, values):
        self.settings, self.values = settings, values
        self.name = "_".join(f"{_SHORT.get(name, name)}{re.sub(r'[^-+.0-9A-Za-z]', '-', value)}"
                             for name, value in values.items())
        self.folder = os.path.join(settings.output_dir, self.name)

    @property
    def finished(self):
        """What the run came to, a dict of `metric`, `figures` and `seconds`; None before it is finished."""
        path = os.path.join(self.folder, _FINISHED)
        return files.read_json(path) if files.exists(path) else None

    @property
    def cost(self):
        """How long it takes beside the others."""
        with contextlib.suppress(ValueError):
            return float(self.values.get("num_train_epochs", 1.0)) or 1.0
        return 1.0

    def command(self):
        """List of str: the process."""
        flags = {"cache_dir": os.path.join(self.settings.output_dir, "features"), **_DEFAULTS}
        given = {_flag_name(flag) for flag in self.settings.flags}
        flags = {name: value for name, value in flags.items() if name not in given}
        flags |= {**self.values, "output_dir": self.folder}
        return [sys.executable, self.settings.script, *self.settings.flags,
                *(f"--{name}={value}" for name, value in flags.items())]

    def finish(self, seconds):
        """Notes the figures that the run left. Raises BertError where there are none, or not the one that decides."""
        path = os.path.join(self.folder, "eval_results.txt")
        figures = results.read_figures(path)
        metric = self.settings.metric or self._metric_of_task(figures)
        if metric not in figures:
            raise BertError(f"{path}: holds no {metric!r}. Name another --metric: {', '.join(figures)}.")
        files.write_json(os.path.join(self.folder, _FINISHED),
                         {"metric": metric, "figures": figures, "seconds": round(seconds, 1)})

    def _metric_of_task(self, figures):
        path = os.path.join(self.folder, load.TASK_FILE)
        metric = files.read_json(path).get("metric") if files.exists(path) else None
        choice = [name for name in figures if name != "global_step" and not name.endswith("loss")]
        if metric or len(choice) == 1:
            return metric or choice[0]
        raise BertError(f"Which figure decides? Name one by --metric: {', '.join(figures)}.")

    def delete_models(self):
        """Removes weights and training checkpoints; figures and predictions stay."""
        for pattern in ("model.ckpt-*", "final_model/bert_model.ckpt.*", "best_model/bert_model.ckpt.*"):
            for path in files.glob(os.path.join(self.folder, pattern)):
                files.remove(path)


def runs_of(settings):
    """List of Run: every combination, the seeds of one point beside each other."""
    names = sorted(settings.grid, key=lambda name: name == SEED)
    runs = {}
    for values in itertools.product(*(settings.grid[name] for name in names)):
        each = Run(settings, dict(zip(names, values)))
        if each.name in runs:
            raise BertError(f"Two runs would have the folder {each.folder}. Spell their values differently.")
        runs[each.name] = each
    return list(runs.values())


def run(settings):
    """Runs what is not finished, and says what came of all of it.

    Args:
        settings: SearchSettings.

    Returns:
        search.results.Results.

    Raises:
        BertError: flags that contradict the search, a folder of another search, or one that is at work.
    """
    _check_flags(settings)
    files.make_folder(settings.output_dir)
    with _claimed(settings):
        runs = runs_of(settings)
        before = [each for each in runs if each.finished]
        shape = " × ".join(f"{len(values)} {name}" for name, values in settings.grid.items())
        print(f"{len(runs)} runs ({shape}), {len(before)} of them finished before.", flush=True)
        failures = Queue(settings, runs).run()
        if settings.delete_models:
            results.delete_all_but_best(runs)
        return results.write(settings, runs, failures)


class Queue:
    """The runs that are to be made, some at a time.

    Args:
        settings: SearchSettings.
        runs: list of Run.
    """

    def __init__(self, settings, runs):
        self.settings, self.runs = settings, runs
        self.waiting = [each for each in runs if not each.finished]
        self.failures = {}  # of name to what to say
        self._children, self._lock, self._stopping = set(), threading.Lock(), False

    def run(self):
        """Makes all runs; returns a dict of name to message of those that failed. Ends the process on a signal."""
        pool = concurrent.futures.ThreadPoolExecutor(self.settings.jobs)
        with _signals_raise():
            try:
                for future in [pool.submit(self._one, each) for each in self.waiting]:
                    future.result()
            except _Asked as asked:
                self._stop(pool)
                done = sum(bool(each.finished) for each in self.runs)
                raise BertError(f"Stopped by {asked}; {done} of {len(self.runs)} runs are finished. The same command "
                                f"goes on.") from None
            except BaseException:
                self._stop(pool)
                raise
        pool.shutdown()
        return self.failures

    def _one(self, each):
        place = f"[{self.runs.index(each) + 1}/{len(self.runs)}]"
        print(f"{place} {each.name}", flush=True)
        started = time.monotonic()
        code, lines = self._process(each)
        if self._stopping:
            return
        try:
            if code:
                how = f"exit code {code}" if code > 0 else f"ended by {signal.Signals(-code).name}"
                raise BertError("\n".join([how, *(f"    {line}" for line in lines)]))
            each.finish(time.monotonic() - started)
        except BertError as error:
            self.failures[each.name] = str(error)
            print(f"{place} {each.name}: failed, {error}\n    all it said: {os.path.join(each.folder, _LOG)}",
                  flush=True)
            return
        finished = each.finished
        if self.settings.delete_models:
            with self._lock:
                results.delete_all_but_best(self.runs)
        print(f"{place} {each.name}: {finished['metric']} {finished['figures'][finished['metric']]:.4f} in "
              f"{duration(finished['seconds'])}{self._left()}", flush=True)

    def _process(self, each):
        """Runs the process to its end; returns its exit code and the last lines of what it said."""
        with self._lock:
            if self._stopping:
                return None, []
            # A session of its own: Ctrl-C at the terminal reaches the search, which asks the child to save and stop.
            child = subprocess.Popen(each.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                     errors="replace", start_new_session=True, close_fds=False)
            self._children.add(child)
        last = []
        files.make_folder(each.folder)
        with files.open_file(os.path.join(each.folder, _LOG), "a") as log:
            log.write(f"$ {shlex.join(each.command())}\n")
            for line in child.stdout:
                log.write(line)
                log.flush()
                last = [*last[-4:], line.rstrip()] if line.strip() else last
                if self.settings.jobs == 1:
                    print(f"    {line.rstrip()}", flush=True)
        code = child.wait()
        with self._lock:
            self._children.discard(child)
        return code, last

    def _left(self):
        """`, left 0:12:30`, by what the finished runs took."""
        done = [(each.cost, finished["seconds"]) for each in self.runs if (finished := each.finished)]
        left = sum(each.cost for each in self.waiting if not each.finished and each.name not in self.failures)
        rate = sum(seconds for _, seconds in done) / sum(cost for cost, _ in done)
        return f", left {duration(left * rate / self.settings.jobs)}" if left else ""

    def _stop(self, pool):
        """Asks the children to save and stop, and waits for them."""
        with self._lock:
            self._stopping = True
            children = list(self._children)
        for child in children:
            child.terminate()
        for child in children:
            try:
                child.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
        pool.shutdown(cancel_futures=True)


class _Asked(Exception):
    """A signal asked the search to stop."""


@contextlib.contextmanager
def _signals_raise():
    """Turns the first SIGINT or SIGTERM into an exception of the main thread; further ones are passed over."""
    def raise_once(number, _):
        for each in before:
            signal.signal(each, lambda *_: None)
        raise _Asked(signal.Signals(number).name)

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    for each in before:
        signal.signal(each, raise_once)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextlib.contextmanager
def _claimed(settings):
    """Holds the folder to one search, and to one at a time."""
    noted = os.path.join(settings.output_dir, "search.json")
    wanted = {"script": os.path.basename(settings.script), "flags": sorted(settings.flags)}
    if files.exists(noted):
        before = files.read_json(noted)
        differing = sorted({before["script"], *before["flags"]} ^ {wanted["script"], *wanted["flags"]})
        if differing:
            raise BertError(f"{settings.output_dir} belongs to a search with other flags ({', '.join(differing[:4])}). "
                            f"Name another --output_dir, or remove this folder to start anew.")
    if files.is_remote(settings.output_dir):
        files.write_json(noted, wanted)
        yield
        return
    with open(os.path.join(settings.output_dir, "lock"), "w") as lock:
        # Children inherit it: a run whose search was killed holds the folder until it ends.
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BertError(f"{settings.output_dir}: another search, or a run that it began, is at work there. Wait "
                            f"for it, or end it.") from None
        files.write_json(noted, wanted)
        yield


def canonical(value):
    """A value's one spelling, so that a run is found again: 0.00005 and 5e-5 are 5e-05, 3.0 is 3; other text stays."""
    value = value.strip()
    try:
        number = float(value)
    except ValueError:
        return value
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


def _check_flags(settings):
    for flag in settings.flags:
        name = _flag_name(flag)
        if not flag.startswith("-") or ("=" not in flag and not re.fullmatch(r"--?\w+", flag)):
            raise BertError(f"{flag!r}: behind -- stand flags of {os.path.basename(settings.script)}, as --name=value.")
        if name in settings.grid or name in _OWN_FLAGS:
            raise BertError(f"--{name} stands behind --, but the search sets it. Give it before --.")
    for name, values in settings.grid.items():
        if not values:
            raise BertError(f"--{name}: no value.")


def _flag_name(flag):
    """The name in `--name=value`, `--name` and `--noname`."""
    name = flag.lstrip("-").split("=", 1)[0]
    return name[2:] if "=" not in flag and name.startswith("nodo_") else name

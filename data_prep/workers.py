"""The engine of data jobs: units of work in processes, a unit that is done is never done again.

A unit is a tuple whose first element is its name. What the function returns for it is kept as `<name>.json` in a
folder, written when the unit is done and not before; a job that was killed and is started again finds these and does
the rest. Units must not depend on each other, and the function writes its own files whole or not at all
(`foundation.files.atomic`), so that nothing depends on how many workers there are or when they stopped.
"""

import concurrent.futures
import concurrent.futures.process
import contextlib
import gc
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import signal
import sys
import threading
import warnings

import tensorflow as tf
from tqdm import tqdm

from foundation import files
from foundation.errors import BertError

_ROOT = str(pathlib.Path(__file__).resolve().parent.parent)


class Workers:
    """Runs units of work.

    TensorFlow does not survive a fork once it has run anything. A script, which has run nothing yet, forks its
    workers from itself on entering: TensorFlow is imported once, and its memory shared. Otherwise workers come from a
    fork server, a process that has imported TensorFlow and does nothing else.

    Args:
        num_workers: processes; 1 runs everything in this one.
        nothing_has_run: whether this process has only imported TensorFlow so far.

    Example:
        with Workers(4) as workers:
            results = workers.run(count_words, [("a", "a.txt"), ("b", "b.txt")], "work/counts", "Counting")
    """

    def __init__(self, num_workers, nothing_has_run=False):
        if num_workers < 1:
            raise BertError(f"--num_workers={num_workers} must be at least 1.")
        self._num_workers = num_workers
        self._forks = nothing_has_run
        self._pool = None

    def __enter__(self):
        if self._forks and self._num_workers > 1:
            # A collection would mark, and so copy, every page of what is shared.
            gc.collect()
            gc.freeze()
            self._start_pool("fork")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # threads of imported libraries, all idle
                self._pool.submit(os.getpid).result()  # the first call starts all workers
        return self

    def __exit__(self, *_):
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def run(self, function, units, folder, description, amount=None, measure="units", after=None):
        """Runs a function on every unit that has no result yet.

        Args:
            function: takes a unit and returns a dict that JSON can hold; importable by name, or a partial of such.
            units: list of tuples, the first element a name that is a file name.
            folder: where results are kept.
            description: for the progress bar.
            amount: function from a unit to how much it is, for the progress bar; 1 each where None.
            measure: what the amounts count, for the progress bar.
            after: called in this process with each unit and its result once that is kept, also for units found done.

        Returns:
            list of results, in the order of the units.

        Raises:
            BertError: a unit raised it, or a worker died.
        """
        files.make_folder(folder)
        amount = amount or (lambda unit: 1)
        done = set(os.listdir(folder))
        results, waiting = {}, []
        for unit in units:
            if f"{unit[0]}.json" in done:
                results[unit[0]] = files.read_json(os.path.join(folder, f"{unit[0]}.json"))
            else:
                waiting.append(unit)
        with _progress_bar(description, sum(map(amount, units)), measure) as bar:
            bar.update(sum(amount(unit) for unit in units if unit[0] in results))
            if after:
                for unit in units:
                    if unit[0] in results:
                        after(unit, results[unit[0]])
            for unit, result in self._completed(function, waiting):
                _keep(os.path.join(folder, f"{unit[0]}.json"), result)
                results[unit[0]] = result
                if after:
                    after(unit, result)
                bar.update(amount(unit))
        return [results[unit[0]] for unit in units]

    def _completed(self, function, units):
        """Yields (unit, result) as they come."""
        if self._num_workers == 1 or not units:
            for unit in units:
                yield unit, function(unit)
            return
        if not self._pool:
            self._start_server_and_pool()
        futures = {self._pool.submit(function, unit): unit for unit in units}
        try:
            for future in concurrent.futures.as_completed(futures):
                yield futures.pop(future), future.result()
        except concurrent.futures.process.BrokenProcessPool:
            raise BertError(
                "A worker process was killed from outside, most often because memory ran out. Run the same command "
                "again, with fewer --num_workers if memory is short: it goes on where it stopped."
            ) from None
        finally:
            for future in futures:
                future.cancel()

    def _start_server_and_pool(self):
        # The server finds the modules by this variable.
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if _ROOT not in paths:
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_ROOT, *paths]))
        # foundation first: it imports TensorFlow without its notices.
        multiprocessing.set_forkserver_preload(["foundation", "data_prep.pretraining_job"])
        self._start_pool("forkserver")

    def _start_pool(self, start_method):
        self._pool = concurrent.futures.ProcessPoolExecutor(
            self._num_workers, mp_context=multiprocessing.get_context(start_method), initializer=_start_worker
        )


def _start_worker():
    """In a new worker: leave Ctrl-C to the parent, end with it, keep TensorFlow to one thread and off the GPU."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(RuntimeError):
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)


def _end_with_parent():
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _keep(path, result):
    """Writes a result whole; local and often, so without the detour through TensorFlow's file systems."""
    temporary = f"{path}.tmp"
    with files.writing(path):
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(result, file)
        os.replace(temporary, path)


def _progress_bar(description, total, measure):
    on_terminal = sys.stderr.isatty()
    return tqdm(
        total=total,
        desc=description,
        unit=f" {measure}",
        unit_scale=True,
        mininterval=0.2 if on_terminal else 15,
        ascii=None if on_terminal else True,
    )

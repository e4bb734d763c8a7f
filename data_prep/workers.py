"""Units of work in processes; a unit that is done is never done again.

A unit is a tuple whose first element is its name. What the function returns for it is kept as `<name>.json` in a
folder, written when the unit is done and not before; a job that was killed and is started again finds these files and
does the rest. Units must not depend on each other, and the function writes its own files whole or not at all
(`foundation.files.atomic`), so that nothing depends on how many workers there are or when they stopped.
"""

import concurrent.futures
import gc
import multiprocessing
import os
import pathlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from foundation import files, parallel, state

_ROOT = str(pathlib.Path(__file__).resolve().parent.parent)

Unit = tuple[Any, ...]
Result = dict[str, Any]

_ANY_RESULT = {str: state.ANY}


class Workers:
    """Runs units of work.

    Workers need TensorFlow, which takes seconds to import and does not survive a fork once it has run anything. A
    script imports it when the first unit is due and forks its workers from itself: its memory is shared. Otherwise
    workers come from a fork server, a process that has imported TensorFlow and does nothing else.

    Args:
        num_workers: processes; 1 runs everything in this process.
        may_fork: whether this process is a script without threads of its own. It is forked unless it has imported
            TensorFlow before, and so may have run something (it reads remote files).

    Example:
        with Workers(4) as workers:
            results = workers.run(count_words, [("a", "a.txt"), ("b", "b.txt")], "work/counts", "Counting")
    """

    def __init__(self, num_workers: int, may_fork: bool = False) -> None:
        self._num_workers = num_workers
        self._may_fork = may_fork
        self._pool: concurrent.futures.ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def run(
        self,
        function: Callable[[Any], Result],
        units: Sequence[Unit],
        folder: str,
        description: str,
        amount: Callable[[Any], int] = lambda unit: 1,
        measure: str = "units",
        after: Callable[[Any, Result], None] = lambda unit, result: None,
        schema: Any = _ANY_RESULT,
    ) -> list[Result]:
        """Runs a function on every unit that has no result yet.

        Args:
            function: takes a unit and returns a dict that JSON can hold; importable by name, or a partial of such.
            units: the first element of each is a name that is a file name.
            folder: where results are kept.
            description: for the progress bar.
            amount: function from a unit to its size, for the progress bar.
            measure: what the amounts count, for the progress bar.
            after: called in this process with each unit and its result once that is kept, also for units found done.
            schema: of a result (`foundation.state`).

        Returns:
            The results, in the order of the units.

        Raises:
            BertError: a unit raised it, a worker died, or a result of before is damaged.
        """
        files.make_folder(folder)
        results = _kept(folder, units, schema)
        with _progress_bar(description, sum(map(amount, units)), measure) as bar:
            for unit in units:
                if unit[0] in results:
                    bar.update(amount(unit))
                    after(unit, results[unit[0]])
            for unit, result in self._completed(function, [unit for unit in units if unit[0] not in results]):
                _keep(_result_file(folder, unit), result)
                results[unit[0]] = result
                after(unit, result)
                bar.update(amount(unit))
        return [results[unit[0]] for unit in units]

    def _completed(self, function: Callable[[Any], Result], units: list[Unit]) -> Iterator[tuple[Unit, Result]]:
        """Yields units and their results as they are completed."""
        if self._num_workers == 1 or not units:
            for unit in units:
                yield unit, function(unit)
            return
        futures: dict[concurrent.futures.Future[Result], Unit] = {}
        try:
            with parallel.killed_worker_reported("num_workers"):
                self._pool = self._pool or self._start_pool()
                futures.update({self._pool.submit(function, unit): unit for unit in units})
                for future in concurrent.futures.as_completed(futures):
                    yield futures.pop(future), future.result()
        finally:
            for future in futures:
                future.cancel()

    def _start_pool(self) -> concurrent.futures.ProcessPoolExecutor:
        if self._may_fork and "tensorflow" not in sys.modules:
            return _forked_pool(self._num_workers)
        return _served_pool(self._num_workers)


def _forked_pool(num_workers: int) -> concurrent.futures.ProcessPoolExecutor:
    """A pool of copies of this process."""
    # Imported here and not in each worker, so that they share its memory; and only here, so that mistakes in flags and
    # files have been reported without it.
    import tensorflow_text  # noqa: F401 (imports TensorFlow too)

    # A collection would mark, and so copy, every page of what is shared.
    gc.collect()
    gc.freeze()
    pool = parallel.start_pool(num_workers, "fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of imported libraries, all idle
        pool.submit(os.getpid).result()  # the first call starts all workers
    return pool


def _served_pool(num_workers: int) -> concurrent.futures.ProcessPoolExecutor:
    """A pool of copies of a process that has only imported what they need."""
    # The server finds the modules by this variable.
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _ROOT not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_ROOT, *paths]))
    # foundation first: it keeps the import of TensorFlow quiet.
    multiprocessing.set_forkserver_preload(["foundation", "tensorflow_text", "data_prep.pretraining_job"])
    return parallel.start_pool(num_workers, "forkserver")


def _result_file(folder: str, unit: Unit) -> str:
    return os.path.join(folder, f"{unit[0]}.json")


def _kept(folder: str, units: Sequence[Unit], schema: Any) -> dict[str, Result]:
    """Results of units that are done, by name."""
    names = set(os.listdir(folder))
    advice = f"Remove {os.path.dirname(folder)} and run the same command again."
    return {unit[0]: state.read(_result_file(folder, unit), schema, advice) for unit in units
            if f"{unit[0]}.json" in names}


def _keep(path: str, result: Result) -> None:
    """Writes a result whole, and to the disk: what it stands for is there too."""
    files.write_json(path, result)


def _progress_bar(description: str, total: int, measure: str) -> Any:
    import tqdm  # here: only work needs it, and --help does not

    on_terminal = sys.stderr.isatty()
    return tqdm.tqdm(
        total=total,
        desc=description,
        unit=f" {measure}",
        unit_scale=True,
        mininterval=0.2 if on_terminal else 15,
        ascii=None if on_terminal else True,
    )

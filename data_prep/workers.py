"""Units of work in processes; a unit that is done is never done again.

A unit is a tuple whose first element is its name. What the function returns for it is kept as `<name>.json` in a
folder, with a checksum, written when the unit is done and not before; a job that was killed and is started again finds
these files and does the rest. A unit whose result or whose files were damaged in between is done again. Units must not
depend on each other, and the function writes its own files whole or not at all (`foundation.files.atomic`), so that
nothing depends on how many workers there are or when they stopped.
"""

import concurrent.futures
import gc
import importlib
import json
import multiprocessing
import os
import pathlib
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from data_prep import intermediate
from foundation import files, parallel, state
from foundation.errors import BertError

_ROOT = str(pathlib.Path(__file__).resolve().parent.parent)

Unit = tuple[Any, ...]
Result = dict[str, Any]

_ANY_RESULT = {str: state.ANY}


class Workers:
    """Runs units of work.

    A script forks its workers from itself when there are units to share: they start at once, and share the memory of
    what it has imported. Other processes may have threads, and TensorFlow does not survive a fork once it has run
    anything: workers then come from a fork server, a process that imports what they need and does nothing else.

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
        is_intact: Callable[[Any, Result], bool] = lambda unit, result: True,
        modules: Sequence[str] = (),
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
            is_intact: called with each unit found done and its result: whether its files are still what it wrote. If
                not, it is done again.
            modules: large modules that the function imports, imported before workers are made, which share them.

        Returns:
            The results, in the order of the units.

        Raises:
            BertError: a unit raised it, or a worker died.
        """
        files.make_folder(folder)
        kept = {unit[0]: (unit, kept_result(folder, unit[0], schema)) for unit in units}
        results = {name: result for name, (unit, result) in kept.items() if result and is_intact(unit, result)}
        with _progress_bar(description, sum(map(amount, units)), measure) as bar:
            for unit in units:
                if unit[0] in results:
                    bar.update(amount(unit))
                    after(unit, results[unit[0]])
            left = [unit for unit in units if unit[0] not in results]
            for unit, result in self._completed(function, left, modules):
                _keep(_result_file(folder, unit[0]), result)
                results[unit[0]] = result
                after(unit, result)
                bar.update(amount(unit))
        return [results[unit[0]] for unit in units]

    def _completed(self, function: Callable[[Any], Result], units: list[Unit], modules: Sequence[str]
                   ) -> Iterator[tuple[Unit, Result]]:
        """Yields units and their results as they are completed."""
        if self._num_workers == 1 or len(units) <= 1:
            for unit in units:
                yield unit, function(unit)
            return
        futures: dict[concurrent.futures.Future[Result], Unit] = {}
        try:
            with parallel.killed_worker_reported("num_workers"):
                self._pool = self._pool or self._start_pool(modules)
                futures.update({self._pool.submit(function, unit): unit for unit in units})
                for future in concurrent.futures.as_completed(futures):
                    yield futures.pop(future), future.result()
        finally:
            for future in futures:
                future.cancel()

    def _start_pool(self, modules: Sequence[str]) -> concurrent.futures.ProcessPoolExecutor:
        if self._may_fork and "tensorflow" not in sys.modules:
            return _forked_pool(self._num_workers, modules)
        return _served_pool(self._num_workers, modules)


def _forked_pool(num_workers: int, modules: Sequence[str] = ()) -> concurrent.futures.ProcessPoolExecutor:
    """A pool of copies of this process."""
    for module in modules:
        importlib.import_module(module)
    # A collection would mark, and so copy, every page of what is shared.
    gc.collect()
    gc.freeze()
    pool = parallel.start_pool(num_workers, "fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of imported libraries, all idle
        pool.submit(os.getpid).result()  # the first call starts all workers
    return pool


def _served_pool(num_workers: int, modules: Sequence[str] = ()) -> concurrent.futures.ProcessPoolExecutor:
    """A pool of copies of a process that has only imported what they need."""
    # The server finds the modules by this variable.
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _ROOT not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_ROOT, *paths]))
    # foundation first: it keeps the import of TensorFlow quiet.
    multiprocessing.set_forkserver_preload(["foundation", *modules, "data_prep.pretraining_job"])
    return parallel.start_pool(num_workers, "forkserver")


def kept_result(folder: str, name: str, schema: Any) -> Result | None:
    """The result of a unit that is done; None where it is not, or where the result is damaged, which is reported.

    Args:
        folder: where results are kept.
        name: of the unit.
        schema: of the result.
    """
    path = _result_file(folder, name)
    if not os.path.exists(path):
        return None
    try:
        kept = state.read(path, {"result": schema, "crc32": int})
    except BertError:
        kept = None
    if kept and kept["crc32"] == _crc32(kept["result"]):
        return kept["result"]
    intermediate.report(path, "damaged")
    return None


def _result_file(folder: str, name: str) -> str:
    return os.path.join(folder, f"{name}.json")


def _keep(path: str, result: Result) -> None:
    """Writes a result whole, and to the disk: what it stands for is there too."""
    files.write_json(path, {"result": result, "crc32": _crc32(result)})


def _crc32(result: Result) -> int:
    return zlib.crc32(json.dumps(result, sort_keys=True).encode())


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

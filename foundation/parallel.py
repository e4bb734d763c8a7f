"""Worker processes: how they start and end, what is reported when one is killed, and a function mapped in order."""

import collections
import concurrent.futures.process
import contextlib
import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from foundation.errors import BertError

_ITEMS_WITHOUT_WORKERS = 8
# Workers leave the GPU to the process that trains, and keep TensorFlow to one thread each: there is one for every core.
_ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "-1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}

Item = TypeVar("Item")
Result = TypeVar("Result")


def default_num_workers() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start_pool(num_workers: int, start_method: str = "spawn") -> concurrent.futures.ProcessPoolExecutor:
    """Makes a pool of worker processes, which ignore Ctrl-C and end when this process ends, however it ends.

    Args:
        num_workers: processes.
        start_method: of `multiprocessing`. "spawn" is safe everywhere; "fork" is not once TensorFlow has run anything
            in this process.
    """
    return concurrent.futures.ProcessPoolExecutor(
        num_workers, multiprocessing.get_context(start_method), initializer=_start_worker)


@contextlib.contextmanager
def killed_worker_reported(flag: str | None = None) -> Iterator[None]:
    """Turns the error of a pool that lost a worker, or could not start one, into a BertError.

    Args:
        flag: that sets the number of workers, where the command has one.
    """
    try:
        yield
    except concurrent.futures.process.BrokenProcessPool:
        advice = f", with fewer workers (--{flag}) if memory is short" if flag else ""
        raise BertError("A worker process was killed, most likely because memory ran out. Run the same command again"
                        f"{advice}.") from None


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item], num_workers: int, flag: str | None = None
                 ) -> Iterator[Result]:
    """Maps a function over items with worker processes and yields the results in the order of the items.

    Only a few items per worker are in flight. The first few are done in this process: most inputs are small, and
    workers that import TensorFlow take seconds to start.

    Args:
        function: a module-level function of one item, or a partial of one.
        items: drawn from as the results are taken.
        num_workers: at least 1; with 1, everything runs in this process.
        flag: that sets `num_workers`, where the command has one; for messages.

    Yields:
        `function(item)` for each item.

    Raises:
        BertError: a worker process was killed.
    """
    items = iter(items)
    yield from map(function, itertools.islice(items, _ITEMS_WITHOUT_WORKERS) if num_workers > 1 else items)
    first = list(itertools.islice(items, 1))
    if not first:
        return
    pool = start_pool(num_workers)
    pending: collections.deque[concurrent.futures.Future[Result]] = collections.deque()
    try:
        with killed_worker_reported(flag):
            for item in itertools.chain(first, items):
                pending.append(pool.submit(function, item))
                if len(pending) > 2 * num_workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    """Runs in a new worker: leaves Ctrl-C to the parent, and ends with it or by SIGTERM."""
    os.environ.update(_ENVIRONMENT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a forked worker has its parent's handler
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)

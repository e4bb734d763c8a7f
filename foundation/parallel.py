"""A function over many items by worker processes, the results in order."""

import collections
import concurrent.futures.process
import itertools
import multiprocessing
import os
import signal
import threading

from foundation.errors import BertError

_ITEMS_WITHOUT_WORKERS = 8


def default_num_workers():
    """The processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(function, items, num_workers):
    """Maps a function over items with worker processes, the results in the order of the items.

    Only a few items a worker are in flight. The first few are done in this process: workers take seconds to start,
    and most inputs are small.

    Args:
        function: a module-level function of one item, or a partial of one.
        items: an iterable, drawn from as the results are taken.
        num_workers: int, at least 1.

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
    # Spawned, not forked: TensorFlow, which reads the files, does not survive a fork.
    pool = concurrent.futures.ProcessPoolExecutor(
        num_workers, multiprocessing.get_context("spawn"), initializer=_start_worker
    )
    pending = collections.deque()
    try:
        for item in itertools.chain(first, items):
            pending.append(pool.submit(function, item))
            if len(pending) > 2 * num_workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except concurrent.futures.process.BrokenProcessPool:
        raise BertError(
            "A worker process was killed, most likely for want of memory. Run again with a smaller --num_workers."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker():
    """In a new worker: leave Ctrl-C to the parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)

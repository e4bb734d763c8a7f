"""The folder of a search, which belongs to one search, and to one process at a time.

    search.json        script and flags; a command with others is refused
    features/          tokenised data sets, shared by the runs
    lr5e-05_batch32_epochs3_seed1/
                       a run's own folder (foundation.run_files), with its console output in output.log, and
                       finished.json once it is finished
    results.tsv        a row for each run
    best.json, best    the best run; best is a link to its folder
    lock               held while a search or one of its runs is at work
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from foundation import files, state
from foundation.errors import BertError
from search.script import Script

SEARCH = "search.json"
FINISHED = "finished.json"
LOG = "output.log"
RESULTS = "results.tsv"
BEST = "best.json"
BEST_LINK = "best"
_LOCK = "lock"


@contextlib.contextmanager
def claimed(folder: str, script: Script) -> Iterator[None]:
    """Holds a folder for a search of this process.

    Args:
        folder: where the search is or will be.
        script: what the search runs.

    Raises:
        BertError: the folder belongs to a search with another script or other flags, or one is at work there.
    """
    files.make_folder(folder)
    _check_owner(folder, script)
    if files.is_remote(folder):
        _note_owner(folder, script)
        yield
        return
    with open(os.path.join(folder, _LOCK), "w") as lock:
        # Runs inherit it: one whose search was killed holds the folder until it ends.
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BertError(f"{folder}: in use by another search, or by a run that another search started. Wait for "
                            f"it, or end it.") from None
        _note_owner(folder, script)
        yield


def _check_owner(folder: str, script: Script) -> None:
    path = os.path.join(folder, SEARCH)
    if not files.exists(path):
        return
    noted = state.read(path, {"script": str, "flags": [str]})
    differing = sorted({noted["script"], *noted["flags"]} ^ {script.name, *script.flags})
    if differing:
        raise BertError(f"{folder} belongs to a search with other flags ({', '.join(differing[:4])}). Give another "
                        f"--output_dir, or remove this folder to start over.")


def _note_owner(folder: str, script: Script) -> None:
    files.write_json(os.path.join(folder, SEARCH), {"script": script.name, "flags": sorted(script.flags)})

"""A job's folder of intermediate files: one process works there at a time, and one job's files are never another's."""

import contextlib
import fcntl
import glob
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

from foundation import files
from foundation.errors import BertError

TOKENIZED, STORE, PLANNED, PLAN, CHUNKS = "tokenized", "store", "planned", "plan", "chunks"
# The results of finished units (`data_prep.workers`).
TOKENIZED_DONE, PLANNED_DONE, CHUNKS_DONE, OUTPUTS_DONE = (
    "tokenized_done", "planned_done", "chunks_done", "outputs_done")

# All that a job makes, in this order.
_WORK = (TOKENIZED, TOKENIZED_DONE, STORE, PLANNED, PLANNED_DONE, PLAN, CHUNKS, CHUNKS_DONE, OUTPUTS_DONE)
_JOB_FILE = "job.json"
_LOCK_FILE = "lock"


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
    """Holds the folder for this process; afterwards the folder is removed unless it has a job to resume.

    Raises:
        BertError: another process works there.
    """
    files.make_folder(folder)
    with files.writing(folder), open(os.path.join(folder, _LOCK_FILE), "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BertError(f"{folder}: another process is making these records. Wait for it, or stop it.") from None
        try:
            yield
        finally:
            done = os.path.join(folder, TOKENIZED_DONE)
            if os.path.exists(os.path.join(folder, _JOB_FILE)) and not (os.path.isdir(done) and os.listdir(done)):
                discard(folder)
            os.remove(lock.name)
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def belongs_to(folder: str, job: Any) -> bool:
    """Whether the folder belongs to this job or, with None, to one that was interrupted while it tidied up."""
    path = os.path.join(folder, _JOB_FILE)
    return os.path.exists(path) and files.read_json(path) == job


def begin(folder: str, job: Any) -> None:
    """Marks the folder as this job's, emptied of what another job left there.

    Raises:
        BertError: it holds files that are no job's.
    """
    if os.path.exists(os.path.join(folder, _JOB_FILE)):
        discard(folder)
    if set(os.listdir(folder)) - {_LOCK_FILE}:
        raise BertError(f"--work_dir={folder}: holds other files. Name an empty folder, or one that does not exist.")
    files.write_json(os.path.join(folder, _JOB_FILE), job)


def discard(folder: str) -> None:
    """Removes all that a job made in its folder.

    The mark of a job stays to the end, as that of no job in particular: whatever is left when this is interrupted is
    nobody's to resume, and known to be ours to remove.
    """
    mark = os.path.join(folder, _JOB_FILE)
    files.write_json(mark, None)
    for name in _WORK:
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else pathlib.Path(path).unlink(missing_ok=True)
    for stale in glob.glob(os.path.join(glob.escape(folder), "*.tmp-*")):
        os.remove(stale)
    os.remove(mark)

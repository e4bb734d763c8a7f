"""A job's folder of intermediate files: one process works there at a time, and one job's files are never another's."""

import contextlib
import glob
import hashlib
import os
import pathlib
import shutil
import stat
import tempfile
from collections.abc import Iterator
from typing import Any

from data_prep import intermediate, sentence_pairs
from foundation import files
from foundation.errors import BertError

# Of the folder's files: a job does not take over what another version of this program left.
FORMAT = 2

TOKENIZED, STORE, PLANNED, PLAN, CHUNKS = "tokenized", "store", "planned", "plan", "chunks"
PLAN_DESCRIPTION = PLAN + sentence_pairs.DESCRIPTION_SUFFIX
# The results of finished units (`data_prep.workers`).
TOKENIZED_DONE, PLANNED_DONE, CHUNKS_DONE, OUTPUTS_DONE = (
    "tokenized_done", "planned_done", "chunks_done", "outputs_done")

# All that a job makes, in this order.
_WORK = (TOKENIZED, TOKENIZED_DONE, STORE, PLANNED, PLANNED_DONE, PLAN, PLAN_DESCRIPTION, CHUNKS, CHUNKS_DONE,
         OUTPUTS_DONE)
_JOB_FILE = "job.json"


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
    """Holds the folder for this process; afterwards the folder is removed unless it has a job to resume.

    Raises:
        BertError: another process works there.
    """
    with files.lock(folder):
        try:
            yield
        finally:
            done = os.path.join(folder, TOKENIZED_DONE)
            if _is_a_job_s(folder) and not (os.path.isdir(done) and os.listdir(done)):
                discard(folder)
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def private(name: str) -> str:
    """The folder of the job of a name in the folder for temporary files, where only this user can write.

    Raises:
        BertError: another user has made a folder of that name.
    """
    parent = os.path.join(tempfile.gettempdir(), f"bert-{os.getuid()}")
    with files.writing(parent), contextlib.suppress(FileExistsError):
        os.mkdir(parent, 0o700)
    found = os.lstat(parent)  # not of what a link leads to
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise BertError(f"{parent}: not a folder that only you can use. Remove it, or pass --work_dir.")
    return os.path.join(parent, hashlib.sha256(name.encode()).hexdigest()[:16])


def belongs_to(folder: str, job: Any) -> bool:
    """Whether the folder belongs to this job or, with None, to one that was interrupted while it tidied up."""
    return _is_a_job_s(folder) and files.read_json(os.path.join(folder, _JOB_FILE)) == job


def _is_a_job_s(folder: str) -> bool:
    """Whether the folder has the mark of a job, and not a file of the same name."""
    try:
        found = files.read_json(os.path.join(folder, _JOB_FILE))
    except BertError:
        return False
    return found is None or (isinstance(found, dict) and {"description", "outputs"} <= found.keys())


def begin(folder: str, job: Any) -> None:
    """Marks the folder as this job's, emptied of what another job left there.

    Raises:
        BertError: it holds files that are no job's.
    """
    if _is_a_job_s(folder):
        discard(folder)
    for name in (_JOB_FILE, *_WORK):
        files.remove_leftovers(os.path.join(folder, name))
    if os.listdir(folder):
        raise BertError(f"--work_dir={folder}: holds other files. Remove it, or name an empty folder.")
    files.write_json(os.path.join(folder, _JOB_FILE), job)


def adopt(folder: str) -> None:
    """Marks a default folder, which nobody else uses, as an interrupted job's where its mark is gone or damaged.

    It must hold nothing but what a job makes.
    """
    known, found = {_JOB_FILE, *_WORK}, set(os.listdir(folder))
    if found & known and {name.partition(files.TEMPORARY)[0] for name in found} <= known and not _is_a_job_s(folder):
        intermediate.report(os.path.join(folder, _JOB_FILE), "damaged")
        files.write_json(os.path.join(folder, _JOB_FILE), None)


def forget(folder: str, *names: str) -> None:
    """Removes files and folders of the work folder."""
    for name in names:
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else pathlib.Path(path).unlink(missing_ok=True)


def discard(folder: str) -> None:
    """Removes all that a job made in its folder.

    The mark of a job stays to the end, as that of no job in particular: whatever is left when this is interrupted is
    nobody's to resume, and known to be ours to remove.
    """
    mark = os.path.join(folder, _JOB_FILE)
    files.write_json(mark, None)
    forget(folder, *_WORK)
    for stale in glob.glob(os.path.join(glob.escape(folder), "*.tmp-*")):
        os.remove(stale)
    os.remove(mark)

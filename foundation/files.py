"""Files by path, local or remote (`gs://`): one set of functions for both, and nothing half-written looks whole.

Local paths use Python's own file functions. A path with a scheme goes through `tf.io.gfile`, which is imported at the
first such path: TensorFlow takes seconds to import, and most mistakes in flags and files can be reported without it.
"""

import contextlib
import errno
import fcntl
import glob as local_glob
import hashlib
import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterator
from typing import IO, Any

from foundation.errors import BertError

_OUT_OF_SPACE = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_OUT_OF_SPACE_MESSAGES = ("no space left", "file too large", "disk quota")
TEMPORARY = ".tmp-"  # between a file's name and a number
_NOT_WRITABLE = (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)


# --- Where files are -------------------------------------------------------------------------------------------------


def is_remote(path: str) -> bool:
    """Whether a path names a file system by a scheme, like `gs://bucket/x` or `ram://x`."""
    return "://" in path


def _gfile() -> Any:
    import tensorflow as tf

    return tf.io.gfile


def errors() -> tuple[type[BaseException], ...]:
    """The exceptions that file operations raise: `except files.errors() as error`."""
    tensorflow = sys.modules.get("tensorflow")
    return (OSError, tensorflow.errors.OpError) if tensorflow else (OSError,)


def exists(path: str) -> bool:
    """Whether there is a file or folder."""
    return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def is_folder(path: str) -> bool:
    """Whether there is a folder."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def names_in(folder: str) -> list[str]:
    """Sorted names in a folder, without `/` behind the names of folders."""
    names = _gfile().listdir(folder) if is_remote(folder) else os.listdir(folder)
    return sorted(name.rstrip("/") for name in names)


def glob(pattern: str) -> list[str]:
    """Sorted paths that a pattern matches."""
    return sorted(_gfile().glob(pattern) if is_remote(pattern) else local_glob.glob(pattern))


def size(path: str) -> int:
    """Bytes of a file."""
    return _gfile().stat(path).length if is_remote(path) else os.path.getsize(path)


def modified(path: str) -> int:
    """When a file was last written, in nanoseconds since 1970."""
    return _gfile().stat(path).mtime_nsec if is_remote(path) else os.stat(path).st_mtime_ns


def open_file(path: str, mode: str = "rb") -> IO[Any]:
    """Opens a file; text is UTF-8."""
    if is_remote(path):
        return _gfile().GFile(path, mode)
    return open(path, mode, encoding=None if "b" in mode else "utf-8")


def remove(path: str) -> None:
    """Removes a file."""
    _gfile().remove(path) if is_remote(path) else os.remove(path)


def remove_folder(path: str) -> None:
    """Removes a folder and all that it holds."""
    _gfile().rmtree(path) if is_remote(path) else shutil.rmtree(path)


def rename(source: str, target: str) -> None:
    """Renames a file over whatever has the target's name."""
    _gfile().rename(source, target, overwrite=True) if is_remote(source) else os.replace(source, target)


def copy(source: str, target: str) -> None:
    """Copies a file over whatever has the target's name, also between file systems."""
    if is_remote(source) or is_remote(target):
        _gfile().copy(source, target, overwrite=True)
    else:
        shutil.copyfile(source, target)


def make_folder(path: str) -> None:
    """Makes a folder and its parents where they do not exist. Raises BertError where they cannot be made."""
    if not path:
        return
    with writing(path):
        _gfile().makedirs(path) if is_remote(path) else os.makedirs(path, exist_ok=True)


def match(patterns: str | list[str], flag: str | None = None) -> list[str]:
    """Expands comma-separated names and globs into files.

    Args:
        patterns: str ("a.txt,books/*.txt") or a list of such strings.
        flag: the flag that the patterns came from, for the message.

    Returns:
        list of str: in the order of the patterns, each pattern's files sorted, none twice.

    Raises:
        BertError: a pattern matches no file, or there is no pattern.
    """
    origin = f" (--{flag})" if flag else ""
    if isinstance(patterns, str):
        patterns = patterns.split(",")
    patterns = [pattern.strip() for pattern in patterns if pattern.strip()]
    if not patterns:
        raise BertError(f"No file given{origin}. Give a path, a glob, or several separated by commas.")
    found: dict[str, None] = {}
    for pattern in patterns:
        try:
            names = [name for name in glob(pattern) if not is_folder(name)]
        except errors():
            names = []
        if not names:
            raise BertError(f"{pattern}: no such file, or a glob that matches none{origin}.")
        found.update(dict.fromkeys(names))
    return list(found)


# --- Reading ---------------------------------------------------------------------------------------------------------


def read_bytes(path: str) -> bytes:
    """Reads a whole file. Raises BertError where it cannot be read."""
    try:
        with open_file(path) as file:
            return file.read()
    except errors() as error:
        raise unreadable(path, error) from None


def unreadable(path: str, error: BaseException) -> BertError:
    """The BertError for an error of `errors()` that came up while `path` was read."""
    if isinstance(error, FileNotFoundError) or type(error).__name__ == "NotFoundError":
        return BertError(f"{path}: no such file.")
    return BertError(f"{path}: cannot be read ({_reason(error)}).")


def read_text(path: str) -> str:
    """Reads a whole UTF-8 file. Raises BertError naming the first byte that is not UTF-8."""
    return decode(read_bytes(path), path)


def read_edited_text(path: str) -> str:
    """Reads a whole UTF-8 file that people edit; a byte order mark is dropped.

    Raises:
        BertError: names line and byte of the first byte that is not UTF-8.
    """
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # After a byte order mark the codec counts from behind it; `object` is what it counted in.
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        raise BertError(f"{path}, line {line}, byte {column}: not UTF-8 (0x{error.object[error.start]:02x}). "
                        "Re-encode the file.") from None


def decode(data: bytes, path: str, offset: int = 0, advice: str = "Re-encode the file.", place: str = "") -> str:
    """Decodes UTF-8.

    Args:
        data: the bytes.
        path: the file they come from, for the message.
        offset: where in the file they begin.
        advice: what the user can do, for the message.
        place: more of the place, as ", line 3".

    Raises:
        BertError: names the first byte that is not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BertError(f"{path}{place}: byte {offset + error.start} is not UTF-8 (0x{data[error.start]:02x}). "
                        f"{advice}") from None


def read_json(path: str) -> Any:
    """Reads a JSON file. Raises BertError naming file, line and column of a mistake."""
    return parse_json(read_text(path), path)


def parse_json(text: str, place: str) -> Any:
    """Parses JSON from a source that is not trusted: nesting and numbers without bounds are mistakes too.

    Args:
        text: the JSON.
        place: its file, for the message; of one line of a file, "name, line 3".
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = "" if ", line " in place else f", line {error.lineno}"
        raise BertError(f"{place}{line}, column {error.colno}: not JSON ({error.msg}).") from None
    except RecursionError:
        raise BertError(f"{place}: JSON nested too deeply.") from None
    except ValueError:
        raise BertError(f"{place}: holds a number of thousands of digits.") from None


def sha256(path: str, chunk_bytes: int = 1 << 22) -> str:
    """SHA-256 of a file's content, as 64 hex digits, read a chunk at a time."""
    digest = hashlib.sha256()
    with open_file(path) as file:
        while chunk := file.read(chunk_bytes):
            digest.update(chunk)
    return digest.hexdigest()


# --- Writing ---------------------------------------------------------------------------------------------------------


def write_json(path: str, value: Any) -> None:
    """Writes a value as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def write_text(path: str, text: str) -> None:
    """Writes UTF-8 text, atomically."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str, data: bytes) -> None:
    """Writes a whole file, atomically."""
    with atomic(path) as temporary, open_file(temporary, "wb") as file:
        file.write(data)


@contextlib.contextmanager
def atomic(path: str) -> Iterator[str]:
    """Yields a temporary path in the same folder, renamed to `path` when the block succeeds, removed when it fails.

    The file is on the disk before it has its name, so that not even a power cut leaves half of it. What a killed
    process left of the same file is taken over: temporary names are tried in turn, and those of living processes are
    locked. So no folder has to be searched for leftovers.

    Raises:
        BertError: the disk is full, or the folder cannot be written.
    """
    with writing(path), contextlib.ExitStack() as held:
        make_folder(os.path.dirname(path))
        temporary = f"{path}{TEMPORARY}{os.getpid()}" if is_remote(path) else held.enter_context(_reserved(path))
        try:
            yield temporary
            sync(temporary)
            rename(temporary, path)
        except BaseException:
            with contextlib.suppress(*errors()):
                remove(temporary)
            raise
        sync(os.path.dirname(path) or ".")


@contextlib.contextmanager
def _reserved(path: str) -> Iterator[str]:
    """Yields an empty temporary file of `path` that is this process's while the block lasts."""
    for number in itertools.count():
        temporary = f"{path}{TEMPORARY}{number}"
        left_over = os.path.exists(temporary)
        with open(temporary, "ab") as file:
            if not _locked(file.fileno(), temporary):
                continue
            if left_over:
                _remove_parts(temporary)
                file.truncate(0)
            # Of processes that wrote the same file at once and were killed.
            while os.path.exists(f"{path}{TEMPORARY}{(number := number + 1)}"):
                _remove_leftover(f"{path}{TEMPORARY}{number}")
            yield temporary
            return


def _locked(descriptor: int, path: str) -> bool | None:
    """Locks what is open; false where another process holds it, None where another has renamed or removed it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), os.stat(path)) or None
    except (BlockingIOError, FileNotFoundError) as error:
        return False if isinstance(error, BlockingIOError) else None


def remove_leftovers(path: str) -> None:
    """Removes the temporary files of `path` that no living process is writing."""
    if is_remote(path):
        return
    for leftover in glob(f"{local_glob.escape(path)}{TEMPORARY}*"):
        _remove_leftover(leftover)


def _remove_leftover(temporary: str) -> None:
    with contextlib.suppress(OSError), open(temporary, "rb") as file:
        if _locked(file.fileno(), temporary):
            _remove_parts(temporary)
            os.remove(temporary)


def _remove_parts(temporary: str) -> None:
    """Removes folders of parts that a writer may keep next to its file, under its name."""
    for folder in glob(f"{local_glob.escape(temporary)}-*"):
        shutil.rmtree(folder)


def sync(path: str) -> None:
    """Waits until a local file or folder is on the disk."""
    if is_remote(path):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def lock(folder: str) -> Iterator[None]:
    """Holds a folder for one process at a time; made where it does not exist. A remote folder is not locked.

    Raises:
        BertError: another process holds it.
    """
    if is_remote(folder):
        make_folder(folder)
        yield
        return
    while True:  # again where another process removes the folder in the meantime
        make_folder(folder)
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            locked = _locked(descriptor, folder)
            if locked is False:
                raise BertError(f"{folder}: another process is writing there. Wait for it, or choose another folder.")
            if locked:
                yield
                return
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Turns the errors of a file system while `path` is written into one plain line."""
    try:
        yield
    except errors() as error:
        if _is_out_of_space(error):
            raise BertError(f"{path}: no space left on the disk. Free some and run the same command again.") from None
        if _is_not_writable(error):
            raise BertError(f"{path}: cannot be written ({_reason(error)}).") from None
        raise


def _is_out_of_space(error: Any) -> bool:
    if isinstance(error, OSError):
        return error.errno in _OUT_OF_SPACE
    return any(reason in error.message.lower() for reason in _OUT_OF_SPACE_MESSAGES)


def _is_not_writable(error: Any) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NOT_WRITABLE
    return type(error).__name__ in ("PermissionDeniedError", "FailedPreconditionError")


def _reason(error: Any) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else error.message

"""Files by path, local or `gs://`: everything goes through `tf.io.gfile`, and nothing half-written looks whole."""

import contextlib
import errno
import hashlib
import json
import os

import tensorflow as tf

from foundation.errors import BertError

# What a file system says when it cannot take any more bytes.
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_NO_ROOM_SAID = ("no space left", "file too large", "disk quota")


def is_remote(path):
    """Whether a path names a file system of its own, as `gs://bucket/x` or `ram://x` do."""
    return "://" in path


def match(patterns, flag=None):
    """Expands comma-separated names and globs into files.

    Args:
        patterns: str ("a.txt,books/*.txt") or a list of such strings.
        flag: the flag the patterns came from, for the message.

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
        raise BertError(f"No file is named{origin}. Give a path, a glob, or several separated by commas.")
    found = {}
    for pattern in patterns:
        try:
            names = sorted(tf.io.gfile.glob(pattern))
        except tf.errors.OpError:
            names = []
        names = [name for name in names if not tf.io.gfile.isdir(name)]
        if not names:
            raise BertError(f"{pattern}: no such file, or a glob that matches none{origin}.")
        found.update(dict.fromkeys(names))
    return list(found)


def read_bytes(path):
    """Reads a whole file. Raises BertError where it cannot be read."""
    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            return file.read()
    except tf.errors.NotFoundError:
        raise BertError(f"{path}: no such file.") from None
    except tf.errors.OpError as error:
        raise BertError(f"{path}: cannot be read ({error.message}).") from None


def read_text(path):
    """Reads a whole UTF-8 file. Raises BertError naming the first byte that is not UTF-8."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BertError(
            f"{path}: byte {error.start} is not UTF-8 (0x{data[error.start]:02x}). Re-encode the file."
        ) from None


def read_edited_text(path):
    """Reads a whole UTF-8 file that people edit, in lines: a byte order mark is dropped.

    Raises:
        BertError: names line and byte of the first that is not UTF-8.
    """
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # With a byte order mark in front, the codec counts from behind it; `object` is what it counted in.
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        raise BertError(f"{path}, line {line}, byte {column}: not UTF-8 (0x{error.object[error.start]:02x}). "
                        "Re-encode the file.") from None


def read_json(path):
    """Reads a JSON file. Raises BertError naming file, line and column of a mistake."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise BertError(f"{path}, line {error.lineno}, column {error.colno}: not JSON ({error.msg}).") from None


def write_json(path, value):
    """Writes a value as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def write_text(path, text):
    """Writes UTF-8 text, atomically."""
    with atomic(path) as temporary, tf.io.gfile.GFile(temporary, "wb") as file:
        file.write(text.encode("utf-8"))


@contextlib.contextmanager
def atomic(path):
    """Yields a temporary path beside `path`, renamed to it when the block succeeds and removed when it fails.

    Raises:
        BertError: the disk is full, or the folder cannot be written.
    """
    temporary = f"{path}.tmp-{os.getpid()}"
    try:
        with writing(path):
            make_folder(os.path.dirname(path))
            yield temporary
            tf.io.gfile.rename(temporary, path, overwrite=True)
    except BaseException:
        with contextlib.suppress(tf.errors.OpError, OSError):
            tf.io.gfile.remove(temporary)
        raise


@contextlib.contextmanager
def writing(path):
    """Turns what a file system says while `path` is written into one plain line."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise BertError(f"{path}: no room left on the disk. Free some and run the same command again.") from None
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EISDIR):
            raise BertError(f"{path}: cannot be written ({error.strerror}).") from None
        raise
    except (tf.errors.PermissionDeniedError, tf.errors.FailedPreconditionError) as error:
        raise BertError(f"{path}: cannot be written ({error.message}).") from None
    except tf.errors.OpError as error:
        if not any(reason in error.message.lower() for reason in _NO_ROOM_SAID):
            raise
        raise BertError(f"{path}: no room left on the disk. Free some and run the same command again.") from None


def make_folder(path):
    """Makes a folder and those above it, where they do not exist."""
    if not path:
        return
    with writing(path):
        tf.io.gfile.makedirs(path)


def sha256(path, chunk_bytes=1 << 22):
    """SHA-256 of a file's content, as 64 hex digits, read a chunk at a time."""
    digest = hashlib.sha256()
    with tf.io.gfile.GFile(path, "rb") as file:
        while chunk := file.read(chunk_bytes):
            digest.update(chunk)
    return digest.hexdigest()

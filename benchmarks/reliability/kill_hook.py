"""Kills this process at its n-th file operation. For forked children of `benchmarks.reliability.kills` only.

An operation is whatever changes what a next start finds: a file opened for writing, a write to it, a rename, a removal,
a folder made, an fsync. The process ends by SIGKILL before the operation; a write is done by half first. Libraries that
write with code of their own are wrapped by name (`LIBRARIES`), and the process ends before and after each call.
"""

import builtins
import collections
import functools
import importlib
import io
import os
import signal
import sys
from typing import Any

_OS = ("replace", "rename", "remove", "unlink", "rmdir", "mkdir", "fsync", "truncate", "ftruncate", "link", "symlink",
       "chmod")
# Functions that write files, where their module has been imported.
LIBRARIES = ("tensorflow.raw_ops:SaveV2", "tensorflow.raw_ops:MergeV2Checkpoints", "safetensors.numpy:save_file")

kinds: collections.Counter[str] = collections.Counter()
_stop_at: list[int] = []


def install(stop_at: int | None) -> None:
    """Counts operations from now on.

    Args:
        stop_at: the operation to end at, from 1; None only counts (`kinds`).
    """
    _stop_at[:] = [] if stop_at is None else [stop_at]
    for name in _OS:
        setattr(os, name, _counted(name, getattr(os, name)))
    os.open = _open_of_os(os.open)
    builtins.open = io.open = _open_of_python(io.open)
    for library in LIBRARIES:
        module, _, name = library.partition(":")
        _wrap_library(module, name)


def operation(kind: str, before_end: Any = None) -> None:
    """Counts an operation that is about to happen, and ends the process where it is the one."""
    kinds[kind] += 1
    if _stop_at and kinds.total() == _stop_at[0]:
        if before_end:
            before_end()
        os.kill(os.getpid(), signal.SIGKILL)


def _counted(kind: str, function: Any) -> Any:
    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        operation(kind)
        return function(*arguments, **options)

    return run


def _open_of_os(function: Any) -> Any:
    def run(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            operation("open")
        return function(path, flags, *arguments, **options)

    return run


class _Writer(io.BufferedWriter):
    """A file whose writes are operations; the last one is done by half."""

    def write(self, data: Any) -> int:
        def half() -> None:
            io.BufferedWriter.write(self, bytes(data)[: len(data) // 2])
            self.flush()

        operation("write", half)
        return super().write(data)


def _open_of_python(function: Any) -> Any:
    def run(file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
            newline: str | None = None, **options: Any) -> Any:
        if not set(mode) & set("wax+"):
            return function(file, mode, buffering, encoding, errors, newline, **options)
        operation("open")
        if "+" in mode or buffering == 0:
            return function(file, mode, buffering, encoding, errors, newline, **options)
        binary = _Writer(function(file, mode.replace("t", "").replace("b", "") + "b", 0, **options))
        return binary if "b" in mode else io.TextIOWrapper(binary, encoding or "utf-8", errors, newline)

    return run


def _wrap_library(module: str, name: str) -> None:
    package = module.partition(".")[0]
    if package not in sys.modules:
        return
    owner = importlib.import_module(package)
    for part in module.split(".")[1:]:
        owner = getattr(owner, part, None) or importlib.import_module(f"{owner.__name__}.{part}")
    function = getattr(owner, name)

    def run(*arguments: Any, **options: Any) -> Any:
        operation(name)
        result = function(*arguments, **options)
        operation(name)
        return result

    setattr(owner, name, run)

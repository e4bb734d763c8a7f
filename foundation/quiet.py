"""Imports TensorFlow without its page of notices, whoever imports it first.

TensorFlow's C++ side writes notices before it reads any log level, so they are caught on the file descriptor while the
module is imported. Anything that is not a known notice is passed on, and errors at run time still show.
"""

import contextlib
import importlib.machinery
import os
import re
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

# The last two come from a machine without a GPU: TensorFlow asks for one. `training.devices` reports a GPU that is
# there and that TensorFlow cannot use.
_NOTICE = re.compile(
    r"^(WARNING: All log messages before absl|I\d{4} |.*failed call to cuInit|.*Cannot dlopen some GPU)")


def install() -> None:
    """Makes the first `import tensorflow` of this process quiet, without importing it."""
    # Among several machines, one that dies makes its C++ side report every call that fails; the exception says it too.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3" if os.environ.get("TF_CONFIG") else "2")
    if "tensorflow" not in sys.modules and not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds `tensorflow` as the finders behind it do, and has it executed quietly."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
                  ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "tensorflow":
            return None
        import logging  # here: every script imports this module first

        # With several machines, TensorFlow's Python side reports each step of connecting them.
        logging.getLogger("tensorflow").setLevel(logging.WARNING)
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = _quietly(spec.loader.exec_module)  # type: ignore[method-assign]
        return spec


def _quietly(exec_module):
    def run(module: ModuleType) -> None:
        with _notices_dropped():
            exec_module(module)
            if not os.path.exists("/dev/nvidiactl"):
                # Asked here, where the answer is dropped; TensorFlow remembers it.
                module.config.list_physical_devices("GPU")

    return run


@contextlib.contextmanager
def _notices_dropped() -> Iterator[None]:
    sys.stderr.flush()
    kept = os.dup(2)
    # In memory: the folder for temporary files may be full, or not writable.
    with os.fdopen(os.memfd_create("stderr"), "w+b") as caught:
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            caught.seek(0)
            lines = caught.read().decode("utf-8", "replace").splitlines(keepends=True)
            sys.stderr.write("".join(line for line in lines if not _NOTICE.match(line)))

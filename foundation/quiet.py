"""Imports TensorFlow without its page of notices.

Its C++ side writes them before any log level is read, so they are caught on the file descriptor. What is no known
notice is passed on, and errors at run time still show.
"""

import contextlib
import os
import re
import sys
import tempfile

# The last is what a machine without a GPU answers to the question for one.
_NOTICE = re.compile(r"^(WARNING: All log messages before absl|I\d{4} |.*failed call to cuInit)")


@contextlib.contextmanager
def _notices_dropped():
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as caught:
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


os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

if "tensorflow" not in sys.modules:
    with _notices_dropped():
        import tensorflow as tf

        if not os.path.exists("/dev/nvidiactl"):
            # Asked here, where the answer is dropped; TensorFlow remembers it.
            tf.config.list_physical_devices("GPU")

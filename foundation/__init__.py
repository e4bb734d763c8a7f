"""What every room stands on: one error, files by path, the frame of a script, a quiet TensorFlow."""

from foundation import quiet  # noqa: F401

"""Keeps PyTorch and TensorFlow apart in one process."""

import sys

# PyTorch's builds for GPUs bring triton, whose libraries abort a process that has TensorFlow's; nothing here needs it,
# and an import of None is an ImportError, after which PyTorch does without.
sys.modules["triton"] = None

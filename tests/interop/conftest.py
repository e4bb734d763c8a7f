"""Keeps PyTorch and TensorFlow apart in one process."""

import sys

# PyTorch's GPU builds bring triton, whose libraries abort a process that has loaded TensorFlow's. No test needs it;
# importing None is an ImportError, which PyTorch handles.
sys.modules["triton"] = None

"""Shared fixtures: where the recorded outputs of the original are, a tiny vocabulary, a tiny configuration."""

import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Each pytest-xdist worker is a process of its own; one thread a pool keeps two workers from fighting over two cores.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")

import pytest

GOLDEN = pathlib.Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def golden():
    """Folder of recorded outputs of the original release (its README says how each was made)."""
    return GOLDEN

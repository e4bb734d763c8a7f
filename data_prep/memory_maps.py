"""Arrays that stay on disk: mapped into memory where they are touched, and given back."""

import mmap
import os

import numpy as np

# Maps that fit in this much memory are left there.
_SMALL_BYTES = 1 << 25


class MappedArray:
    """A file as a read-only array of one dimension.

    Args:
        path: local file.
        dtype: of its elements.

    Attributes:
        array: numpy array on the file.
    """

    def __init__(self, path, dtype):
        self._map = None
        if os.path.getsize(path):
            with open(path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.array = np.frombuffer(self._map or b"", dtype)

    def drop_pages(self):
        """Gives back the memory of what was read, where it may be much; reading it again fetches it again."""
        if self._map and len(self._map) > _SMALL_BYTES:
            self._map.madvise(mmap.MADV_DONTNEED)


def write_array(file, array):
    """Appends an array's bytes to an open file; unlike `tofile` it says why when the disk is full."""
    file.write(memoryview(np.ascontiguousarray(array)).cast("B"))

"""Arrays that stay on disk: mapped into memory where they are touched, and given back."""

import dataclasses
import mmap
import os
from typing import Self

import numpy as np
import numpy.typing as npt

from foundation.errors import BertError

# Maps that fit in this much memory are left there.
_SMALL_BYTES = 1 << 25


@dataclasses.dataclass(frozen=True)
class MappedArray:
    """A file as a read-only array of one dimension.

    Attributes:
        path: the file.
        array: numpy array on the file.
        map: the file in memory; None where it is empty.
    """

    path: str
    array: np.ndarray
    map: mmap.mmap | None

    @classmethod
    def open(cls, path: str, dtype: npt.DTypeLike) -> Self:
        """Maps a local file of elements of a type. Raises BertError where the file does not consist of such."""
        if os.path.getsize(path) % np.dtype(dtype).itemsize:
            raise BertError(f"{path}: truncated. Remove the job's folder of intermediate files (--work_dir) and run "
                            "the same command again.")
        mapped = None
        if os.path.getsize(path):
            with open(path, "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return cls(path, np.frombuffer(mapped or b"", dtype), mapped)

    def read(self, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Copies runs of elements out of the file.

        For runs in many places this is faster than the map, and takes less memory: where a map is touched, the kernel
        maps up to two megabytes around.

        Args:
            starts, lengths: int64 [n], in elements.

        Returns:
            The runs, end to end.
        """
        size, pread = self.array.itemsize, os.pread
        with open(self.path, "rb", buffering=0) as file:
            descriptor = file.fileno()
            runs = [pread(descriptor, length, start)
                    for start, length in zip((starts * size).tolist(), (lengths * size).tolist())]
        return np.frombuffer(b"".join(runs), self.array.dtype)

    def drop_pages(self) -> None:
        """Gives back the memory of what was read, where it may be much; reading it again fetches it again."""
        if self.map and len(self.map) > _SMALL_BYTES:
            self.map.madvise(mmap.MADV_DONTNEED)

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
        array: numpy array on the file.
        map: the file in memory; None where it is empty.
    """

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
        return cls(np.frombuffer(mapped or b"", dtype), mapped)

    def drop_pages(self) -> None:
        """Gives back the memory of what was read, where it may be much; reading it again fetches it again."""
        if self.map and len(self.map) > _SMALL_BYTES:
            self.map.madvise(mmap.MADV_DONTNEED)

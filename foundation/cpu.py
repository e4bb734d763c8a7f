"""What a process sets before it computes: TensorFlow's kernels on a CPU, and when freed memory is given back or sought.

docs/performance.md has the effects. Variables of the environment that a user has set stay as they are.
"""

import ctypes
import gc
import os
import platform

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_LARGEST = 2**31 - 1
_HEAP_GROWS_BY = 256 << 20  # bytes; of address space, not of memory
_GARBAGE_THRESHOLDS = (50_000, 20, 100)  # new objects, and collections of the younger generation


def prepare() -> None:
    """Chooses kernels, allocator and garbage collection. Call it before TensorFlow is imported and threads start."""
    _use_onednn()
    _keep_freed_memory()
    # Importing TensorFlow and tracing a step make a million objects that stay: looking for garbage among them every 700
    # is an eighth of the time until the first step.
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


def _use_onednn() -> None:
    """Has TensorFlow use oneDNN's products, which it leaves out on chips without AVX-512.

    They are faster there too, and tensors then come from an arena of TensorFlow's own.
    """
    if platform.machine() in ("x86_64", "AMD64"):
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def _keep_freed_memory() -> None:
    """Has the C library keep freed memory for the next allocation.

    Otherwise it returns each large array to the kernel at once, and the next step pays for clearing new pages: that can
    take half of the CPU's time.
    """
    if "GLIBC_TUNABLES" in os.environ or any(name.startswith("MALLOC_") for name in os.environ):
        return
    # Other C libraries have no mallopt.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None:
        return
    # Without a mapping of its own for each large array; a higher threshold for mappings would not be enough.
    mallopt(_M_MMAP_MAX, 0)
    mallopt(_M_TRIM_THRESHOLD, _LARGEST)
    mallopt(_M_TOP_PAD, _HEAP_GROWS_BY)

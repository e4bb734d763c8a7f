"""What a process sets before it computes: each in a process of its own."""

import os
import subprocess
import sys

import pytest

# Ten times 64 MiB, written and freed; prints the page faults of each time but the first.
_ALLOCATE = """
import ctypes, resource
from foundation import cpu
cpu.prepare()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
size, faults = 64 << 20, []
for _ in range(10):
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
    block = libc.malloc(size)
    ctypes.memset(block, 1, size)
    libc.free(block)
print((faults[-1] - faults[1]) // 8)
"""


def run(code, **variables):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("GLIBC_TUNABLES", "TF_ENABLE_ONEDNN_OPTS") and not name.startswith("MALLOC_")}
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                          env={**environment, **variables}).stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_freed_memory_is_used_again():
    assert int(run(_ALLOCATE)) < 100
    # 16,384 pages of 4 KiB, or 32 of 2 MiB where the kernel gives large ones.
    assert int(run(_ALLOCATE, MALLOC_ARENA_MAX="1")) >= 32, "a user's settings of the allocator stay"


def test_onednn_is_on_unless_the_user_says_otherwise():
    code = "import os; from foundation import cpu; cpu.prepare(); print(os.environ.get('TF_ENABLE_ONEDNN_OPTS'))"
    assert run(code, TF_ENABLE_ONEDNN_OPTS="0") == "0"
    assert run(code.replace("cpu.prepare()", "cpu.platform.machine = lambda: 'x86_64'; cpu.prepare()")) == "1"
    assert run(code.replace("cpu.prepare()", "cpu.platform.machine = lambda: 'aarch64'; cpu.prepare()")) == "None"

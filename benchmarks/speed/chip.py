"""The chip that is measured: its name, its instruction sets, and the environment that every engine gets alike."""

import os
import platform
from collections.abc import Mapping

# Instruction sets that decide how fast matrix products are, by Linux' names.
_INSTRUCTION_SETS = ("avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
ISAS = ("native", "avx2")
# OpenMP's threads sleep while they wait: spinning would count as work, and slow the other engines down.
_ALWAYS = {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_WAIT_POLICY": "PASSIVE", "TOKENIZERS_PARALLELISM": "false",
           "HF_HUB_OFFLINE": "1"}
_AVX2 = {
    "TF_ENABLE_ONEDNN_OPTS": "1",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "OPENBLAS_CORETYPE": "Haswell",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
}


def name() -> str:
    """The CPU's name, as Linux has it."""
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()


def instruction_sets() -> list[str]:
    """Those of the instruction sets above that the CPU has."""
    flags = _cpuinfo().get("flags", "").split()
    return [each for each in _INSTRUCTION_SETS if each in flags]


def default_precision(isa: str) -> str:
    """`--precision=auto` of the scripts on this chip: bfloat16 where it is multiplied in hardware."""
    multiplies = {"avx512_bf16", "amx_bf16"} & set(instruction_sets())
    return "bfloat16" if multiplies and isa == "native" else "float32"


def environment(isa: str, onednn: str) -> dict[str, str]:
    """Environment variables of every engine, added to those of this process.

    Args:
        isa: one of ISAS; "avx2" emulates a chip without AVX-512.
        onednn: TF_ENABLE_ONEDNN_OPTS, "0" or "1"; "auto" leaves it to the engine, except in an emulation: there it is
            1, because TensorFlow decides by the real chip.
    """
    chosen = {} if onednn == "auto" else {"TF_ENABLE_ONEDNN_OPTS": onednn}
    return _ALWAYS | (_AVX2 if isa == "avx2" else {}) | chosen


def describe(isa: str, variables: Mapping[str, str]) -> str:
    """Lines for the head of the report."""
    lines = [f"CPU: {name()}, {len(os.sched_getaffinity(0))} cores; {' '.join(instruction_sets())}"]
    if isa != "native":
        lines.append(
            "This is an EMULATION of a chip with AVX2 only: libraries are asked to use no wider instructions. Caches, "
            "clock and\nmemory are this chip's, and code compiled for any chip (Eigen, onnxruntime) is not limited.")
    lines.append("every engine: " + " ".join(f"{key}={value}" for key, value in sorted(variables.items())))
    return "\n".join(lines)


def _cpuinfo() -> dict[str, str]:
    """The first CPU's lines of /proc/cpuinfo; empty on other systems."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            first = file.read().split("\n\n")[0]
    except OSError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}

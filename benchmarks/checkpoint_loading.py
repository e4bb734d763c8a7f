"""Time and memory of loading a checkpoint, for each format that `--init_checkpoint` reads.

    python -m benchmarks.checkpoint_loading --size=base

Random weights of a size are written in each format to a temporary folder. Then a fresh process per format imports
TensorFlow (not counted), builds the pre-training model, and loads the folder into it like the scripts. "build" is
importing this project and making the model's variables; "load" is finding, reading and assigning. The table has medians
of rounds, with the files in the system's cache. "peak" is the maximum memory of the process during "load" minus its
memory before, mapped files included, also as a multiple of the weights' size. Linux only: memory is read from /proc.
"""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from foundation import command, run_files
from foundation.settings import EVALUATION, MODEL, OTHER, Settings, setting
from modeling.config import PRESETS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MB = 1e6


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadingSettings(Settings):
    """One command."""

    size: str = setting("base", choices=tuple(PRESETS), group=MODEL, help="Size of the model.")
    formats: tuple[str, ...] = setting(
        ("google", "huggingface", "keras"), group=MODEL, help="Formats to measure, separated by commas.")
    rounds: int = setting(
        3, at_least=1, group=EVALUATION, help="Fresh processes per format; the median is reported.")
    load: str | None = setting(
        None, group=OTHER, help="Only load this folder, in this process, and print the measurements as JSON.")


def write_all(folder: str, size: str, formats: tuple[str, ...]) -> int:
    """Writes random weights in each format to `folder/<format>`; returns their size in bytes."""
    import numpy as np

    from modeling.checkpoints import convert, google
    from modeling.models import PretrainingModel, named_variables

    config, rng = PRESETS[size], np.random.default_rng(0)
    source = os.path.join(folder, "source")
    values = {name: rng.standard_normal(variable.shape, np.float32)
              for name, variable in named_variables(PretrainingModel(config)).items()}
    config.to_json_file(os.path.join(source, run_files.CONFIG))
    google.write(os.path.join(source, run_files.RELEASED_CHECKPOINT), values)
    for target in formats:
        convert.convert(source, os.path.join(folder, target), target)
    return sum(value.nbytes for value in values.values())


def load_one(folder: str, size: str) -> dict[str, float]:
    """Loads a folder into a model; returns seconds and bytes."""
    import tensorflow  # noqa: F401

    start = time.perf_counter()
    from modeling.checkpoints import load
    from modeling.models import PretrainingModel

    model = PretrainingModel(PRESETS[size])
    built, before = time.perf_counter(), _memory("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the recorded peak
    report = load.load_into(model, folder)
    loaded = time.perf_counter()
    assert not report.initial, report.summary()
    return {"build": built - start, "load": loaded - built, "peak": _memory("VmHWM") - before}


def _memory(key: str) -> int:
    """Bytes of memory of this process: now (VmRSS) or at the peak (VmHWM)."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))


def _in_fresh_process(folder: str, size: str) -> dict[str, float]:
    arguments = [sys.executable, "-m", "benchmarks.checkpoint_loading", f"--load={folder}", f"--size={size}"]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{folder}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(settings: LoadingSettings) -> None:
    """Prints a row per format."""
    if settings.load:
        print(json.dumps(load_one(settings.load, settings.size)))
        return
    with tempfile.TemporaryDirectory() as folder:
        weights = write_all(folder, settings.size, settings.formats)
        print(f"{settings.size}: {weights / MB:.0f} MB of weights")
        print(f"{'format':<14}{'build s':>9}{'load s':>9}{'both s':>9}{'peak MB':>10}{'of weights':>12}")
        for name in settings.formats:
            rounds = [_in_fresh_process(os.path.join(folder, name), settings.size) for _ in range(settings.rounds)]
            build, load, peak = (statistics.median(one[key] for one in rounds) for key in ("build", "load", "peak"))
            print(f"{name:<14}{build:>9.2f}{load:>9.2f}{build + load:>9.2f}{peak / MB:>10.0f}{peak / weights:>12.2f}",
                  flush=True)


if __name__ == "__main__":
    command.run_with(main, LoadingSettings, __doc__)

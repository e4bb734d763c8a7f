"""Time and memory of loading a checkpoint, for each format that `--init_checkpoint` takes.

    python -m benchmarks.checkpoint_loading --size=base

Random weights of a size are written in each format to a temporary folder. Then a fresh process for each imports
TensorFlow (not counted), builds the pre-training model, and loads the folder into it as scripts do. "build" is this
project's imports and the model's variables, "load" finding, reading and assigning; figures are medians of rounds, with
the files in the system's cache. "peak" is the most memory the process held during "load" over what it held before,
mapped files included, and as a multiple of the weights' size. Linux only: peaks are read from /proc.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("size", "base", "Size of the model, of modeling.config.PRESETS.")
flags.DEFINE_list("formats", ["google", "huggingface", "keras"], "Formats to measure.")
flags.DEFINE_integer("rounds", 3, "Fresh processes for each format; the median is shown.", lower_bound=1)
flags.DEFINE_string("load", None, "A folder: only load it, here, and print what it took as JSON.")

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MB = 1e6


def write_all(folder, size, formats):
    """Writes random weights in each format to `folder/<format>`; returns their size in bytes."""
    import numpy as np

    from modeling.checkpoints import convert, google
    from modeling.config import PRESETS
    from modeling.models import PretrainingModel, named_variables

    config, rng = PRESETS[size], np.random.default_rng(0)
    source = os.path.join(folder, "source")
    values = {name: rng.standard_normal(variable.shape, np.float32)
              for name, variable in named_variables(PretrainingModel(config)).items()}
    config.to_json_file(os.path.join(source, "bert_config.json"))
    google.write(os.path.join(source, "bert_model.ckpt"), values)
    for target in formats:
        convert.convert(source, os.path.join(folder, target), target)
    return sum(value.nbytes for value in values.values())


def load_one(folder, size):
    """Loads a folder into a model; returns seconds and bytes."""
    import tensorflow  # noqa: F401

    start = time.perf_counter()
    from modeling.checkpoints import load
    from modeling.config import PRESETS
    from modeling.models import PretrainingModel

    model = PretrainingModel(PRESETS[size])
    built, before = time.perf_counter(), _memory("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is counted from here
    report = load.load_into(model, folder)
    loaded = time.perf_counter()
    assert not report.initial, report.summary()
    return {"build": built - start, "load": loaded - built, "peak": _memory("VmHWM") - before}


def _memory(key):
    """Bytes that this process holds (VmRSS) or held at most (VmHWM)."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))


def _in_fresh_process(folder, size):
    command = [sys.executable, "-m", "benchmarks.checkpoint_loading", f"--load={folder}", f"--size={size}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{folder}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(_):
    if FLAGS.load:
        print(json.dumps(load_one(FLAGS.load, FLAGS.size)))
        return
    with tempfile.TemporaryDirectory() as folder:
        weights = write_all(folder, FLAGS.size, FLAGS.formats)
        print(f"{FLAGS.size}: {weights / MB:.0f} MB of weights")
        print(f"{'format':<14}{'build s':>9}{'load s':>9}{'both s':>9}{'peak MB':>10}{'of weights':>12}")
        for name in FLAGS.formats:
            rounds = [_in_fresh_process(os.path.join(folder, name), FLAGS.size) for _ in range(FLAGS.rounds)]
            build, load, peak = (statistics.median(one[key] for one in rounds) for key in ("build", "load", "peak"))
            print(f"{name:<14}{build:>9.2f}{load:>9.2f}{build + load:>9.2f}{peak / MB:>10.0f}{peak / weights:>12.2f}")


if __name__ == "__main__":
    app.run(main)

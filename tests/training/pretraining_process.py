"""Runs one pre-training in a process of its own: `python -m tests.training.pretraining_process '<json>'`.

For what only a fresh process can have: several logical devices, a place in a cluster, a signal.
"""

import dataclasses
import json
import os
import subprocess
import sys

import tensorflow as tf

from tests import cluster
from training import pretraining
from training.settings import (
    HardwareSettings,
    InitialModelSettings,
    LoopSettings,
    OptimizationSettings,
    PretrainingSettings,
)

PARTS = {"hardware": HardwareSettings, "optimization": OptimizationSettings, "loop": LoopSettings,
         "initial_model": InitialModelSettings}


def settings(config, records, output_dir, *, init_checkpoint=None, hardware=None, optimization=None, loop=None, **rest):
    """Settings of a tiny run, as a dict that JSON can carry."""
    return {
        "initial_model": {"bert_config_file": str(config), "init_checkpoint": init_checkpoint},
        "input_file": str(records), "do_train": True, "max_seq_length": 16, "max_predictions_per_seq": 3,
        "train_batch_size": 8, "num_train_steps": 6, "num_warmup_steps": 2,
        "hardware": {"precision": "float32", **(hardware or {})},
        "optimization": {"learning_rate": 1e-2, **(optimization or {})},
        "loop": {"output_dir": str(output_dir), **(loop or {})}, **rest,
    }


def from_dict(values):
    """PretrainingSettings from what `settings` returned."""
    return PretrainingSettings(**{name: PARTS[name](**value) if name in PARTS else value
                                  for name, value in values.items()})


def start(values, logical_devices=1, environment=None):
    """Starts a process for these settings; returns the Popen."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.training.pretraining_process", json.dumps(values), str(logical_devices)],
        env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def start_cluster(values, machines):
    """Starts a process for each machine of a cluster on loopback; returns the Popens, the first machine's first."""
    return [start(values, environment=each) for each in cluster.environments(machines)]


def finish(process):
    """Waits for a process; returns what it printed. Raises where it failed."""
    printed, _ = process.communicate(timeout=240)
    assert process.returncode == 0, printed
    return printed


if __name__ == "__main__":
    devices = int(sys.argv[2])
    if devices > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * devices)
    report = pretraining.run(from_dict(json.loads(sys.argv[1])))
    print(json.dumps(dataclasses.asdict(report)))

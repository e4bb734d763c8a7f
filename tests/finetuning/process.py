"""Runs one fine-tuning in a process of its own: `python -m tests.finetuning.process '<json>'`."""

import dataclasses
import json
import sys

import tensorflow as tf

from finetuning import driver
from tasks.classification.task import ClassificationSettings, ClassificationTask
from training.settings import (
    FineTuningSettings,
    HardwareSettings,
    LoopSettings,
    OptimizationSettings,
    StartSettings,
)

PARTS = {"start": StartSettings, "hardware": HardwareSettings, "optimization": OptimizationSettings,
         "loop": LoopSettings}


def settings(output_dir, *, start=None, hardware=None, optimization=None, loop=None, **rest):
    """Settings of a tiny run, as a dict that JSON can carry; training only, unless told otherwise."""
    return {
        "start": start or {}, "hardware": {"precision": "float32", **(hardware or {})},
        "optimization": {"num_train_steps": 0, "learning_rate": 1e-2, **(optimization or {})},
        "loop": {"output_dir": str(output_dir), **(loop or {})},
        "train_batch_size": 8, "num_train_epochs": 2.0, **({"do_train": True} | rest),
    }


def from_dict(values):
    """FineTuningSettings from what `settings` gave."""
    return FineTuningSettings(**{name: PARTS[name](**value) if name in PARTS else value
                                 for name, value in values.items()})


def run(task, values):
    """Runs the task of ClassificationSettings' fields; returns the Report."""
    return driver.run(ClassificationTask(ClassificationSettings(**task)), from_dict(values))


if __name__ == "__main__":
    if (devices := int(sys.argv[2])) > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * devices)
    told = json.loads(sys.argv[1])
    print(json.dumps(dataclasses.asdict(run(told["task"], told["settings"]))))

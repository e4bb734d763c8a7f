"""Runs one fine-tuning in a process of its own: `python -m tests.finetuning.process '<json>' <devices>`."""

import dataclasses
import json
import sys

import tensorflow as tf

from finetuning import driver
from finetuning.settings import FineTuningSettings
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from training.settings import HardwareSettings, InitialModelSettings, LoopSettings, OptimizationSettings

PARTS = {"initial_model": InitialModelSettings, "hardware": HardwareSettings, "optimization": OptimizationSettings,
         "loop": LoopSettings}


def settings(output_dir, *, initial_model=None, hardware=None, optimization=None, loop=None, **rest):
    """Settings of a tiny run, as a dict that JSON can carry; training only, unless told otherwise."""
    return {
        "initial_model": initial_model or {}, "hardware": {"precision": "float32", **(hardware or {})},
        "optimization": {"learning_rate": 1e-2, **(optimization or {})},
        "loop": {"output_dir": str(output_dir), **(loop or {})},
        "train_batch_size": 8, "num_train_epochs": 2.0, **({"do_train": True} | rest),
    }


def from_dict(values):
    """FineTuningSettings from what `settings` returned."""
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

"""task.json of a run's folder: what predicting needs besides the weights, as labels, columns and lengths."""

import os
from collections.abc import Mapping
from typing import Any

from foundation import files, run_files
from tasks.task import Task


def read(output_dir: str) -> dict[str, Any]:
    """The description in a finished run's final model, or else in a run's folder; {} where there is no run."""
    for folder in (os.path.join(output_dir, run_files.FINAL_MODEL), output_dir):
        path = os.path.join(folder, run_files.TASK)
        if files.exists(path):
            return files.read_json(path)
    return {}


def write(folder: str, task: Task, metrics: Mapping[str, float]) -> None:
    """Writes a task's description.

    Args:
        folder: the run's folder or its final model.
        task: Task.
        metrics: of the evaluation of these weights, or empty.
    """
    files.write_json(os.path.join(folder, run_files.TASK), {
        "task_name": task.name, "metric": task.metric, "max_seq_length": task.max_seq_length,
        **task.describe(metrics)})

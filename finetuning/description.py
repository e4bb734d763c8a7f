"""task.json of a run's folder: what prediction needs in addition to the weights, such as labels, columns and lengths.

The folder may come from anyone, so only the settings that describe a trained model (`TaskSettings.described`) are
taken from it, and only with values of the setting's type.
"""

import os
import types
import typing
from collections.abc import Mapping
from typing import Any

from foundation import files, run_files
from foundation.errors import BertError
from foundation.settings import Settings
from modeling.checkpoints import tokenizer_files
from tasks.files import TaskSettings
from tasks.task import Task


def path_in(output_dir: str) -> str | None:
    """The description in a finished run's final model, or else in a run's folder; None where there is none."""
    paths = (os.path.join(folder, run_files.TASK)
             for folder in (os.path.join(output_dir, run_files.FINAL_MODEL), output_dir))
    return next((path for path in paths if files.exists(path)), None)


def read(output_dir: str) -> dict[str, Any]:
    """All that a folder's description holds; {} where there is none. Raises BertError where it is no JSON object."""
    path = path_in(output_dir)
    return (tokenizer_files.json_object(path) or {}) if path else {}


def metric(output_dir: str) -> str | None:
    """The metric that a run selected its weights by, or None."""
    found = read(output_dir).get("metric")
    return found if isinstance(found, str) else None


def settings(output_dir: str, kind: type[Settings]) -> dict[str, Any]:
    """The settings of a family that a folder describes, by name.

    Args:
        output_dir: a run's folder or its final model.
        kind: the family's TaskSettings.

    Raises:
        BertError: a value that the setting cannot have.
    """
    assert issubclass(kind, TaskSettings)
    path, known = path_in(output_dir), read(output_dir)
    hints = typing.get_type_hints(kind)
    for name in kind.described:
        if name in known and not _fits(known[name], hints[name]):
            raise BertError(f"{path}: {name} is {str(known[name])[:40]!r}, which is not a value of --{name}. "
                            "Correct the file, or copy it again from where the model is from.")
    found = {name: tuple(known[name]) if isinstance(known[name], list) else known[name]
             for name in kind.described if name in known}
    try:
        kind(**found)
    except BertError as error:
        raise BertError(f"{path}: {error} Correct the file, or copy it again from where the model is from.") from None
    return found


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


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value from JSON has a setting's type."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None or isinstance(value, bool):
        return type(value) in kinds
    if isinstance(value, list):
        return any(typing.get_origin(kind) is tuple for kind in kinds) and all(isinstance(each, str) for each in value)
    return type(value) in kinds or (isinstance(value, int) and float in kinds)

"""The frame of every fine-tuning script: the task's settings and the run's, from flags and from a finished run."""

from collections.abc import Callable
from typing import Any

from finetuning import description, driver
from finetuning.settings import FineTuningSettings
from foundation import command
from foundation.flags import CommandLine
from foundation.settings import Settings
from modeling.checkpoints import load
from tasks import labels
from tasks.files import CUSTOM
from tasks.task import Task


def run(make_task: Callable[[Any], Task], kind: type[Settings], text: str,
        settle: Callable[[CommandLine, Any, FineTuningSettings], FineTuningSettings] | None = None) -> None:
    """Runs a fine-tuning script.

    Where nothing is trained, task settings that the command line leaves out come from the run in --output_dir, and
    labels that nothing names from the model.

    Args:
        make_task: from the task's settings to the Task.
        kind: class of the task's settings.
        text: the script's docstring, the head of `--help`.
        settle: adjusts the run's settings to the task's, where the family has defaults of its own.
    """

    def main(line: CommandLine) -> None:
        settings = line.settings(FineTuningSettings)
        task_settings = line.settings(kind, _recalled(line, kind, settings))
        if settle:
            settings = settle(line, task_settings, settings)
        print(driver.run(make_task(task_settings), settings).summary())

    command.run(main, (kind, FineTuningSettings), text)


def _recalled(line: CommandLine, kind: type[Settings], settings: FineTuningSettings) -> dict[str, Any]:
    """Task settings in place of those that the command line leaves out."""
    if settings.do_train:
        return {}
    recalled = description.settings(settings.loop.output_dir, kind)
    if not recalled and not line.given("train_file"):
        recalled = _labels_of_model(settings)
    # A known data set has labels of its own, in the order in which its results are written.
    if "task_name" in line.fields and line.given("task_name") and str(line.values["task_name"].value).lower() != CUSTOM:
        recalled.pop("labels", None)
    return recalled


def _labels_of_model(settings: FineTuningSettings) -> dict[str, Any]:
    """The labels of the first model that is evaluated, where they have names."""
    paths = (*settings.ensemble, settings.initial_model.init_checkpoint)
    found = load.find(paths[0]).labels() if paths[0] else None
    return {"labels": tuple(found)} if found and len(found) > 1 and labels.are_named(found) else {}

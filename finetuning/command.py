"""The frame of every fine-tuning script: the task's settings and the run's, from flags and from a finished run."""

from collections.abc import Callable
from typing import Any

from finetuning import description, driver
from finetuning.settings import FineTuningSettings
from foundation import command
from foundation.flags import CommandLine
from foundation.settings import Settings
from tasks.task import Task


def run(make_task: Callable[[Any], Task], kind: type[Settings], text: str,
        settle: Callable[[CommandLine, Any, FineTuningSettings], FineTuningSettings] | None = None) -> None:
    """Runs a fine-tuning script.

    Where nothing is trained, task settings that the command line leaves out come from the run in --output_dir.

    Args:
        make_task: from the task's settings to the Task.
        kind: class of the task's settings.
        text: the script's docstring, the head of `--help`.
        settle: adjusts the run's settings to the task's, where the family has defaults of its own.
    """

    def main(line: CommandLine) -> None:
        settings = line.settings(FineTuningSettings)
        recalled = {} if settings.do_train else description.read(settings.loop.output_dir)
        task_settings = line.settings(kind, recalled)
        if settle:
            settings = settle(line, task_settings, settings)
        print(driver.run(make_task(task_settings), settings).summary())

    command.run(main, (kind, FineTuningSettings), text)

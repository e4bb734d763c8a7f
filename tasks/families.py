"""The families of tasks, by the names of their heads (`modeling.head_table`): what is known of a family by its name."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tasks.files import TaskSettings
from tasks.multiple_choice.files import MultipleChoiceSettings
from tasks.multiple_choice.task import MultipleChoiceTask
from tasks.ner.files import NerSettings
from tasks.ner.task import NerTask
from tasks.squad.files import SquadSettings
from tasks.squad.task import SquadTask


class Family(NamedTuple):
    """A family of tasks.

    Attributes:
        script: that trains it.
        settings: its settings class.
        task: its Task, made of an instance of them.
        mark: a key of task.json that only its `Task.describe` writes.
    """

    script: str
    settings: type[TaskSettings]
    task: type[Any]
    mark: str


FAMILIES: Mapping[str, Family] = {
    "classification": Family("run_classifier.py", ClassificationSettings, ClassificationTask, "regression"),
    "squad": Family("run_squad.py", SquadSettings, SquadTask, "doc_stride"),
    "choice": Family("run_multiple_choice.py", MultipleChoiceSettings, MultipleChoiceTask, "choice_columns"),
    "ner": Family("run_ner.py", NerSettings, NerTask, "tag_scheme"),
}


def described_by(description: Mapping[str, Any]) -> str | None:
    """The name of the family that wrote a task.json; None where none of them did."""
    return next((name for name, family in FAMILIES.items() if family.mark in description), None)

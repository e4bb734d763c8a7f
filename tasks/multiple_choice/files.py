"""Tables of questions to examples: a prompt, the continuations to choose from, and the number of the right one."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from foundation.errors import BertError
from foundation.settings import DATA, setting
from inputs import tables
from inputs.tables import Table, TableSettings
from tasks import files as task_files
from tasks.files import CUSTOM, FileSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultipleChoiceSettings(TableSettings, FileSettings):
    """The data of `run_multiple_choice.py`. None: as the data set (`DATA_SETS`) has it."""

    described: ClassVar[tuple[str, ...]] = (
        "task_name", "prompt_columns", "choice_columns", "choice_prefix_column", "label_column", "labels", "header",
        "file_format", "quoting", "max_seq_length")
    task_name: str | None = setting(
        None, group=DATA, released=True,
        help="swag, codah; or custom: your own files, described by the flags below.")
    data_dir: str | None = setting(
        None, group=DATA, released=True,
        help="Folder of the data set's files: train.csv, val.csv and test.csv for SWAG, train.tsv, dev.tsv and "
             "test.tsv for CODAH.")
    prompt_columns: tuple[str, ...] | None = setting(
        None, group=DATA,
        help="Columns of the prompt, joined by spaces. A column is its name, its number from 1, or its key in JSON.")
    choice_columns: tuple[str, ...] | None = setting(None, group=DATA, help="Columns of the choices.")
    choice_prefix_column: str | None = setting(
        None, group=DATA, help="Column of the text that begins each choice, such as SWAG's sent2; it may be empty.")
    labels: tuple[str, ...] | None = setting(
        None, group=DATA, help="The label of each choice in the label column, in order. Default: 0, 1, ...")
    max_seq_length: int = setting(
        128, at_least=4, group=DATA, released=True,
        help="Maximum word pieces of a prompt with one choice, including [CLS] and [SEP].")


class DataSet(NamedTuple):
    """A known data set: its files by split, in --data_dir, and its values of settings."""

    files: Mapping[str, str]
    settings: Mapping[str, Any]


DATA_SETS = {
    # Zellers et al. 2018: a caption, the beginning of the next one, and four continuations.
    "swag": DataSet(
        {"train": "train.csv", "dev": "val.csv", "test": "test.csv"},
        {"prompt_columns": ("sent1",), "choice_prefix_column": "sent2", "label_column": "label", "header": True,
         "choice_columns": ("ending0", "ending1", "ending2", "ending3")}),
    # Chen et al. 2019: category, prompt, four choices, the right one.
    "codah": DataSet(
        {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"},
        {"prompt_columns": ("2",), "choice_columns": ("3", "4", "5", "6"), "label_column": "7", "header": False}),
    CUSTOM: DataSet({}, {"header": True}),
}


class Question(NamedTuple):
    """A prompt, the continuations to choose from, and the number of the right one, or None."""

    prompt: str
    choices: tuple[str, ...]
    label: int | None


class MultipleChoiceFiles:
    """The files of a data set, or the user's own under the name `custom`.

    Args:
        settings: which data set, and what differs from it.

    Attributes:
        settings: with the data set's values in place of None.
        prompt_columns, choice_columns: of the settings.
        labels: as the label column has them, in the order of the choices.

    Raises:
        BertError: no such task, or flags that do not go together.
    """

    def __init__(self, settings: MultipleChoiceSettings) -> None:
        self.settings = _completed(settings)
        self.prompt_columns = self.settings.prompt_columns or ()
        self.choice_columns = self.settings.choice_columns or ()
        self.labels = [str(name) for name in self.settings.labels or range(len(self.choice_columns))]

    @property
    def name(self) -> str:
        """A key of DATA_SETS."""
        return str(self.settings.task_name)

    def path(self, split: str) -> str:
        """The file a split is read from. Raises BertError where it is not given or missing."""
        name = DATA_SETS[self.name].files.get(split)
        return task_files.find(self.settings, split, (name,) if name else ())

    def read(self, split: str) -> list[Question]:
        """Reads a table of questions; those of the test set without labels.

        Raises:
            BertError: naming file, line and column: what tables.read reports, a missing column, an empty prompt or
                choice, or a label of no choice.
        """
        settings = self.settings
        table = tables.read(self.path(split), tables.Layout(
            settings.file_format, bool(settings.header), settings.quoting))
        prompts = [" ".join(texts) for texts in zip(*map(table.texts, self.prompt_columns))]
        choices = [table.texts(column) for column in self.choice_columns]
        if settings.choice_prefix_column:
            prefixes = table.cells(settings.choice_prefix_column)
            choices = [[f"{prefix} {text}" for prefix, text in zip(prefixes, texts)] for texts in choices]
        labels = [None] * len(table) if split == "test" else self._label_ids(table)
        return [Question(*row) for row in zip(prompts, zip(*choices), labels)]

    def _label_ids(self, table: Table) -> Sequence[int | None]:
        column = self.settings.label_column
        if not column:
            raise BertError(f"{table.path}: no --label_column given. The file has {table.columns()}.")
        numbers = {name: number for number, name in enumerate(self.labels)}
        ids = [numbers.get(cell.strip()) for cell in table.cells(column)]
        if None in ids:
            row = ids.index(None)
            raise BertError(f"{table.place(row, column)}: {table.cells(column)[row]!r} is not the label of a choice. "
                            f"Labels: {', '.join(numbers)}.")
        return ids


def _completed(settings: MultipleChoiceSettings) -> MultipleChoiceSettings:
    """Settings with the data set's values in place of None. Raises BertError where that is not enough."""
    name = (settings.task_name or "").lower()
    if name not in DATA_SETS:
        given = f"{settings.task_name!r} is not a task" if name else (
            "No task given, and --output_dir holds no finished run")
        known = ", ".join(each for each in DATA_SETS if each != CUSTOM)
        raise BertError(f"{given}. Pass --task_name: {known}, or {CUSTOM} for your own files.")
    known_values = {key: value for key, value in DATA_SETS[name].settings.items() if getattr(settings, key) is None}
    settings = dataclasses.replace(settings, **{**known_values, "task_name": name})
    if not settings.prompt_columns:
        raise BertError("No prompt given. Pass --prompt_columns, one or more.")
    choices = settings.choice_columns or ()
    if len(choices) < 2:
        raise BertError("Not enough choices given. Pass at least two --choice_columns.")
    if settings.labels and len(set(settings.labels)) != len(choices):
        raise BertError(f"--labels: needs one label for each of the {len(choices)} choices, all different, not "
                        f"{', '.join(map(repr, settings.labels))}.")
    return settings

"""The data sets of fine-tuning and prediction, their features in files that every engine reads."""

import dataclasses
import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tasks.squad.files import SquadSettings
from tasks.squad.task import SquadTask
from tasks.task import Task

if TYPE_CHECKING:
    from tokenization.tokenizer import Tokenizer

_TRAINED = ("cola", "sst-2", "sts-b", "squad")
# Pairs like those of MRPC are STS-B's; SST-2 has sentences like CoLA.
_PREDICTED = ("sts-b", "cola", "squad")


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A data set in a file that every engine reads.

    Attributes:
        name: for the table.
        task: its name and settings, for `make_task`.
        outputs: of the model's head: labels, or 1 for a regression; 0 for spans of text.
        features: path of the features.
    """

    name: str
    task: dict[str, Any]
    outputs: int
    features: str


def make_task(described: dict[str, Any]) -> Task:
    """The task of a DataSet."""
    settings = {key: value for key, value in described.items() if key != "family"}
    if described["family"] == "squad":
        return SquadTask(SquadSettings(**settings))
    return ClassificationTask(ClassificationSettings(**settings))


def make(glue_dir: str | None, squad_dir: str | None, names: Collection[str], part: str, tokenizer: "Tokenizer",
         folder: str) -> Iterator[DataSet]:
    """Makes the features of data sets.

    Args:
        glue_dir: with the folders of CoLA, SST-2 and STS-B; None for none of them.
        squad_dir: with train-v1.1.json and dev-v1.1.json, or None.
        names: of the data sets wanted.
        part: "finetuning", of training sets, or "prediction", of dev sets: sentences, pairs and windows.
        tokenizer: Tokenizer.
        folder: for the files.
    """
    split, wanted = {"finetuning": ("train", _TRAINED), "prediction": ("dev", _PREDICTED)}[part]
    for name in (each for each in wanted if each in names):
        where = squad_dir if name == "squad" else glue_dir
        if not where:
            continue
        described = _describe(name, where)
        task = make_task(described)
        made = task.features(task.read(split), tokenizer, part == "finetuning")
        path = os.path.join(folder, f"{name}.npz")
        with open(path, "wb") as file:
            made.save(file)
        yield DataSet(name, described, 0 if name == "squad" else len(task.labels) if task.labels else 1, path)


def _describe(name: str, folder: str) -> dict[str, Any]:
    if name != "squad":
        return {"family": "classification", "task_name": name, "data_dir": folder}
    return {"family": "squad", "max_seq_length": 384, "train_file": os.path.join(folder, "train-v1.1.json"),
            "predict_file": os.path.join(folder, "dev-v1.1.json")}

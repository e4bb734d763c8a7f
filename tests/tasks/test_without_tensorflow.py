"""Mistakes in files are reported before TensorFlow, and what the metrics need, is imported."""

import subprocess
import sys

HEAVY = {"tensorflow", "keras", "sklearn", "scipy", "seqeval"}
# Each family reads a file with a mistake; the messages and the heavy modules imported are printed.
PROGRAM = f"""
import sys
from foundation.errors import BertError
from tasks.classification.task import ClassificationSettings, ClassificationTask
from tasks.multiple_choice.task import MultipleChoiceSettings, MultipleChoiceTask
from tasks.ner.task import NerSettings, NerTask
from tasks.squad.task import SquadSettings, SquadTask

own = {{"task_name": "custom", "train_file": "table.tsv", "label_column": "no"}}
for task in (
    ClassificationTask(ClassificationSettings(**own, text_a_column="t", labels=("a", "b"))),
    MultipleChoiceTask(MultipleChoiceSettings(**own, prompt_columns=("t",), choice_columns=("t", "t"))),
    NerTask(NerSettings(train_file="words.txt")),
    SquadTask(SquadSettings(train_file="questions.json")),
):
    try:
        task.read("train")
    except BertError as error:
        print(error)
print({HEAVY!r} & set(sys.modules))
"""


def test_mistakes_are_reported_without_tensorflow(tmp_path, repository):
    (tmp_path / "table.tsv").write_text("t\nx\n")
    (tmp_path / "words.txt").write_text("word X\n")
    (tmp_path / "questions.json").write_text("{}")
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, env={"PYTHONPATH": str(repository)},
                          capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "table.tsv, line 1: no column 'no'. It has 't'. Pass --label_column.",
        "table.tsv, line 1: no column 'no'. It has 't'.",
        "words.txt, line 1, column 2: 'X' is not a tag. Tags are O, B-type and I-type; a file without tags holds words "
        "only.",
        'questions.json: the key "data" is missing.',
        "set()"]

"""Finished fine-tuning runs of each family: the tiny encoder, and a head of random weights."""

import json
import shutil
import types

import pytest

from finetuning import description
from modeling.checkpoints import google, load
from modeling.config import BertConfig
from modeling.models import all_variables
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tasks.multiple_choice.files import MultipleChoiceSettings
from tasks.multiple_choice.task import MultipleChoiceTask
from tasks.ner.files import NerSettings
from tasks.ner.task import NerTask
from tasks.squad.files import SquadSettings
from tasks.squad.task import SquadTask

TEXTS = ["w1 w2 w3", "w4", "w5 w80 w6 w7 w8 w9 w10", "w11 w12"]
PAIRS = [("w1 w2", "w3 w88"), ("w4", "w5"), ("w60 w7 w8", "w9")]
QUESTIONS = [("w1 w2 w3", ["w4 w5", "w6", "w7 w8 w9", "w10"]), ("w11", ["w12", "w13 w14", "w15", "w70 w16"])]
CONTEXTS = [("w1 w2", " ".join(f"w{number}" for number in range(20, 60))), ("w3", "w4 w5, w6 w7.")]
SENTENCES = [["w1", "w2", "w3"], ["w4"], [f"w{number}" for number in range(30, 70)]]


@pytest.fixture(scope="session")
def models(tmp_path_factory, tiny_release):
    """The runs' folders by name under `folder`, and the task that made each, which reads the inputs above as files."""
    folder = tmp_path_factory.mktemp("models")
    data = tmp_path_factory.mktemp("data")

    def rows(name, lines):
        (data / name).write_text("\n".join(lines) + "\n")
        return str(data / name)

    questions = [{"id": str(number), "question": question, "context": context}
                 for number, (question, context) in enumerate(CONTEXTS)]
    (data / "squad.json").write_text(json.dumps({"data": [{"paragraphs": [
        {"context": each["context"], "qas": [{"id": each["id"], "question": each["question"]}]}
        for each in questions]}]}))
    custom = {"task_name": "custom", "header": True, "max_seq_length": 24}
    tasks = {
        "mrpc": ClassificationTask(ClassificationSettings(
            **custom, text_a_column="a", text_b_column="b", labels=("0", "1"),
            test_file=rows("pairs.tsv", ["a\tb", *("\t".join(pair) for pair in PAIRS)]))),
        "sts-b": ClassificationTask(ClassificationSettings(
            **custom, text_a_column="a", regression=True, test_file=rows("texts.tsv", ["a", *TEXTS]))),
        "swag": MultipleChoiceTask(MultipleChoiceSettings(
            **custom, prompt_columns=("p",), choice_columns=("c", "d", "e", "f"), test_file=rows("questions.tsv", [
                "p\tc\td\te\tf", *("\t".join([prompt, *choices]) for prompt, choices in QUESTIONS)]))),
        "squad": SquadTask(SquadSettings(
            max_seq_length=24, max_query_length=8, doc_stride=6, predict_file=str(data / "squad.json"))),
        "squad2": SquadTask(SquadSettings(
            max_seq_length=24, max_query_length=8, doc_stride=6, predict_file=str(data / "squad.json"),
            version_2_with_negative=True, null_score_diff_threshold=-1e6)),
        "ner": NerTask(NerSettings(
            max_seq_length=16, labels=("O", "B-PER", "I-PER", "B-LOC"), test_file=rows(
                "ner.txt", ["\n".join([*words, ""]) for words in SENTENCES]))),
    }
    for name, task in tasks.items():
        _finish(folder / name, task, tiny_release)
    return types.SimpleNamespace(folder=folder, tasks=tasks)


def _finish(folder, task, tiny_release):
    final = folder / "final_model"
    final.mkdir(parents=True)
    for name in ("vocab.txt", "bert_config.json"):
        shutil.copy(tiny_release / name, final)
    model = task.network().model(BertConfig.from_json_file(str(final / "bert_config.json")), "float32", False)
    load.load_into(model, str(tiny_release))
    google.write(str(final / "bert_model.ckpt"), {
        name: variable.numpy() for name, variable in all_variables(model).items()})
    description.write(str(final), task, {})

"""A SQuAD run from files to answers, and answers from the finished folder alone."""

import dataclasses
import json

from finetuning import description, driver
from finetuning.settings import FineTuningSettings
from tasks.squad.files import SquadSettings
from tasks.squad.task import SquadTask
from tests.conftest import TINY_CONFIG
from tests.tasks.squad import golden as squad_golden
from training.settings import HardwareSettings, InitialModelSettings, LoopSettings, OptimizationSettings

CONTEXT = "the duties of the senate and of the house of the country"


def question(identity, answer=None):
    answers = [{"text": answer, "answer_start": CONTEXT.index(answer)}] if answer else []
    return {"id": identity, "question": "of what ?", "answers": answers, "is_impossible": not answer}


def test_finished_folder_answers_as_the_run_did(tmp_path):
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in squad_golden.tokens()), "utf-8")
    config = {**TINY_CONFIG, "vocab_size": 30522, "num_hidden_layers": 1, "hidden_size": 8}
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    questions = [question("q1", "duties"), question("q2"), question("q3", "house"), question("q4", "the senate")]
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"data": [{"paragraphs": [{"context": CONTEXT, "qas": questions}]}]}))

    task = SquadSettings(train_file=str(data), predict_file=str(data), max_seq_length=20, doc_stride=4,
                         max_query_length=8, version_2_with_negative=True, null_score_diff_threshold="auto")
    settings = FineTuningSettings(
        initial_model=InitialModelSettings(bert_config_file=str(tmp_path / "bert_config.json"),
                                           vocab_file=str(tmp_path / "vocab.txt")),
        hardware=HardwareSettings(strategy="one_device", precision="float32"),
        optimization=OptimizationSettings(learning_rate=1e-3), loop=LoopSettings(output_dir=str(tmp_path / "run")),
        do_train=True, do_eval=True, do_predict=True, train_batch_size=4, num_train_epochs=2.0, static_shapes="true")
    report = driver.run(SquadTask(task), settings)
    assert {"exact_match", "f1", "HasAns_f1", "NoAns_f1", "best_f1_thresh"} <= report.evaluation.keys()
    names = ["predictions.json", "nbest_predictions.json", "null_odds.json"]
    assert [path.rpartition("/")[2] for path in report.predictions] == names
    first = [(tmp_path / "run" / name).read_text() for name in names]
    assert list(json.loads(first[0])) == ["q1", "q2", "q3", "q4"]

    described = description.read(str(tmp_path / "run"))
    assert described["null_score_diff_threshold"] == report.evaluation["best_f1_thresh"]
    again = {name: value for name, value in described.items() if name in SquadSettings.__dataclass_fields__}
    settings = dataclasses.replace(settings, initial_model=InitialModelSettings(), do_train=False, do_eval=False)
    for name in names:
        (tmp_path / "run" / name).unlink()
    driver.run(SquadTask(SquadSettings(predict_file=str(data), **again)), settings)
    assert [(tmp_path / "run" / name).read_text() for name in names] == first

"""The SQuAD task: splits, losses, the threshold, its files."""

import json

import numpy as np
import pytest
import tensorflow as tf

from foundation.errors import BertError
from foundation.flags import CommandLine
from inputs import batching
from modeling.config import BertConfig
from tasks.squad.files import SquadSettings
from tasks.squad.network import SquadNetwork
from tasks.squad.task import SquadTask
from tasks.task import Predicted
from tests.conftest import TINY_CONFIG
from tests.tasks.squad import golden as squad_golden


def task_of(train_file=None, predict_file=None, **options):
    sizes = {"max_seq_length": 128, "doc_stride": 48, "max_query_length": 32}
    return SquadTask(SquadSettings(train_file=train_file, predict_file=predict_file, **{**sizes, **options}))


@pytest.fixture
def file(tmp_path):
    """Writes a file of questions about one context; an answer of None means that the key is missing."""
    def write(*answers, name="questions.json"):
        questions = []
        for number, answer in enumerate(answers):
            entry = {"id": f"q{number}", "question": "what is it ?"}
            questions.append(entry if answer is None else {**entry, "answers": answer, "is_impossible": not answer})
        content = {"data": [{"paragraphs": [{"context": "the duties of the senate", "qas": questions}]}]}
        path = tmp_path / name
        path.write_text(json.dumps(content))
        return str(path)
    return write


DUTIES, NOWHERE = [{"text": "duties", "answer_start": 4}], [{"text": "duties", "answer_start": 14}]


def oracle(task, features, questions):
    """Logits that are greatest at the answers of a context that is one window."""
    start, end = np.zeros((2, len(features), 40), np.float32)
    for row, index in enumerate(features.values["example_index"]):
        place = 7 if questions[index].answers else 0  # [CLS] what is it ? [SEP] the duties
        start[row, place] = end[row, place] = 6
    return {"start_logits": start, "end_logits": end}


def predicted_by(task):
    """The oracle's outputs for the task's questions."""
    questions = task.read("dev")
    features = task.features(questions, squad_golden.tokenizer(), False)
    return Predicted(questions, features, oracle(task, features, questions), squad_golden.tokenizer())


def test_predict_file_is_the_dev_split_where_it_has_answers(file):
    labelled, unlabelled = task_of(predict_file=file(DUTIES)), task_of(predict_file=file(None, name="unlabelled.json"))
    assert labelled.read("dev") is labelled.read("test")
    assert len(unlabelled.read("test")) == 1
    with pytest.raises(BertError, match=r"unlabelled.json cannot be evaluated.*--predict_file with answers"):
        unlabelled.read("dev")


def test_answers_that_are_not_found_are_counted(file, capsys):
    path = file(DUTIES, NOWHERE, DUTIES)
    assert [each.id for each in task_of(path).read("train")] == ["q0", "q2"]
    assert capsys.readouterr().out == (f"{path}: 1 of 3 training answers could not be found in their context; "
                                       "these questions are left out.\n")


@pytest.mark.parametrize(("split", "flag"), [("train", "train_file"), ("test", "predict_file")])
def test_missing_file_is_named_with_its_flag(split, flag, tmp_path):
    with pytest.raises(BertError, match=f"Pass --{flag}"):
        task_of().read(split)
    path = str(tmp_path / "nothing.json")
    with pytest.raises(BertError, match=rf"nothing.json: no such file \(--{flag}\)"):
        task_of(path, path).read(split)


def test_a_warning_is_printed_where_windows_do_not_overlap(capsys):
    task_of(doc_stride=128)
    assert "--doc_stride=128" in capsys.readouterr().out
    task_of()
    assert capsys.readouterr().out == ""


def test_loss_is_the_mean_of_both_cross_entropies_and_does_not_see_padding():
    rng = np.random.default_rng(0)
    start, end = rng.normal(size=(2, 3, 8)).astype(np.float32)
    batch = {"input_mask": np.ones((3, 8), np.int32), "is_real_example": np.array([1, 1, 0], np.int32),
             "start_positions": np.array([0, 3, 7], np.int32), "end_positions": np.array([0, 5, 7], np.int32)}

    def cross_entropy(logits, labels):
        return np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(3), labels]

    expected = (cross_entropy(start, batch["start_positions"]) + cross_entropy(end, batch["end_positions"])) / 2
    losses = SquadNetwork().losses({"start_logits": tf.constant(start), "end_logits": tf.constant(end)}, batch)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_array_equal(SquadNetwork().term_weights(batch), [1, 1, 0])

    padded = {f"{name}_logits": tf.constant(np.pad(logits, ((0, 0), (0, 4)), constant_values=9.0))
              for name, logits in (("start", start), ("end", end))}
    batch["input_mask"] = np.pad(batch["input_mask"], ((0, 0), (0, 4)))
    np.testing.assert_allclose(SquadNetwork().losses(padded, batch), expected, rtol=1e-5)


def test_row_that_only_completes_a_batch_has_a_finite_loss():
    batch = {"input_mask": np.zeros((1, 4), np.int32), "start_positions": np.array([0], np.int32),
             "end_positions": np.array([0], np.int32)}
    outputs = {"start_logits": tf.zeros((1, 4)), "end_logits": tf.zeros((1, 4))}
    assert np.isfinite(SquadNetwork().losses(outputs, batch)).all()


def test_batches_of_the_features_go_through_the_model():
    task = task_of(squad_golden.QUESTIONS, squad_golden.QUESTIONS, version_2_with_negative=True)
    config = BertConfig.from_dict({**TINY_CONFIG, "vocab_size": 30522, "hidden_size": 4, "intermediate_size": 8,
                                   "num_hidden_layers": 1, "max_position_embeddings": 128})
    model = task.network().model(config, "float32", unpad=False)
    for split, training in (("train", True), ("test", False)):
        features = task.features(task.read(split), squad_golden.tokenizer(), training)
        plan = batching.prediction_plan(features.lengths, 4, task.max_seq_length)
        batch = next(iter(batching.batches(features, plan)(tf.distribute.InputContext())))
        outputs = model(batch)
        assert set(outputs) == set(task.token_outputs)
        assert outputs["start_logits"].shape == batch["input_ids"].shape
        if training:
            assert 2 < float(tf.reduce_mean(task.network().losses(outputs, batch))) < 8


def test_version_1_is_scored_and_written(file, tmp_path, capsys):
    task = task_of(predict_file=file(DUTIES, DUTIES))
    predicted = predicted_by(task)
    assert task.score("dev", predicted) == {"exact_match": 100.0, "f1": 100.0}
    paths = task.write("test", predicted, str(tmp_path / "out"), {})
    assert [path.rpartition("/")[2] for path in paths] == ["predictions.json", "nbest_predictions.json"]
    assert json.loads((tmp_path / "out" / "predictions.json").read_text()) == {"q0": "duties", "q1": "duties"}
    assert "exact_match 100.0000  f1 100.0000" in capsys.readouterr().out


def reluctant(task):
    """Outputs of a model that prefers no answer throughout: at a threshold of 0.0 nothing is answered."""
    predicted = predicted_by(task)
    predicted.outputs["start_logits"][:, 0] += 20
    return predicted


def written(task, predicted, folder, metrics):
    task.write("test", predicted, str(folder), metrics)
    return list(json.loads((folder / "predictions.json").read_text()).values())


@pytest.mark.parametrize(("given", "threshold", "answers"), [
    ({}, 0.0, ["", "", ""]), ({"null_score_diff_threshold": 20.0}, 20.0, ["duties", "", "duties"]),
    ({"null_score_diff_threshold": -100.0}, -100.0, ["", "", ""])])
def test_threshold_is_0_as_in_the_release_or_the_given_one(given, threshold, answers, file, tmp_path):
    task = task_of(predict_file=file(DUTIES, [], DUTIES), version_2_with_negative=True, **given)
    predicted = reluctant(task)
    metrics = task.score("dev", predicted)
    answered = answers[0] == "duties"
    assert metrics["null_threshold"] == threshold and metrics["f1"] == pytest.approx(100 if answered else 100 / 3)
    assert metrics["best_f1"] == 100.0 and metrics["best_f1_thresh"] == 8.0
    assert written(task, predicted, tmp_path, metrics) == answers
    assert task.describe(metrics)["null_score_diff_threshold"] == threshold
    assert task.describe({})["null_score_diff_threshold"] == threshold


def test_auto_takes_the_threshold_that_the_evaluation_tuned(file, tmp_path, capsys):
    options = {"predict_file": file(DUTIES, [], DUTIES), "version_2_with_negative": True}
    task = task_of(**options, null_score_diff_threshold="auto")
    predicted = reluctant(task)
    metrics = task.score("dev", predicted)
    assert metrics["f1"] == metrics["best_f1"] == 100.0
    assert metrics["null_threshold"] == metrics["best_f1_thresh"]
    assert written(task, predicted, tmp_path, metrics) == ["duties", "", "duties"]
    assert "f1 100.0000" in capsys.readouterr().out
    described = task.describe(metrics)
    assert described["null_score_diff_threshold"] == metrics["best_f1_thresh"]
    # A later command with the settings of the finished folder needs no evaluation.
    later = task_of(**{**options, **described})
    assert written(later, predicted, tmp_path, {}) == ["duties", "", "duties"]


def test_auto_without_an_evaluation_tunes_on_nothing(file, tmp_path, capsys):
    task = task_of(predict_file=file(DUTIES, [], DUTIES), version_2_with_negative=True,
                   null_score_diff_threshold="auto")
    assert written(task, reluctant(task), tmp_path, {}) == ["", "", ""]
    printed = capsys.readouterr().out
    assert "--null_score_diff_threshold=auto needs an evaluation (--do_eval) of these weights; 0.0 is used." in printed
    assert "null_threshold 0.0000" in printed
    assert task.describe({})["null_score_diff_threshold"] == "auto"


def test_scoring_leaves_nothing_behind(file, tmp_path):
    """A task that has scored writes and describes the same as one that has not."""
    task = task_of(predict_file=file(DUTIES, [], DUTIES), version_2_with_negative=True,
                   null_score_diff_threshold="auto")
    predicted = reluctant(task)
    task.score("dev", predicted)
    assert written(task, predicted, tmp_path, {}) == ["", "", ""]
    assert task.describe({})["null_score_diff_threshold"] == "auto"


@pytest.mark.parametrize(("text", "value"), [("auto", "auto"), ("-1.5", -1.5), ("3", 3.0)])
def test_threshold_flag_is_a_number_or_auto(text, value):
    line = CommandLine((SquadSettings,))
    line.parse(["run_squad.py", f"--null_score_diff_threshold={text}"])
    assert line.settings(SquadSettings).null_score_diff_threshold == value


@pytest.mark.parametrize("value", ["some", None, [1]])
def test_other_thresholds_are_refused(value):
    with pytest.raises(BertError, match=r"--null_score_diff_threshold=.*: not a number or auto"):
        SquadSettings(null_score_diff_threshold=value)


def test_released_flags_have_the_release_s_defaults():
    line = CommandLine((SquadSettings,))
    line.parse(["run_squad.py", "--verbose_logging"])
    assert line.settings(SquadSettings) == SquadSettings(
        max_seq_length=384, doc_stride=128, max_query_length=64, n_best_size=20, max_answer_length=30,
        version_2_with_negative=False, null_score_diff_threshold=0.0, verbose_logging=True)

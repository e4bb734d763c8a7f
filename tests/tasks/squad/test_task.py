"""The SQuAD task: splits, losses, the threshold, its files."""

import json

import numpy as np
import pytest
import tensorflow as tf

from foundation.errors import BertError
from inputs import batching
from modeling.config import BertConfig
from tasks.squad import task as squad
from tests.conftest import TINY_CONFIG
from tests.tasks.squad import golden as squad_golden


def task_of(train_file=None, predict_file=None, **options):
    sizes = {"max_seq_length": 128, "doc_stride": 48, "max_query_length": 32}
    return squad.SquadTask(squad.SquadSettings(train_file, predict_file, **{**sizes, **options}))


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
    with pytest.raises(BertError, match=f"Give --{flag}"):
        task_of().read(split)
    path = str(tmp_path / "nothing.json")
    with pytest.raises(BertError, match=rf"nothing.json: no such file \(--{flag}\)"):
        task_of(path, path).read(split)


def test_windows_that_do_not_overlap_are_warned_of(capsys):
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
    losses = task_of().losses({"start_logits": tf.constant(start), "end_logits": tf.constant(end)}, batch)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_array_equal(task_of().weights(batch), [1, 1, 0])

    padded = {f"{name}_logits": tf.constant(np.pad(logits, ((0, 0), (0, 4)), constant_values=9.0))
              for name, logits in (("start", start), ("end", end))}
    batch["input_mask"] = np.pad(batch["input_mask"], ((0, 0), (0, 4)))
    np.testing.assert_allclose(task_of().losses(padded, batch), expected, rtol=1e-5)


def test_row_that_only_completes_a_batch_has_a_finite_loss():
    batch = {"input_mask": np.zeros((1, 4), np.int32), "start_positions": np.array([0], np.int32),
             "end_positions": np.array([0], np.int32)}
    outputs = {"start_logits": tf.zeros((1, 4)), "end_logits": tf.zeros((1, 4))}
    assert np.isfinite(task_of().losses(outputs, batch)).all()


def test_batches_of_the_features_go_through_the_model():
    task = task_of(squad_golden.QUESTIONS, squad_golden.QUESTIONS, version_2_with_negative=True)
    config = BertConfig.from_dict({**TINY_CONFIG, "vocab_size": 30522, "hidden_size": 4, "intermediate_size": 8,
                                   "num_hidden_layers": 1, "max_position_embeddings": 128})
    model = task.model(config, "float32", skip_padding=False)
    for split, training in (("train", True), ("test", False)):
        features = task.features(task.read(split), squad_golden.tokenizer(), training)
        plan = batching.prediction_plan(features.lengths, 4, task.max_seq_length)
        batch = next(iter(batching.batches(features, plan)(tf.distribute.InputContext())))
        outputs = model(batch)
        assert set(outputs) == set(task.token_outputs)
        assert outputs["start_logits"].shape == batch["input_ids"].shape
        if training:
            assert 2 < float(tf.reduce_mean(task.losses(outputs, batch))) < 8


def test_version_1_is_scored_and_written(file, tmp_path, capsys):
    task = task_of(predict_file=file(DUTIES, DUTIES))
    questions = task.read("dev")
    features = task.features(questions, squad_golden.tokenizer(), False)
    outputs = oracle(task, features, questions)
    assert task.score("dev", questions, features, outputs) == {"exact_match": 100.0, "f1": 100.0}
    paths = task.write("test", questions, features, outputs, str(tmp_path / "out"))
    assert [path.rpartition("/")[2] for path in paths] == ["predictions.json", "nbest_predictions.json"]
    assert json.loads((tmp_path / "out" / "predictions.json").read_text()) == {"q0": "duties", "q1": "duties"}
    assert "exact_match 100.0000  f1 100.0000" in capsys.readouterr().out


def test_threshold_is_the_given_one_or_that_tuned_on_dev(file, tmp_path):
    path = file(DUTIES, [], DUTIES)
    for given, expected in ((None, ["duties", "", "duties"]), (-100.0, ["", "", ""])):
        task = task_of(predict_file=path, version_2_with_negative=True, null_score_diff_threshold=given)
        questions = task.read("dev")
        features = task.features(questions, squad_golden.tokenizer(), False)
        assert task.describe()["null_score_diff_threshold"] == given
        outputs = oracle(task, features, questions)
        # A model that prefers no answer throughout: 0.0 would answer nothing.
        outputs["start_logits"][:, 0] += 20
        figures = task.score("dev", questions, features, outputs)
        assert figures["best_f1"] == 100.0
        assert task.describe()["null_score_diff_threshold"] == (figures["best_f1_thresh"] if given is None else given)
        task.write("test", questions, features, outputs, str(tmp_path))
        assert list(json.loads((tmp_path / "predictions.json").read_text()).values()) == expected

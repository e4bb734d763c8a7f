"""A trained model's own labels decide, whatever folder it comes in and whatever order they have."""

import json
import pathlib
import shutil
import sys

import numpy as np
import pytest

import bert
import run_classifier
import run_ner
from modeling.checkpoints import convert, google, load
from modeling.config import BertConfig
from modeling.models import ClassificationModel, TokenClassificationModel, all_variables

MNLI = ["contradiction", "entailment", "neutral"]
TAGS = ["O", "B-LOC", "B-PER", "I-PER"]
SENTENCES = ["w1 w2 w3", "w4 w5", "w60 w7 w8", "w9 w80", "w11"]


def trained(folder, release, model, labels, seed=0):
    """A fine-tuned model's folder as the release lays it out, with a random head; returns the path."""
    for name in ("vocab.txt", "bert_config.json"):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(release / name, folder)
    load.load_into(model, str(release))
    rng = np.random.default_rng(seed)
    for weights in (model.head.output_weights, model.head.output_bias):
        weights.assign(rng.normal(size=weights.shape))
    google.write(str(folder / "bert_model.ckpt"), {
        name: variable.numpy() for name, variable in all_variables(model).items()})
    if labels:
        (folder / "task.json").write_text(json.dumps({"labels": labels}))
    return str(folder)


def config(release):
    return BertConfig.from_json_file(str(release / "bert_config.json"))


def hugging_face(source, folder, labels):
    """The model as a Hugging Face folder with labels of one's choice."""
    convert.convert(source, str(folder), "huggingface")
    values = json.loads((folder / "config.json").read_text())
    values["id2label"] = {str(number): label for number, label in enumerate(labels)}
    (folder / "config.json").write_text(json.dumps(values))
    return str(folder)


@pytest.fixture(scope="module")
def classifier(tiny_release, tmp_path_factory):
    """Path of a model of three classes without names."""
    model = ClassificationModel(config(tiny_release), 3)
    return trained(tmp_path_factory.mktemp("classifier") / "x", tiny_release, model, None)


@pytest.fixture(scope="module")
def mnli(tmp_path_factory):
    """MNLI's dev and test files, a few rows."""
    folder = tmp_path_factory.mktemp("mnli")
    for name in ("dev_matched.tsv", "test_matched.tsv"):
        rows = [f"{text}\t{text}\t{MNLI[row % 3]}" for row, text in enumerate(SENTENCES)]
        (folder / name).write_text("\n".join(["sentence1\tsentence2\tgold_label", *rows]) + "\n")
    return folder


@pytest.fixture
def script(monkeypatch, capsys, tmp_path):
    """Runs a script with flags; returns its folder and what it printed."""
    count = iter(range(100))

    def run(module, *flags):
        folder = tmp_path / f"out{next(count)}"
        if not any(flag.startswith("--output_dir") for flag in flags):
            flags = (*flags, f"--output_dir={folder}")
        monkeypatch.setattr(sys, "argv", ["script", "--precision=float32", *map(str, flags)])
        try:
            module.cli()
        except SystemExit as ended:
            assert ended.code == 1
        printed = capsys.readouterr()
        return folder, printed.out + printed.err

    return run


def results(folder):
    return np.loadtxt(folder / "test_results.tsv")


def metrics(folder):
    return dict(line.split(" = ") for line in (folder / "eval_results.txt").read_text().splitlines())


@pytest.fixture
def predict_mnli(script, mnli):
    return lambda path, *flags: script(run_classifier, "--task_name=mnli", f"--data_dir={mnli}", "--max_seq_length=24",
                                       f"--init_checkpoint={path}", "--do_eval", "--do_predict", *flags)


def test_hugging_face_folder_in_another_order_gives_mnli_s_labels(classifier, predict_mnli, tmp_path):
    reference, printed = predict_mnli(classifier)
    assert "the model's labels have no names; its outputs are taken to be contradiction, entailment, neutral" in printed
    path = hugging_face(classifier, tmp_path / "hf", ["ENTAILMENT", "neutral", "contradiction"])
    found, printed = predict_mnli(path)
    assert "no names" not in printed
    # What the model calls entailment is its first output; the release's columns are those of MNLI_LABELS.
    np.testing.assert_allclose(results(found), results(reference)[:, [2, 0, 1]], rtol=1e-6)
    submission = (found / "MNLI-m.tsv").read_text().splitlines()[1:]
    assert submission == [f"{row}\t{MNLI[best]}" for row, best in enumerate(results(found).argmax(axis=1))]
    gold = np.arange(len(SENTENCES)) % 3
    accuracy = float(np.mean(results(found).argmax(axis=1) == gold))
    assert float(metrics(found)["eval_accuracy"]) == pytest.approx(accuracy)
    assert metrics(found)["eval_loss"] != metrics(reference)["eval_loss"]


def test_converted_folder_s_task_file_is_read(classifier, predict_mnli, tmp_path):
    path = hugging_face(classifier, tmp_path / "hf", ["entailment", "neutral", "contradiction"])
    convert.convert(path, str(tmp_path / "google"), "google")
    assert json.loads((tmp_path / "google/task.json").read_text()) == {
        "labels": ["entailment", "neutral", "contradiction"]}
    found, expected = (results(predict_mnli(each)[0]) for each in (tmp_path / "google", path))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_names_like_label_0_are_taken_in_the_data_s_order_and_said(classifier, predict_mnli, tmp_path):
    path = hugging_face(classifier, tmp_path / "hf", ["LABEL_0", "LABEL_1", "LABEL_2"])
    found, printed = predict_mnli(path)
    assert f"{path}/model.safetensors: the model's labels have no names" in printed
    np.testing.assert_allclose(results(found), results(predict_mnli(classifier)[0]), atol=1e-6)


@pytest.mark.parametrize("labels", [["positive", "negative", "neutral"], ["entailment", "not_entailment"]])
def test_other_labels_are_refused_before_anything_is_computed(classifier, predict_mnli, tmp_path, labels):
    path = hugging_face(classifier, tmp_path / "hf", labels)
    found, printed = predict_mnli(path)
    assert printed.splitlines()[-1].startswith(
        f"error: {path}/model.safetensors: the model's labels are {', '.join(labels)}; those of the data are "
        "contradiction, entailment, neutral.")
    assert not (found / "test_results.tsv").exists()


def test_two_classes_are_not_inverted_by_the_order_of_the_flag(tiny_release, script, tmp_path):
    path = trained(tmp_path / "m", tiny_release, ClassificationModel(config(tiny_release), 2), ["no", "yes"])
    (tmp_path / "new.csv").write_text("\n".join(["text", *SENTENCES]) + "\n")
    flags = ["--task_name=custom", "--text_a_column=text", "--max_seq_length=24", "--do_predict",
             f"--test_file={tmp_path}/new.csv", f"--init_checkpoint={path}"]
    own, _ = script(run_classifier, *flags)  # without --labels: the model's
    same, _ = script(run_classifier, *flags, "--labels=no,yes")
    other, _ = script(run_classifier, *flags, "--labels=yes,no")
    np.testing.assert_allclose(results(other), results(same)[:, ::-1], rtol=1e-6)
    tables = {(folder / "predictions.tsv").read_text() for folder in (own, same, other)}
    assert len(tables) == 1 and {line.split("\t")[1] for line in tables.pop().splitlines()[1:]} <= {"no", "yes"}


def test_ensemble_averages_scores_of_the_same_label(tiny_release, classifier, predict_mnli, mnli, script, tmp_path):
    first = hugging_face(classifier, tmp_path / "first", ["neutral", "contradiction", "entailment"])
    source = trained(tmp_path / "second", tiny_release, ClassificationModel(config(tiny_release), 3), MNLI, seed=1)
    both, _ = script(run_classifier, "--task_name=mnli", f"--data_dir={mnli}", "--max_seq_length=24", "--do_predict",
                     f"--ensemble={first},{source}")
    one, two = (np.log(results(predict_mnli(path)[0])) for path in (first, source))
    mean = np.exp((one + two) / 2)
    np.testing.assert_allclose(results(both), mean / mean.sum(axis=1, keepdims=True), atol=1e-5)


def test_tags_in_another_order_are_the_same_tags(tiny_release, script, tmp_path):
    path = trained(tmp_path / "m", tiny_release, TokenClassificationModel(config(tiny_release), 4), TAGS)
    (tmp_path / "test.txt").write_text("".join(f"{text}\n\n".replace(" ", "\n") for text in SENTENCES))
    flags = ["--max_seq_length=16", "--do_predict", f"--test_file={tmp_path}/test.txt"]
    own, _ = script(run_ner, *flags, f"--init_checkpoint={path}")
    expected = (own / "predictions.txt").read_text()
    assert len({line.split()[1] for line in expected.splitlines() if line}) > 1
    renamed = hugging_face(path, tmp_path / "hf", ["O", "b-LOC", "B-PER", "I-PER"])
    for source in (path, renamed):
        other, _ = script(run_ner, *flags, f"--init_checkpoint={source}", "--labels=I-PER,B-LOC,O,B-PER")
        assert (other / "predictions.txt").read_text() == expected


def test_known_task_keeps_its_columns_when_a_finished_run_had_others(classifier, mnli, script, tmp_path):
    run = tmp_path / "run/final_model"
    shutil.copytree(classifier, run)
    described = {"task_name": "custom", "labels": ["entailment", "neutral", "contradiction"], "regression": False,
                 "text_a_column": "t", "max_seq_length": 24}
    (run / "task.json").write_text(json.dumps(described))
    script(run_classifier, "--task_name=mnli", f"--data_dir={mnli}", "--do_predict", "--text_a_column=sentence1",
           "--text_b_column=sentence2", f"--output_dir={tmp_path}/run")
    answers = bert.load_finished(str(tmp_path / "run"), precision="float32").predict(
        [(text, text) for text in SENTENCES])
    np.testing.assert_allclose(
        results(pathlib.Path(tmp_path / "run")),
        [[each.probabilities[label] for label in MNLI] for each in answers], atol=1e-5)


@pytest.mark.parametrize(("change", "message"), [
    ({"labels": ["a", "b", 3]}, "labels is \"['a', 'b', 3]\", which is not a value of --labels."),
    ({"max_seq_length": "128"}, "max_seq_length is '128', which is not a value of --max_seq_length."),
    ({"max_seq_length": True}, "max_seq_length is 'True', which is not a value of --max_seq_length."),
    ({"header": 3}, "header is '3', which is not a value of --header."),
    ({"task_name": None, "regression": None}, "regression is 'None', which is not a value of --regression."),
])
def test_damaged_description_is_one_line(classifier, script, tmp_path, change, message):
    shutil.copytree(classifier, tmp_path / "run/final_model")
    path = tmp_path / "run/final_model/task.json"
    path.write_text(json.dumps({"task_name": "custom", "labels": ["a", "b", "c"], **change}))
    _, printed = script(run_classifier, "--do_predict", f"--output_dir={tmp_path}/run")
    assert printed.startswith(f"error: {path}: {message}") and printed.count("\n") == 1


def test_hostile_description_sets_nothing_but_what_describes_the_task(classifier, script, mnli, tmp_path):
    shutil.copytree(classifier, tmp_path / "run/final_model")
    (tmp_path / "run/final_model/task.json").write_text(json.dumps({
        "task_name": "mnli", "labels": MNLI, "max_seq_length": 24, "do_train": True, "do_eval": True,
        "data_dir": str(mnli), "train_file": "/etc/passwd", "dev_file": "/etc/passwd", "test_file": "/etc/passwd",
        "cache_dir": str(tmp_path / "elsewhere"), "tpu_name": "10.0.0.1", "strategy": "tpu",
        "output_dir": str(tmp_path / "other"), "init_checkpoint": "/etc", "file_format": "jsonl",
        "vocab_file": "/etc/passwd", "ensemble": ["/etc"]}))
    _, printed = script(run_classifier, "--do_predict", f"--output_dir={tmp_path}/run")
    assert printed.startswith("error: No test file given. Pass --test_file, or --data_dir")
    _, printed = script(run_classifier, "--do_predict", f"--output_dir={tmp_path}/run", f"--data_dir={mnli}")
    assert (tmp_path / "run/test_results.tsv").exists(), printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]

"""Classification and regression: files in GLUE's layouts and the user's own, metrics, outputs, mistakes."""

import dataclasses
import json

import numpy as np
import pytest

from foundation.errors import BertError
from modeling.config import BertConfig
from tasks.classification.files import ClassificationSettings, Example
from tasks.classification.task import ClassificationTask
from tasks.task import Predicted
from tests.conftest import TINY_CONFIG
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

NLI_PARSES = "binary1\tbinary2\tparse1\tparse2"

# By task: files in the official layout, and what is read of the first row of each split.
OFFICIAL = {
    "cola": ({"train.tsv": 'gj04\t1\t\tHe said "so.\n', "dev.tsv": "gj04\t0\t*\tHim said.",
              "test.tsv": "index\tsentence\n0\tWho?\n"},
             {"train": ('He said "so.', None, 1), "dev": ("Him said.", None, 0), "test": ("Who?", None, None)}),
    "SST-2": ({"train.tsv": "sentence\tlabel\ngood \t1\n", "dev.tsv": "sentence\tlabel\nbad\t0\n",
               "test.tsv": "index\tsentence\n0\tso so\n"},
              {"train": ("good ", None, 1), "dev": ("bad", None, 0), "test": ("so so", None, None)}),
    "MRPC": ({"train.tsv": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tone\ttwo\n",
              "dev.tsv": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n0\t7\t8\t\"three\tfour\r\n",
              "test.tsv": "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t7\t8\tfive\tsix\n"},
             {"train": ("one", "two", 1), "dev": ('"three', "four", 0), "test": ("five", "six", None)}),
    "qqp": ({"train.tsv": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tone?\ttwo?\t1\n",
             "dev.tsv": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n4\t5\t6\tthree?\tfour?\t0\n",
             "test.tsv": "id\tquestion1\tquestion2\n0\tfive?\t\n"},
            {"train": ("one?", "two?", 1), "dev": ("three?", "four?", 0), "test": ("five?", "", None)}),
    "STSB": ({"train.tsv": "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
                           "0\tg\tf\t2012\t1\tnone\tnone\tone\ttwo\t3.800\n",
              "dev.tsv": "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
                         "0\tg\tf\t2012\t1\tnone\tnone\tthree\tfour\t0\n",
              "test.tsv": "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\n"
                          "0\tg\tf\t2012\t1\tnone\tnone\tfive\tsix\n"},
             {"train": ("one", "two", 3.8), "dev": ("three", "four", 0.0), "test": ("five", "six", None)}),
    "MNLI": ({"train.tsv": f"index\tpromptID\tpairID\tgenre\t{NLI_PARSES}\tsentence1\tsentence2\tlabel1\tgold_label\n"
                           "0\t1\t2\tg\tb\tb\tp\tp\tone\ttwo\tneutral\tneutral\n",
              "dev_matched.tsv": f"index\tpromptID\tpairID\tgenre\t{NLI_PARSES}\tsentence1\tsentence2\t"
                                 "label1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
                                 "0\t1\t2\tg\tb\tb\tp\tp\tthree\tfour\tn\tn\tn\tn\tn\tentailment\n",
              "dev_mismatched.tsv": f"index\tpromptID\tpairID\tgenre\t{NLI_PARSES}\tsentence1\tsentence2\t"
                                    "label1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
                                    "0\t1\t2\tg\tb\tb\tp\tp\tfive\tsix\tn\tn\tn\tn\tn\tcontradiction\n",
              "test_matched.tsv": f"index\tpromptID\tpairID\tgenre\t{NLI_PARSES}\tsentence1\tsentence2\n"
                                  "0\t1\t2\tg\tb\tb\tp\tp\tseven\teight\n"},
             {"train": ("one", "two", 2), "dev_matched": ("three", "four", 1), "dev_mismatched": ("five", "six", 0),
              "test_matched": ("seven", "eight", None)}),
    "qnli": ({"train.tsv": "index\tquestion\tsentence\tlabel\n0\tone?\ttwo\tentailment\n",
              "dev.tsv": "index\tquestion\tsentence\tlabel\n0\tthree?\tfour\tnot_entailment\n",
              "test.tsv": "index\tquestion\tsentence\n0\tfive?\tsix\n"},
             {"train": ("one?", "two", 0), "dev": ("three?", "four", 1), "test": ("five?", "six", None)}),
    "RTE": ({"train.tsv": "index\tsentence1\tsentence2\tlabel\n0\tone\ttwo\tnot_entailment\n",
             "dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\tthree\tfour\tentailment\n",
             "test.tsv": "index\tsentence1\tsentence2\n0\tfive\tsix\n"},
            {"train": ("one", "two", 1), "dev": ("three", "four", 0), "test": ("five", "six", None)}),
    "wnli": ({"train.tsv": "index\tsentence1\tsentence2\tlabel\n0\tone\ttwo\t1\n",
              "dev.tsv": "index\tsentence1\tsentence2\tlabel\n0\tthree\tfour\t0\n",
              "test.tsv": "index\tsentence1\tsentence2\n0\tfive\tsix\n"},
             {"train": ("one", "two", 1), "dev": ("three", "four", 0), "test": ("five", "six", None)}),
    "AX": ({"diagnostic.tsv": "index\tsentence1\tsentence2\n0\tone\ttwo\n"}, {"test": ("one", "two", None)}),
    "XNLI": ({"multinli/multinli.train.zh.tsv": "premise\thypo\tlabel\none\ttwo\tcontradictory\n",
              "xnli.dev.tsv": "language\tgold_label\ta\tb\tc\td\tsentence1\tsentence2\tpromptID\n"
                              "de\tneutral\t\t\t\t\tno\tno\t1\nzh\tneutral\t\t\t\t\tthree\tfour\t1\n",
              "xnli.test.tsv": "language\tgold_label\ta\tb\tc\td\tsentence1\tsentence2\tpromptID\n"
                               "zh\tneutral\t\t\t\t\tfive\tsix\t1\n"},
             {"train": ("one", "two", 0), "dev": ("three", "four", 2), "test": ("five", "six", None)}),
}


def write(folder, contents):
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8", newline="")
    return str(folder)


def make(**settings):
    return ClassificationTask(ClassificationSettings(**settings))


def custom(folder, contents, **settings):
    """The task of the user's files, train.*, dev.* and test.*, text in column `t` and label in column `l`."""
    write(folder, contents)
    given = {f"{name.split('.')[0]}_file": str(folder / name) for name in contents}
    return make(**{"task_name": "custom", "text_a_column": "t", "label_column": "l", **given, **settings})


def predicted(examples, logits):
    return Predicted(examples, None, {"logits": np.asarray(logits)}, None)


def error(action, *arguments):
    with pytest.raises(BertError) as raised:
        action(*arguments)
    return str(raised.value)


@pytest.mark.parametrize("name", OFFICIAL)
def test_official_layouts_are_read(name, tmp_path, capsys):
    contents, expected = OFFICIAL[name]
    task = make(task_name=name, data_dir=write(tmp_path / "own", contents))
    splits = [split for split in ("train", *task.dev_splits, *task.test_splits) if split in expected]
    assert splits == list(expected)
    assert {split: tuple(task.read(split)[0]) for split in splits} == expected
    assert "labels of a test set" not in capsys.readouterr().out
    in_root = write(tmp_path / "root" / task.data.data_set.folder, contents).removesuffix(task.data.data_set.folder)
    root = make(task_name=name.lower(), data_dir=in_root)
    assert all(root.read(split) == task.read(split) for split in splits)


def test_names_of_tasks_in_any_spelling(tmp_path):
    for name in ("STS-B", "stsb", "Sts_B"):
        assert make(task_name=name).name == "sts-b"
    assert error(lambda: make(task_name="mlni")).startswith("'mlni' is not a task. Pass --task_name: cola, sst-2, ")
    assert error(make).startswith("No task given, and --output_dir holds no finished run. Pass --task_name")


def test_checkpoints_are_selected_by_the_paper_s_metric():
    assert {name: make(task_name=name).metric for name in ("cola", "mrpc", "qqp", "sts-b", "mnli", "rte")} == {
        "cola": "matthews", "mrpc": "f1", "qqp": "f1", "sts-b": "spearman", "mnli": "eval_accuracy",
        "rte": "eval_accuracy"}


def test_incomplete_lines_of_qqp_are_counted_and_left_out(tmp_path, capsys):
    header, row = OFFICIAL["qqp"][0]["train.tsv"].splitlines()
    lines = [header, row, "broken by a", "line end?\t0", "7\t8\t9\t\tempty\t0", row]
    task = make(task_name="QQP", data_dir=write(tmp_path, {"train.tsv": "\n".join(lines)}))
    assert [example.text_a for example in task.read("train")] == ["one?", "one?"]
    assert "3 of 5 lines left out" in capsys.readouterr().out


def test_mismatched_mnli_is_optional_and_its_absence_reported(tmp_path, capsys):
    contents = {name: text for name, text in OFFICIAL["MNLI"][0].items() if name != "dev_mismatched.tsv"}
    task = make(task_name="mnli", data_dir=write(tmp_path, contents))
    assert task.dev_splits == ("dev_matched",) and task.test_splits == ("test_matched",)
    assert "dev_mismatched.tsv not found; left out" in capsys.readouterr().out


def test_a_file_given_by_flag_replaces_the_task_s(tmp_path):
    write(tmp_path, {"mine.tsv": "sentence\tlabel\nfine\t1\n", "plain.txt": "just text\n"})
    task = make(task_name="mnli", dev_file=str(tmp_path / "mine.tsv"))
    assert task.dev_splits == ("dev",) and task.files("dev") == [str(tmp_path / "mine.tsv")]
    task = make(task_name="sst-2", test_file=str(tmp_path / "plain.txt"), text_a_column="1", header=False)
    assert task.read("test") == [Example("just text", None, None)]


@pytest.mark.parametrize("name", ["train.tsv", "train.csv", "train.jsonl"])
def test_custom_files_in_three_formats(name, tmp_path, capsys):
    content = {"train.tsv": "t\tu\tl\none\ttwo\tno\nthree\tfour\tyes\n",
               "train.csv": 't,u,l\n"one",two,no\nthree,four,yes\n',
               "train.jsonl": '{"t":"one","u":"two","l":"no"}\n{"t":"three","u":"four","l":"yes"}\n'}[name]
    task = custom(tmp_path, {name: content}, text_b_column="u")
    assert task.read("train") == [Example("one", "two", 0), Example("three", "four", 1)]
    assert task.data.labels == ("no", "yes")
    assert capsys.readouterr().out.count("Labels found in") == 1


def test_custom_files_without_header_by_number(tmp_path):
    task = custom(tmp_path, {"train.tsv": "yes\tone\nno\ttwo\n"}, header=False, text_a_column="2", label_column="1")
    assert task.read("train") == [Example("one", None, 1), Example("two", None, 0)]


def test_labels_by_flag_keep_their_order(tmp_path):
    task = custom(tmp_path, {"train.tsv": "t\tl\none\tyes\n"}, labels=["yes", "no"])
    assert task.read("train")[0].label == 0 and task.describe({})["labels"] == ["yes", "no"]


def test_custom_regression(tmp_path):
    task = custom(tmp_path, {"train.tsv": "t\tl\none\t-2.5\ntwo\t1e3\n"}, regression=True)
    assert [example.label for example in task.read("train")] == [-2.5, 1000]
    assert task.data.labels is None and task.metric == "spearman"


def test_a_description_suffices_to_predict_without_the_training_data(tmp_path):
    task = custom(tmp_path, {"train.csv": "t,l\none,b\ntwo,a\n", "test.csv": "t\nthree\n"}, max_seq_length=20)
    described = json.loads(json.dumps(task.describe({})))
    assert described["max_seq_length"] == 20
    later = ClassificationSettings(**described)
    later = ClassificationTask(dataclasses.replace(later, test_file=str(tmp_path / "test.csv")))
    assert later.data.labels == task.data.labels == ("a", "b")
    assert later.read("test") == [Example("three", None, None)]


@pytest.mark.parametrize(("contents", "split", "settings", "message"), [
    ({"train.tsv": "t\tl\na\t0\nb\t1\n", "dev.tsv": "t\tl\na\t0\nb\tmaybe\n"}, "dev", {},
     "dev.tsv, line 3, column 2 ('l'): 'maybe' is not a label of custom. Labels: 0, 1."),
    ({"train.tsv": "t\tl\na\t0\nb\t\nc\t1\n"}, "train", {},
     "train.tsv, line 3, column 2 ('l'): '' is not a label of custom. Labels: 0, 1."),
    ({"train.tsv": "t\tl\na\t0\nb\tx\n"}, "train", {"regression": True},
     "train.tsv, line 3, column 2 ('l'): 'x' is not a number; a score must be one."),
    ({"train.tsv": "t\tl\na\t0\nb\tnan\n"}, "train", {"regression": True},
     "train.tsv, line 3, column 2 ('l'): 'nan' is not a number; a score must be one."),
    ({"train.tsv": "t\tl\n \t0\nb\t1\n"}, "train", {},
     "train.tsv, line 2, column 1 ('t'): empty text. Fill it in or remove the line."),
    ({"train.tsv": "t\tl\na\t0\nb\t0\n"}, "train", {},
     "train.tsv, line 2, column 2 ('l') and below: needs at least two labels, all different, not '0'."),
    ({"train.tsv": "t\tl\n" + "".join(f"a\t{n}\n" for n in range(60))}, "train", {},
     "train.tsv, line 2, column 2 ('l'): 60 different labels in 60 rows. Is it the label column? "
     "For numbers pass --regression; otherwise list the --labels."),
    ({"train.tsv": "t\tl\na\t0\n"}, "train", {"text_a_column": None, "labels": ["0", "1"]},
     "train.tsv: no --text_a_column given. The file has 't', 'l'."),
    ({"train.tsv": "t\tl\na\t0\n"}, "train", {"label_column": None, "labels": ["0", "1"]},
     "train.tsv: no --label_column given. The file has 't', 'l'."),
    ({"train.jsonl": '{"t": "a"}\n'}, "train", {"labels": ["0", "1"]},
     "train.jsonl, line 1: no column 'l'. It has 't'. Pass --label_column."),
    ({"train.jsonl": '{"t": "a", "l": 0}\n{"t": "a"}\n'}, "train", {"labels": ["0", "1"]},
     "train.jsonl, line 2: no key 'l'. It has 't'."),
    ({"train.tsv": "t\tl\na\t0\n"}, "train", {"labels": ["0", "1"], "text_b_column": "u"},
     "train.tsv, line 1: no column 'u'. It has 't', 'l'. Pass --text_b_column."),
    ({"train.tsv": "t\tl\na\t0\n"}, "train", {"labels": ["0", "0"]},
     "--labels: needs at least two labels, all different, not '0', '0'."),
    ({"train.tsv": "t\tl\na\t0\n"}, "dev", {}, "No dev file given. Pass --dev_file."),
    ({"train.tsv": ""}, "train", {}, "train.tsv: empty."),
    ({"dev.tsv": "t\tl\na\t0\n"}, "dev", {},
     "The labels are unknown. Pass them as --labels=no,yes, or pass the --train_file that has them."),
])
def test_mistakes_are_reported(contents, split, settings, message, tmp_path):
    task = custom(tmp_path, contents, **settings)
    assert error(task.read, split).replace(f"{tmp_path}/", "") == message


def test_missing_files_are_named_by_flag(tmp_path):
    assert error(make(task_name="rte", data_dir=str(tmp_path)).files, "train") == (
        f"{tmp_path}: holds no train.tsv or RTE/train.tsv (--data_dir). Name the file by --train_file.")
    assert error(make(task_name="rte").files, "test") == (
        "No test file given. Pass --test_file, or --data_dir, a folder with test.tsv or RTE/test.tsv.")
    assert error(make(task_name="rte", train_file="/none.tsv").files, "train") == (
        "/none.tsv: no such file (--train_file).")
    assert error(make(task_name="ax", data_dir=str(tmp_path)).files, "train") == (
        "ax has no train set. Train mnli, and predict ax with --output_dir of that run; or pass --train_file.")
    task = make(task_name="xnli", data_dir=write(tmp_path, OFFICIAL["XNLI"][0]), language="fr")
    assert error(task.read, "dev").endswith("no line has language 'fr' (--language). The file has de, zh.")


def test_contradicting_flags_are_refused():
    assert error(lambda: make(task_name="rte", regression=True)) == (
        "--regression: rte has labels. Leave the flag out, or use --task_name=custom.")
    assert error(lambda: make(task_name="custom", regression=True, labels=["a", "b"])) == (
        "--regression predicts a number and takes no --labels. Leave one of the two out.")


def test_labels_in_a_test_set_are_ignored_and_that_is_reported(tmp_path, capsys):
    task = custom(tmp_path, {"test.tsv": "l\tt\nwhat is this\tone\n"}, labels=["0", "1"])
    assert task.read("test") == [Example("one", None, None)]
    assert f"{tmp_path}/test.tsv, line 2, column 1 ('l'): labels of a test set are not read." in (
        capsys.readouterr().out)
    rows = {"test.tsv": "1\tone\n"}
    task = custom(tmp_path, rows, labels=["0", "1"], header=False, text_a_column="2", label_column="1")
    assert task.read("test") == [Example("one", None, None)]
    assert "test.tsv, line 1, column 1: labels of a test set" in capsys.readouterr().out


def test_a_test_set_in_another_layout_is_reported(tmp_path):
    layout = OFFICIAL["cola"][0]
    task = make(task_name="cola", data_dir=write(tmp_path, {**layout, "test.tsv": layout["train.tsv"] * 2}))
    assert error(task.read, "test") == (
        f"{tmp_path}/test.tsv, line 1: no column 'sentence'. The file seems to be laid out like the training set, with "
        "labels; a test set has none. To score it, pass it as --dev_file.")
    task = custom(tmp_path, {"test.tsv": "one\n"}, header=False, text_a_column="2", label_column="1")
    assert error(task.read, "test").startswith(
        f"{tmp_path}/test.tsv, line 1: no column '2', it has column 1. Without a header, columns are counted as in the")
    task = custom(tmp_path, {"test.tsv": "u\tl\none\t0\n"}, labels=["0", "1"])
    assert error(task.read, "test") == (
        f"{tmp_path}/test.tsv, line 1: no column 't'. It has 'u', 'l'. Pass --text_a_column.")


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(Vocabulary([*SPECIAL_TOKENS, "one", "two", "three"]))


def test_features_are_cut_rows_with_labels_of_the_right_kind(tokenizer):
    task = make(task_name="rte", max_seq_length=6)
    features = task.features([Example("one two three", "one two", 1), Example("one", "two", 0)], tokenizer, True)
    assert features.lengths.tolist() == [6, 5] and features.values["label_ids"].tolist() == [1, 0]
    assert features.values["label_ids"].dtype == np.int32
    assert tokenizer.vocabulary.tokens_of(features.tokens["input_ids"][:6]) == [
        "[CLS]", "one", "two", "[SEP]", "one", "[SEP]"]
    scored = make(task_name="sts-b").features([Example("one", "two", 2.5)], tokenizer, True)
    assert scored.values["label_ids"].dtype == np.float32 and scored.values["label_ids"].tolist() == [2.5]
    assert make(task_name="cola").features([Example("one", None, None)], tokenizer, False).values == {}


def test_fingerprint_follows_length_labels_and_columns():
    task = make(task_name="cola")
    for change in ({"max_seq_length": 64}, {"labels": ["1", "0"]}, {"text_a_column": "2"}):
        assert make(task_name="cola", **change).fingerprint() != task.fingerprint()
    assert json.loads(json.dumps(task.fingerprint())) == task.fingerprint()


@pytest.mark.parametrize(("name", "num_labels"), [("mnli", 3), ("sts-b", 1)])
def test_model_gives_scores_of_the_right_shape(name, num_labels):
    batch = {key: np.ones((2, 8), np.int32) for key in ("input_ids", "input_mask", "segment_ids")}
    model = make(task_name=name).network().model(BertConfig(**TINY_CONFIG), "float32", False)
    assert model(batch)["logits"].shape == (2, num_labels)


def test_losses_are_cross_entropy_and_squared_error():
    logits = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]], np.float32)
    batch = {"label_ids": np.array([1, 0], np.int32), "is_real_example": np.array([1, 0], np.int32)}
    task = make(task_name="mnli")
    expected = [-np.log(np.exp(row[label]) / np.exp(row).sum()) for row, label in zip(logits, [1, 0])]
    network = task.network()
    np.testing.assert_allclose(network.losses({"logits": logits}, batch), expected, rtol=1e-6)
    assert np.asarray(network.term_weights(batch)).tolist() == [1.0, 0.0]
    scored = {"label_ids": np.array([2.5, 1.0], np.float32)}
    network = make(task_name="sts-b").network()
    assert np.asarray(network.losses({"logits": logits[:, :1]}, scored)).tolist() == [2.25, 1.0]


def test_metrics_of_a_classification(tmp_path):
    task = make(task_name="mrpc")
    examples = [Example("a", "b", label) for label in (1, 1, 0, 0)]
    logits = np.array([[0, 1], [2, 0], [1, 0], [0, 3]], np.float32)
    metrics = task.score("dev", predicted(examples, logits))
    losses = np.log1p(np.exp([-1, 2, -1, 3])).mean()
    assert metrics == pytest.approx({"eval_accuracy": 0.5, "eval_loss": losses, "loss": losses, "f1": 0.5}, rel=1e-6)
    assert task.metric in metrics


def test_metrics_of_a_regression_and_of_the_user_s_labels():
    examples = [Example("a", "b", score) for score in (1.0, 2.0, 4.0)]
    metrics = make(task_name="sts-b").score("dev", predicted(examples, [[1.0], [3.0], [4.0]]))
    assert metrics["eval_loss"] == pytest.approx(1 / 3) and metrics["spearman"] == pytest.approx(1)
    assert sorted(metrics) == ["eval_loss", "loss", "pearson", "spearman"]
    examples = [Example("a", None, label) for label in (0, 1, 2)]
    task = make(task_name="custom", labels=["x", "y", "z"])
    metrics = task.score("dev", predicted(examples, np.eye(3)))
    assert metrics["eval_accuracy"] == metrics["macro_f1"] == metrics["matthews"] == 1


def test_prediction_files_of_the_release_and_of_glue(tmp_path):
    task = make(task_name="mnli")
    logits = np.log(np.array([[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]], np.float32))
    paths = task.write("test_matched", predicted([None] * 2, logits), str(tmp_path), {})
    assert [path.removeprefix(f"{tmp_path}/") for path in paths] == ["test_results.tsv", "MNLI-m.tsv"]
    rows = [list(map(float, line.split("\t"))) for line in (tmp_path / "test_results.tsv").read_text().splitlines()]
    np.testing.assert_allclose(rows, np.exp(logits), rtol=1e-6)
    assert (tmp_path / "MNLI-m.tsv").read_text() == "index\tprediction\n0\tcontradiction\n1\tneutral\n"


def test_second_test_split_and_custom_tasks_have_their_own_files(tmp_path):
    data = write(tmp_path, {"test_matched.tsv": "", "test_mismatched.tsv": ""})
    paths = make(task_name="mnli", data_dir=data).write(
        "test_mismatched", predicted([None], np.eye(3)[:1]), str(tmp_path), {})
    assert [path.removeprefix(f"{tmp_path}/") for path in paths] == ["test_mismatched_results.tsv", "MNLI-mm.tsv"]
    paths = make(task_name="custom", regression=True, test_file="x.tsv").write(
        "test", predicted([None], [[7.25]]), str(tmp_path), {})
    assert [path.removeprefix(f"{tmp_path}/") for path in paths] == ["test_results.tsv", "predictions.tsv"]
    assert (tmp_path / "test_results.tsv").read_text() == "7.25\n"
    assert (tmp_path / "predictions.tsv").read_text() == "index\tprediction\n0\t7.250\n"


def test_language_names_no_file_elsewhere(tmp_path):
    task = ClassificationTask(ClassificationSettings(task_name="xnli", data_dir=str(tmp_path), language="../../x"))
    with pytest.raises(BertError, match=r"--language=\.\./\.\./x: not a language"):
        task.read("train")

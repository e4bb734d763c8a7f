"""Multiple choice: layouts, rows of choices, scores, files, and how mistakes are reported."""

import json

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from foundation.errors import BertError
from tasks.multiple_choice.files import MultipleChoiceSettings, Question
from tasks.multiple_choice.task import MultipleChoiceTask
from tasks.task import Predicted
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

SWAG_HEADER = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"
SWAG = f'{SWAG_HEADER},label\n0,v,1,x,"a, a.",b,gold,c,"d, ""d""",e,f,2\n1,v,2,x,a,,gold,c,d,e,f,0\n'
CODAH = "o\ta \"b\tc\td\te\tf\t3\n"
CUSTOM = {"task_name": "custom", "prompt_columns": ["p", "q"], "choice_columns": ["x", "y"], "label_column": "right",
          "labels": ["X", "Y"]}


@pytest.fixture
def task(tmp_path):
    """A task on files of the given content, as train, dev and test."""
    def making(content, name="questions.csv", **settings):
        path = tmp_path / name
        path.write_text(content)
        files = dict.fromkeys(("train_file", "dev_file", "test_file"), str(path))
        return MultipleChoiceTask(MultipleChoiceSettings(**{"max_seq_length": 16, **files, **settings}))

    return making


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(Vocabulary([*SPECIAL_TOKENS, *"abcdef.,"]))


def error(action, *arguments, **settings):
    with pytest.raises(BertError) as raised:
        action(*arguments, **settings)
    return str(raised.value)


def test_swag_s_second_sentence_begins_each_ending(task):
    assert task(SWAG, task_name="SWAG").read("train") == [
        Question("a, a.", ("b c", 'b d, "d"', "b e", "b f"), 2), Question("a", (" c", " d", " e", " f"), 0)]


def test_swag_s_test_file_has_no_label(task):
    content = f"{SWAG_HEADER}\n0,v,1,x,a,b,gold,c,d,e,f\n"
    assert task(content, task_name="swag").read("test") == [Question("a", ("b c", "b d", "b e", "b f"), None)]


def test_codah_has_no_header_and_no_quoting(task):
    assert task(CODAH, "dev.tsv", task_name="codah").read("dev") == [Question('a "b', ("c", "d", "e", "f"), 3)]


@pytest.mark.parametrize(("name", "content"), [
    ("a.csv", "right,p,q,x,y\nY,a,b,c,d\n"), ("a.tsv", "right\tp\tq\tx\ty\nY\ta\tb\tc\td\n"),
    ("a.jsonl", json.dumps({"x": "c", "y": "d", "p": "a", "q": "b", "right": "Y"}))])
def test_the_user_s_table_by_columns(task, name, content):
    assert task(content, name, **CUSTOM).read("dev") == [Question("a b", ("c", "d"), 1)]


def test_a_row_has_a_pair_for_each_choice(task, tokenizer):
    of_swag = task(SWAG, task_name="swag", max_seq_length=8)
    features = of_swag.features(of_swag.read("train"), tokenizer, True)
    shown = [" ".join(tokenizer.vocabulary.tokens_of(features.tokens["input_ids"][begin:end]))
             for begin, end in zip(features.row_splits, features.row_splits[1:])]
    assert len(features) == 2 and features.sequences_per_row == 4
    assert shown[:2] == ["[CLS] a , a [SEP] b c [SEP]", "[CLS] a , a [SEP] b d [SEP]"]
    assert shown[4:] == [f"[CLS] a [SEP] {choice} [SEP]" for choice in "cdef"]
    assert features.tokens["segment_ids"][:8].tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert features.values["label_ids"].tolist() == [2, 0]


def test_questions_without_labels_make_features_without_them(task, tokenizer):
    of_swag = task(SWAG, task_name="swag")
    assert of_swag.features(of_swag.read("test"), tokenizer, False).values == {}


def test_accuracy_and_loss(task, tokenizer):
    of_swag = task(SWAG, task_name="swag")
    examples = of_swag.read("dev")
    features = of_swag.features(examples, tokenizer, True)
    logits = np.array([[0, 0, 1, 0], [0, 0, 0, 1]], np.float32)
    metrics = of_swag.score("dev", Predicted(examples, features, {"logits": logits}, tokenizer))
    expected = np.log(np.e + 3) - np.array([1, 0])
    assert metrics == {"accuracy": 0.5, "loss": pytest.approx(expected.mean())}
    batch = {"label_ids": tf.constant([2, 0]), "is_real_example": tf.constant([1, 0])}
    network = of_swag.network()
    assert network.losses({"logits": logits}, batch).numpy() == pytest.approx(expected)
    assert network.term_weights(batch).numpy().tolist() == [1, 0]


def test_probabilities_and_chosen_labels_are_written(task, tmp_path):
    of_custom = task("right,p,q,x,y\nX,a,b,c,d\nX,a,b,c,d\n", **CUSTOM)
    logits = np.array([[0, 2], [1, -1]], np.float32)
    predicted = Predicted(of_custom.read("test"), None, {"logits": logits}, None)
    paths = of_custom.write("test", predicted, str(tmp_path), {})
    assert paths == [f"{tmp_path}/test_results.tsv", f"{tmp_path}/predictions.tsv"]
    np.testing.assert_allclose(np.loadtxt(paths[0]), special.softmax(logits, axis=-1), rtol=1e-6)
    assert (tmp_path / "predictions.tsv").read_text() == "index\tprediction\n0\tY\n1\tX\n"


def test_a_later_command_knows_the_columns(task):
    described = json.loads(json.dumps(task(CODAH, "dev.tsv", task_name="codah").describe({})))
    assert described["task_name"] == "codah"
    again = task(CODAH, "dev.tsv", **described)
    assert again.describe({}) == described and again.read("dev")[0].label == 3


@pytest.mark.parametrize(("content", "message"), [
    (SWAG.replace("f,2", "f,4"),
     ", line 2, column 12 ('label'): '4' is not the label of a choice. Labels: 0, 1, 2, 3."),
    (SWAG.replace(",e,f,0", ",,f,0"), ", line 3, column 10 ('ending2'): empty text. Fill it in or remove the line."),
    (SWAG.replace("x,a,,", "x,a,"), ", line 3: 11 columns where the header has 12. "
     "Look for a separator or line end inside a text, or one that is missing."),
    (SWAG.replace("ending3", "ending4"), ", line 1: no column 'ending3'. It has '', 'video-id', 'fold-ind', "
     "'startphrase', 'sent1', 'sent2', 'gold-source', 'ending0', 'ending1', 'ending2', 'ending4', 'label'.")])
def test_mistakes_are_reported_by_file_line_and_column(task, content, message):
    of_swag = task(content, task_name="swag")
    assert error(of_swag.read, "dev") == of_swag.settings.dev_file + message


def test_a_label_column_is_needed_only_where_labels_are_read(task):
    of_custom = task("right,p,q,x,y\nX,a,b,c,d\n", **{**CUSTOM, "label_column": None})
    assert len(of_custom.read("test")) == 1
    assert error(of_custom.read, "dev").endswith(
        ": no --label_column given. The file has 'right', 'p', 'q', 'x', 'y'.")


@pytest.mark.parametrize(("changes", "message"), [
    ({"task_name": "race"},
     "'race' is not a task. Pass --task_name: swag, codah, or custom for your own files."),
    ({"task_name": None}, "No task given, and --output_dir holds no finished run. "
     "Pass --task_name: swag, codah, or custom for your own files."),
    ({"prompt_columns": None}, "No prompt given. Pass --prompt_columns, one or more."),
    ({"choice_columns": ["x"]}, "Not enough choices given. Pass at least two --choice_columns."),
    ({"labels": ["X"]}, "--labels: needs one label for each of the 2 choices, all different, not 'X'.")])
def test_contradicting_settings_are_refused(changes, message):
    assert error(MultipleChoiceTask, MultipleChoiceSettings(**{**CUSTOM, **changes})) == message


def test_missing_files_are_named_by_flag(tmp_path):
    custom = MultipleChoiceTask(MultipleChoiceSettings(**CUSTOM))
    assert error(custom.files, "dev") == "No dev file given. Pass --dev_file."
    swag = MultipleChoiceTask(MultipleChoiceSettings(task_name="swag"))
    assert error(swag.files, "dev") == "No dev file given. Pass --dev_file, or --data_dir, a folder with val.csv."
    swag = MultipleChoiceTask(MultipleChoiceSettings(task_name="swag", data_dir=str(tmp_path)))
    assert error(swag.files, "train") == (
        f"{tmp_path}: holds no train.csv (--data_dir). Name the file by --train_file.")

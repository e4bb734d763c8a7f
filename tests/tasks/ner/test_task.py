"""The NER task: labels and files, scores as conlleval's, prediction files, its loss."""

import numpy as np
import pytest
import tensorflow as tf

from foundation.errors import BertError
from modeling.config import BertConfig
from modeling.feature_tagger import LAYERS, FeatureTaggerModel
from modeling.models import TokenClassificationModel
from tasks.ner.files import FEATURE_BASED_LEARNING_RATE, VECTORS, NerSettings
from tasks.ner.network import NerNetwork
from tasks.ner.scores import entity_scores
from tasks.ner.task import NerTask
from tasks.task import Predicted
from tests.conftest import TINY_CONFIG
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

TRAIN = "-DOCSTART- -X- O O\n\na X B-PER\nb X I-PER\nc X O\n\nd X B-LOC\n"
DEV = "a X B-LOC\nb X O\n\nc X B-PER\na X I-PER\nb X O\nd X O\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.txt").write_text(TRAIN)
    (tmp_path / "valid.txt").write_text(DEV)
    (tmp_path / "test.txt").write_text("a\nb\n\nc\n")
    return tmp_path


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(Vocabulary([*SPECIAL_TOKENS, *"abcd"]))


def task(folder=None, **settings):
    return NerTask(NerSettings(data_dir=folder and str(folder), **{"max_seq_length": 6, **settings}))


def error(action, *arguments):
    with pytest.raises(BertError) as raised:
        action(*arguments)
    return str(raised.value)


def outputs(task, features, tags):
    """Outputs of a model whose best label of each word is the given one."""
    best = np.zeros(len(features.tokens["word_starts"]), np.int64)
    best[features.tokens["word_starts"] > 0] = [task.data.labels.index(tag) for tag in tags.split()]
    return {"logits": np.split(np.eye(len(task.data.labels), dtype=np.float32)[best] * 9, features.row_splits[1:-1])}


def test_labels_scheme_and_files_are_found(folder):
    found = task(folder)
    assert found.data.labels == ("O", "B-LOC", "B-PER", "I-PER") and found.data.tag_scheme == "bio"
    assert found.files("dev") == [f"{folder}/valid.txt"]
    assert [len(found.read(split)) for split in ("train", "dev", "test")] == [2, 2, 2]
    assert found.read("test")[0].tags is None


def test_a_later_command_knows_labels_without_the_training_file(folder):
    described = task(folder).describe({})
    (folder / "train.txt").unlink()
    again = task(folder, **described)
    assert again.data.labels == ("O", "B-LOC", "B-PER", "I-PER") and again.describe({}) == described
    assert len(again.read("dev")) == 2


def test_the_right_labels_score_100_also_of_sentences_cut_in_parts(folder, tokenizer):
    cutting = task(folder, max_seq_length=5)
    examples = cutting.read("dev")
    features = cutting.features(examples, tokenizer, False)
    assert len(features) == 3
    right = outputs(cutting, features, "B-LOC O B-PER I-PER O O")
    metrics = cutting.score("dev", Predicted(examples, features, right, tokenizer))
    assert [metrics[name] for name in ("f1", "precision", "recall", "accuracy")] == [100.0] * 4
    assert metrics["loss"] == pytest.approx(np.log(1 + 3 * np.exp(-9)))


# As conlleval 0.2 (PyPI) counts them.
def test_entities_are_counted_as_conlleval_counts_them():
    gold = ["I-PER I-PER O B-PER I-LOC", "I-ORG B-ORG O I-MISC I-MISC", "O B-LOC I-LOC B-LOC"]
    predicted = ["B-PER I-PER I-PER I-LOC I-LOC", "I-ORG I-ORG O B-MISC I-MISC", "I-LOC I-LOC I-LOC B-LOC"]
    table = entity_scores([tags.split() for tags in gold], [tags.split() for tags in predicted])
    assert [(entity, *(round(value, 2) for value in scores)) for entity, *scores in table] == [
        ("all", 33.33, 25.0, 28.57, 8), ("LOC", 33.33, 33.33, 33.33, 3), ("MISC", 100.0, 100.0, 100.0, 1),
        ("ORG", 0.0, 0.0, 0.0, 2), ("PER", 0.0, 0.0, 0.0, 2)]


def test_no_entity_anywhere_scores_zero():
    assert entity_scores([["O"]], [["O"]]) == [("all", 0.0, 0.0, 0.0, 0)]


def test_predictions_have_word_tag_and_predicted_tag(folder, tokenizer, tmp_path):
    of_dev = task(folder)
    examples = of_dev.read("dev")
    features = of_dev.features(examples, tokenizer, False)
    found = outputs(of_dev, features, "B-LOC O B-LOC I-PER O O")
    paths = of_dev.write("dev", Predicted(examples, features, found, tokenizer), str(tmp_path), {})
    assert paths == [f"{tmp_path}/predictions.txt", f"{tmp_path}/entities.tsv"]
    assert (tmp_path / "predictions.txt").read_text() == (
        "a B-LOC B-LOC\nb O O\n\nc B-PER B-LOC\na I-PER I-PER\nb O O\nd O O\n\n")
    assert (tmp_path / "entities.tsv").read_text() == (
        "entity\tprecision\trecall\tf1\tcount\nall\t33.33\t50.00\t40.00\t2\n"
        "LOC\t50.00\t100.00\t66.67\t1\nPER\t0.00\t0.00\t0.00\t1\n")


def test_words_alone_are_predicted_without_a_table(folder, tokenizer, tmp_path):
    (folder / "words.txt").write_text("a\u00a0b\nc\n")
    of_words = task(folder, test_file=f"{folder}/words.txt")
    examples = of_words.read("test")
    features = of_words.features(examples, tokenizer, False)
    predicted = Predicted(examples, features, outputs(of_words, features, "B-PER O"), tokenizer)
    assert of_words.write("test", predicted, str(tmp_path), {}) == [f"{tmp_path}/predictions.txt"]
    assert (tmp_path / "predictions.txt").read_text() == "a_b B-PER\nc O\n\n"


def test_only_labelled_words_of_real_rows_count():
    batch = {"token_labels": tf.constant([[-1, 2, -1, 0], [-1, 1, -1, -1]]), "is_real_example": tf.constant([1, 0])}
    logits = tf.random.stateless_normal([2, 4, 3], [1, 2])
    network = NerNetwork(NerSettings(), 3)
    weights, losses = network.term_weights(batch), network.losses({"logits": logits}, batch)
    assert weights.numpy().tolist() == [0, 1, 0, 1, 0, 0, 0, 0]
    expected = -tf.nn.log_softmax(logits).numpy()
    assert losses.numpy()[[1, 3]] == pytest.approx([expected[0, 1, 2], expected[0, 3, 0]])


def test_terms_of_a_row_are_its_labelled_words(folder, tokenizer):
    of_dev = task(folder)
    features = of_dev.features(of_dev.read("dev"), tokenizer, True)
    assert of_dev.terms_per_row(features) == 3  # sentences of 2 and of 4 words


def test_the_model_is_fine_tuned_or_on_a_frozen_encoder(folder):
    config = BertConfig.from_dict(TINY_CONFIG)
    assert isinstance(task(folder).network().model(config, None, False), TokenClassificationModel)
    tagger = task(folder, feature_based=True, features="last", lstm_size=3).network().model(config, None, False)
    assert isinstance(tagger, FeatureTaggerModel) and tagger.tagger.widths == (16, 6)


def test_unknown_label_and_wrong_scheme_in_dev_are_named(folder):
    (folder / "valid.txt").write_text("a X O\nb X B-ORG\n")
    assert error(task(folder).read, "dev") == (f"{folder}/valid.txt, line 2: B-ORG is not a label of the training file "
                                               "or of --labels. Labels: O, B-LOC, B-PER, I-PER.")
    (folder / "valid.txt").write_text("a X O\nb X I-PER\n")
    assert error(task(folder).read, "dev").startswith(
        f"{folder}/valid.txt, line 2: I-PER after O is impossible in BIO, ")


def test_a_dev_file_needs_tags(folder):
    (folder / "valid.txt").write_text("a\nb\n")
    assert error(task(folder).read, "dev") == (
        f"{folder}/valid.txt, line 1: only one column, the word. A dev file has a tag in its last column.")


def test_missing_files_are_named_by_flag(tmp_path):
    assert error(task().files, "dev") == ("No dev file given. Pass --dev_file, or --data_dir, a folder with dev.txt, "
                                          "valid.txt or eng.testa.")
    assert error(task(tmp_path).files, "train") == (
        f"{tmp_path}: holds no train.txt or eng.train (--data_dir). Name the file by --train_file.")
    assert error(task(test_file="none.txt").files, "test") == "none.txt: no such file (--test_file)."


def test_the_vectors_to_choose_from_are_the_model_s():
    assert tuple(LAYERS) == VECTORS


def test_help_gives_the_learning_rate_of_the_feature_based_approach():
    described = NerSettings.__dataclass_fields__["feature_based"].metadata["setting"].help
    assert f"{FEATURE_BASED_LEARNING_RATE:g}" in described

"""Answers from logits, as recorded of the release's write_predictions."""

import json

import numpy as np
import pytest

from tasks.squad import answers as squad_answers
from tasks.squad import features as squad_features
from tasks.squad import files as squad_files
from tasks.squad.answers import Answers
from tasks.squad.files import Paragraph, Question, SquadSettings
from tests.tasks.squad import golden as squad_golden


@pytest.fixture(scope="module")
def recorded(golden):
    """Questions, their features and the recorded logits."""
    questions = squad_files.read(squad_golden.QUESTIONS)
    windows = SquadSettings(max_seq_length=128, doc_stride=48, max_query_length=32)
    features = squad_features.make_features(questions, squad_golden.tokenizer(), windows, False)
    with np.load(golden / "squad" / "logits_eval_128_48.npz") as logits:
        return questions, features, {"start_logits": logits["start"], "end_logits": logits["end"]}


def find(questions, features, outputs, **options):
    return squad_answers.find_answers(
        questions, features, outputs, squad_golden.tokenizer().vocabulary, True, SquadSettings(**options))


@pytest.mark.parametrize("version", [1, 2])
def test_files_are_the_release_s(recorded, tmp_path, version):
    questions = recorded[0]
    answers = find(*recorded, version_2_with_negative=version == 2)
    squad_answers.write(str(tmp_path), questions, answers, threshold=0.0)
    names = {"predictions": "predictions", "nbest_predictions": "nbest"}
    if version == 2:
        names["null_odds"] = "null_odds"
    for ours, theirs in names.items():
        assert (tmp_path / f"{ours}.json").read_text() == squad_golden.text(f"{theirs}_v{version}.json")
    assert len(list(tmp_path.iterdir())) == len(names)


@pytest.mark.parametrize("case", json.loads(squad_golden.text("get_final_text.json")), ids=str)
def test_final_text_is_the_release_s(case):
    predicted, original, do_lower_case, expected = case
    assert squad_answers.get_final_text(predicted, original, do_lower_case) == expected


def one(context, start=None, end=None, **options):
    """Answers to a question of one piece, with logits of 0 but at two places of the context's pieces."""
    questions = [Question("q", "what", Paragraph("", context), None, False)]
    features = squad_features.make_features(questions, squad_golden.tokenizer(), SquadSettings(), False)
    logits = np.zeros((2, len(features), 40), np.float32)
    if start is not None:
        logits[0, :, 3 + start], logits[1, :, 3 + end] = 5, 4
    return find(questions, features, {"start_logits": logits[0], "end_logits": logits[1]}, **options)[0]


def test_answer_text_is_that_of_the_context():
    assert one("Of the  Senate, and", 1, 2).best == "the Senate"
    assert one("Of the  Senate, and", 1, 2, answer_text="offsets").best == "the  Senate"


def test_unknown_piece_gives_its_words_in_the_release_and_itself_by_offsets():
    assert one("(\U00010900, the)", 1, 1).best == "(\U00010900,"
    assert one("(\U00010900, the)", 1, 1, answer_text="offsets").best == "\U00010900"
    assert one("(the) \U00010900, the)", 1, 3).best == "(the) \U00010900,"


def test_pieces_that_occur_twice_are_found_at_the_first_place_in_the_release():
    context = "senate-House-house"
    assert one(context, 4, 4).best == "House"
    assert one(context, 4, 4, answer_text="offsets").best == "house"


def test_answer_is_no_longer_than_allowed():
    nbest = one("the duties of the senate", 0, 4, max_answer_length=2).nbest
    assert max(len(text.split()) for text, _, _ in nbest) == 2
    assert one("the duties of the senate", 0, 4, max_answer_length=5).best == "the duties of the senate"


def test_n_best_are_of_the_requested_number_and_different():
    texts = [text for text, _, _ in one("the the duties of the senate", 3, 4, n_best_size=8).nbest]
    assert len(texts) == len(set(texts)) == 8


def test_context_without_a_window_has_the_release_s_word_for_an_answer():
    answers = one("")
    assert answers == Answers([("empty", 0.0, 0.0)], None)
    assert answers.text(0.0) == "empty"


@pytest.mark.parametrize("context", ["", "the duties"])
def test_question_whose_n_best_are_all_null_has_no_answer(context, tmp_path):
    # The greatest logits are those of [CLS], and n_best_size looks at no other.
    answers = one(context, -3, -3, version_2_with_negative=True, n_best_size=1)
    assert [text for text, _, _ in answers.nbest] == [""]
    assert answers.text(0.0) == answers.best == ""
    question = Question("q", "what", Paragraph("", context), None, False)
    squad_answers.write(str(tmp_path), [question], [answers], 0.0)
    assert json.loads((tmp_path / "predictions.json").read_text()) == {"q": ""}
    assert json.loads((tmp_path / "null_odds.json").read_text()) == {"q": squad_answers.NO_SCORE}
    assert json.loads((tmp_path / "nbest_predictions.json").read_text())["q"][0]["probability"] == 1.0


def test_threshold_decides_between_the_answer_and_none():
    answers = Answers([("", 2.0, 2.0), ("the duties", 1.0, 1.5)], 1.5)
    assert [answers.text(threshold) for threshold in (1.4, 1.5, 1.6)] == ["", "the duties", "the duties"]


def test_padding_behind_a_row_changes_nothing(recorded):
    questions, features, outputs = recorded
    lengths = features.lengths.tolist()
    in_row = np.arange(128) < features.lengths[:, None]
    padded = {name: np.where(in_row, logits, -100) for name, logits in outputs.items()}
    cut = {name: [row[:length] for row, length in zip(logits, lengths, strict=True)]
           for name, logits in outputs.items()}
    assert find(questions, features, padded) == find(questions, features, cut)

"""SQuAD's JSON: what is read, what is left out of training, and what each mistake is called."""

import json

import pytest

from foundation.errors import BertError
from tasks.squad import files as squad_files
from tests.tasks.squad import golden as squad_golden

CONTEXT = "Born in 1895, Ada wrote\u00a0notes\nfor  engines."


def document(*questions, context=CONTEXT, title="Ada"):
    return {"data": [{"title": title, "paragraphs": [{"context": context, "qas": list(questions)}]}]}


def question(identity="q1", answer=("1895", 8), **more):
    answers = [] if answer is None else [{"text": answer[0], "answer_start": answer[1]}]
    return {"id": identity, "question": "When?", "answers": answers, **more}


def read(tmp_path, content):
    path = tmp_path / "questions.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return squad_files.read(str(path))


def test_reads_questions_in_order():
    questions = squad_files.read(squad_golden.QUESTIONS)
    assert [each.id for each in questions] == [f"q{number:03}" for number in range(30)]
    assert questions[0].answers == (("voice I can never hear", 331),)
    assert questions[0].paragraph is questions[1].paragraph
    assert sum(each.is_impossible for each in questions) == len([each for each in questions if not each.answers])


def test_words_are_separated_as_in_the_release():
    assert squad_files.words(" a\u00a0b\tc\u202fd\r\ne") == (["a\u00a0b", "c", "d", "e"], [1, 5, 7, 10])


@pytest.mark.parametrize("answer", [
    ("1895", 8), ("Ada", 14), ("notes\nfor", 24), ("for  engines", 30), (" in ", 4), ("95, Ada", 10)])
def test_answer_in_its_place_is_kept(tmp_path, answer):
    kept, lost = squad_files.trainable(read(tmp_path, document(question(answer=answer))), False, "train.json")
    assert (len(kept), lost) == (1, 0)


@pytest.mark.parametrize("answer", [
    ("1895", 14), ("wrote\u00a0notes", 18), ("Ada", 999), ("engines. And", 35), ("", 3), ("1859", 8)])
def test_answer_that_is_not_in_its_place_is_counted(tmp_path, answer):
    questions = read(tmp_path, document(question(), question("q2", answer)))
    kept, lost = squad_files.trainable(questions, False, "train.json")
    assert ([each.id for each in kept], lost) == (["q1"], 1)


def test_impossible_counts_only_with_version_2(tmp_path):
    questions = read(tmp_path, document(question("q1", is_impossible=True), question("q2")))
    assert [each.is_impossible for each in squad_files.trainable(questions, True, "x")[0]] == [True, False]
    assert [each.is_impossible for each in squad_files.trainable(questions, False, "x")[0]] == [False, False]


def test_answers_are_known_where_each_question_has_a_list(tmp_path):
    unlabelled = {"id": "q2", "question": "Who?"}
    assert squad_files.has_answers(read(tmp_path, document(question(), question("q2", None))))
    assert not squad_files.has_answers(read(tmp_path, document(question(), unlabelled)))
    assert not squad_files.has_answers(read(tmp_path, document(question(answer=None))))
    assert not squad_files.has_answers(read(tmp_path, document()))


@pytest.mark.parametrize(("content", "message"), [
    ('{"data": [\n  {"title": }', r"questions.json, line 2, column 13: not JSON"),
    ({"version": "1.1"}, r'questions.json: the key "data" is missing'),
    ([], r'questions.json: expected an object with the key "data", found list'),
    ({"data": {}}, r'"data" must be a list, not'),
    ({"data": [{"title": "Ada"}]}, r'questions.json, article 1 \("Ada"\): the key "paragraphs" is missing'),
    ({"data": [{"paragraphs": [{"qas": []}]}]}, r'article 1, paragraph 1: the key "context" is missing'),
    ({"data": [{"paragraphs": [{"context": "x"}]}]}, r'article 1, paragraph 1: the key "qas" is missing'),
    (document({"question": "When?"}), r'paragraph 1, question 1: the key "id" is missing'),
    (document({"id": "q1"}), r'question 1 \(id "q1"\): the key "question" is missing'),
    (document(question(is_impossible="no")), r'\(id "q1"\): "is_impossible" must be true or false, not \'no\''),
    (document(question(answer=("1895", "8"))), r'an answer: "answer_start" must be a whole number'),
    (document(question(answer=("1895", -1))), r'\(id "q1"\): "answer_start" is -1'),
    (document(question(answer=(1895, 8))), r'an answer: "text" must be a string, not \'1895\''),
    (document(question(), question()), r'question id "q1" is already used in article 1, paragraph 1'),
])
def test_mistake_is_named_with_its_place(tmp_path, content, message):
    with pytest.raises(BertError, match=message):
        read(tmp_path, content)


@pytest.mark.parametrize(("content", "version_2", "message"), [
    (document(question(answer=None)), False, r'question "q1" has no answer to train on.*--version_2_with_negative'),
    (document(question(answer=None)), True, r'question "q1" has no answer to train on.*set is_impossible'),
    (document({"id": "q1", "question": "Who?"}), False, r'question "q1" has no answer'),
    (document({"id": "q1", "question": "Who?", "answers": [{"text": "Ada"}]}), False,
     r'question "q1": its answer has no "answer_start"'),
    (document(question(answer=("nowhere", 3))), False, r"no answer is found in its context"),
    (document(question(is_impossible=True)), True, r"no answer is found in its context"),
    ({"data": []}, False, r"no answer is found in its context"),
])
def test_questions_that_cannot_be_trained_on_are_named(tmp_path, content, version_2, message):
    with pytest.raises(BertError, match=f"^train.json: {message}"):
        squad_files.trainable(read(tmp_path, content), version_2, "train.json")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(BertError, match=r"nothing\.json: no such file"):
        squad_files.read(str(tmp_path / "nothing.json"))

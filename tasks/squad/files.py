"""SQuAD's JSON, version 1.1 or 2.0: articles of paragraphs of questions. A mistake is reported by its place."""

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from foundation import files
from foundation.errors import BertError
from foundation.settings import DATA, EVALUATION, OTHER, setting
from tasks import files as task_files
from tasks.files import TaskSettings

# The characters between the words of a context in the release; other Unicode spaces, such as U+00A0, are part of a
# word.
SPACES = " \t\r\n\u202f"
_WORD = re.compile(f"[^{SPACES}]+")

AUTO = "auto"
ANSWER_TEXTS = ("release", "offsets")


def _threshold(text: str) -> float | str:
    """A number, or `auto`."""
    try:
        return AUTO if text == AUTO else float(text)
    except ValueError:
        raise ValueError(f"not a number or {AUTO}") from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadSettings(TaskSettings):
    """The data of `run_squad.py`, how contexts are cut into windows, and how answers are chosen."""

    described: ClassVar[tuple[str, ...]] = (
        "max_seq_length", "doc_stride", "max_query_length", "n_best_size", "max_answer_length",
        "version_2_with_negative", "answer_text", "null_score_diff_threshold")
    train_file: str | None = setting(
        None, group=DATA, released=True, help="Questions to train on: JSON in SQuAD's layout.")
    predict_file: str | None = setting(
        None, group=DATA, released=True, help="Questions to answer, and to score where the file has answers.")
    version_2_with_negative: bool = setting(
        False, group=DATA, released=True, help="Some questions have no answer (SQuAD 2.0).")
    max_seq_length: int = setting(
        384, at_least=4, group=DATA, released=True,
        help="Maximum word pieces of a sequence, including [CLS] and [SEP].")
    doc_stride: int = setting(
        128, at_least=1, group=DATA, released=True,
        help="Word pieces from the start of one window of a long context to the next.")
    max_query_length: int = setting(
        64, at_least=1, group=DATA, released=True, help="Maximum word pieces of a question; the rest is cut off.")
    n_best_size: int = setting(
        20, at_least=1, group=EVALUATION, released=True,
        help="Answers to each question in nbest_predictions.json, and start and end positions combined in a window.")
    max_answer_length: int = setting(
        30, at_least=1, group=EVALUATION, released=True, help="Maximum word pieces of an answer.")
    null_score_diff_threshold: float | str = setting(
        0.0, parse=_threshold, default_text="0.0", group=EVALUATION, released=True,
        help="A question has no answer if the null score exceeds the best answer's by more than this. auto: the value "
             "that is best for F1 in the last evaluation.")
    answer_text: str = setting(
        "release", choices=ANSWER_TEXTS, group=EVALUATION,
        help="How the text of an answer is found: as the release does, or exactly by the offsets of its word pieces.")
    verbose_logging: bool = setting(
        False, group=OTHER, released=True, help="Accepted for the release's commands, without effect.")

    def __post_init__(self) -> None:
        super().__post_init__()
        threshold = self.null_score_diff_threshold
        if threshold != AUTO and not isinstance(threshold, int | float):
            raise BertError(f"--null_score_diff_threshold={threshold}: not a number or {AUTO}.")
        if self.max_seq_length <= self.max_query_length + 3:
            raise BertError(
                f"--max_seq_length={self.max_seq_length} leaves no room for a context after "
                f"--max_query_length={self.max_query_length} and 3 special tokens. Raise the former or lower the "
                "latter.")

    @property
    def windows_overlap(self) -> bool:
        """Whether the windows of a long context overlap, whatever the question."""
        return self.doc_stride < self.max_seq_length - self.max_query_length - 3


@dataclasses.dataclass(frozen=True, eq=False)
class Paragraph:
    """A context, shared by its questions."""

    title: str
    context: str


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
    """A question about a paragraph.

    Attributes:
        id: unique in the file.
        text: the question itself.
        paragraph: the context.
        answers: each text with its first character in the context (None where not given); None where the file has no
            list of answers.
        is_impossible: as in the file: the context does not answer it.
    """

    id: str
    text: str
    paragraph: Paragraph
    answers: tuple[tuple[str, int | None], ...] | None
    is_impossible: bool


class SquadFiles:
    """The questions to train on and those to answer.

    Args:
        settings: their files.
    """

    def __init__(self, settings: SquadSettings) -> None:
        self.settings = settings

    def path(self, split: str) -> str:
        """The file a split is read from. Raises BertError where it is not given or missing."""
        flag = "train_file" if split == "train" else "predict_file"
        path = getattr(self.settings, flag)
        if not path:
            raise BertError(f"No questions given. Pass --{flag}, a JSON file in SQuAD's layout.")
        return task_files.existing(path, flag)

    def read(self, split: str) -> list[Question]:
        """Questions of a split; of the training split those whose answer is found where the file says."""
        if split == "train":
            return self._to_train_on()
        if split == "dev" and not has_answers(self._to_answer):
            raise BertError(f"{self.settings.predict_file} cannot be evaluated: not every question has a list of "
                            "answers. Leave out --do_eval and --eval_every, or pass a --predict_file with answers.")
        return self._to_answer

    @functools.cached_property
    def _to_answer(self) -> list[Question]:
        return read(self.path("test"))

    def _to_train_on(self) -> list[Question]:
        path = self.path("train")
        questions = read(path)
        kept, lost = trainable(questions, self.settings.version_2_with_negative, path)
        if lost:
            print(f"{path}: {lost:,} of {len(questions):,} training answers could not be found in their context; "
                  "these questions are left out.", flush=True)
        return kept


def words(context: str) -> tuple[list[str], list[int]]:
    """Words of a context as the release separates them, and the first character of each."""
    found = list(_WORD.finditer(context))
    return [match.group() for match in found], [match.start() for match in found]


def read(path: str) -> list[Question]:
    """Reads a file of questions.

    Args:
        path: local or remote.

    Returns:
        questions in the order of the file.

    Raises:
        BertError: not JSON, a key that is missing or of the wrong kind, a repeated id.
    """
    articles = _get(files.read_json(path), "data", list, path)
    questions: list[Question] = []
    places: dict[str, str] = {}
    for number, article in enumerate(articles, 1):
        place = f"{path}, article {number}"
        title = article.get("title") if isinstance(article, dict) else None
        if isinstance(title, str):
            place = f'{place} ("{title}")'
        for count, entry in enumerate(_get(article, "paragraphs", list, place), 1):
            here = f"{place}, paragraph {count}"
            paragraph = Paragraph(str(title or ""), _get(entry, "context", str, here))
            for index, raw in enumerate(_get(entry, "qas", list, here), 1):
                question = _question(raw, paragraph, f"{here}, question {index}")
                if question.id in places:
                    raise BertError(f'{here}: question id "{question.id}" is already used in {places[question.id]}. '
                                    "Give each question its own id.")
                places[question.id] = f"article {number}, paragraph {count}"
                questions.append(question)
    return questions


def has_answers(questions: Sequence[Question]) -> bool:
    """Whether a file can be scored: each question has a list of answers, and at least one list is not empty."""
    return all(each.answers is not None for each in questions) and any(each.answers for each in questions)


def trainable(questions: Sequence[Question], version_2_with_negative: bool, path: str) -> tuple[list[Question], int]:
    """Leaves out training questions whose answer is not where the file says, as the release does.

    Args:
        questions: of a training file.
        version_2_with_negative: whether questions may be impossible; otherwise `is_impossible` is ignored.
        path: the file, for messages.

    Returns:
        the questions, with `is_impossible` as to be trained on, and how many answers were not found.

    Raises:
        BertError: a question without an answer, an answer without its place, or no answer in the whole file.
    """
    kept, lost = [], 0
    for question in questions:
        if version_2_with_negative and question.is_impossible:
            kept.append(question)
            continue
        if not question.answers:
            advice = ("Add one, or set is_impossible." if version_2_with_negative else
                      "Add one, or pass --version_2_with_negative=true for SQuAD 2.0.")
            raise BertError(f'{path}: question "{question.id}" has no answer to train on. {advice}')
        text, start = question.answers[0]
        if start is None:
            raise BertError(f'{path}: question "{question.id}": its answer has no "answer_start".')
        if not _is_there(question.paragraph.context, text, start):
            lost += 1
        else:
            kept.append(dataclasses.replace(question, is_impossible=False) if question.is_impossible else question)
    if all(question.is_impossible for question in kept):
        raise BertError(f"{path}: no answer is found in its context. Is it a training file?")
    return kept, lost


def _is_there(context: str, text: str, start: int) -> bool:
    """Whether the words around an answer contain it, ignoring white space (the release's test)."""
    cleaned = " ".join(text.split())
    if not cleaned or start >= len(context):
        return False
    if text == cleaned and context.startswith(text, start):
        return True
    end = start + len(text) - 1
    if end >= len(context) or not context[: start + 1].strip(SPACES):
        return False
    first = max((match.start() for match in _WORD.finditer(context, 0, start + 1)), default=0)
    after = re.compile(f"[{SPACES}]").search(context, end)
    covered = context[first : after.start() if after else len(context)]
    return cleaned in " ".join(words(covered)[0])


def _question(entry: Any, paragraph: Paragraph, place: str) -> Question:
    identity = _get(entry, "id", str, place)
    place = f'{place} (id "{identity}")'
    text = _get(entry, "question", str, place)
    is_impossible = _get(entry, "is_impossible", bool, place) if "is_impossible" in entry else False
    answers = None
    if "answers" in entry:
        answers = tuple(_answer(answer, place) for answer in _get(entry, "answers", list, place))
    return Question(identity, text, paragraph, answers, is_impossible)


def _answer(entry: Any, place: str) -> tuple[str, int | None]:
    text = _get(entry, "text", str, f"{place}, an answer")
    if "answer_start" not in entry:
        return text, None
    start = _get(entry, "answer_start", int, f"{place}, an answer")
    if start < 0:
        raise BertError(f'{place}: "answer_start" is {start}. It counts the characters of the context from 0.')
    return text, start


_KINDS = {list: "a list", str: "a string", bool: "true or false", int: "a whole number"}


def _get(entry: Any, key: str, kind: type, place: str) -> Any:
    """A value of a JSON object. Raises BertError where it is missing or of the wrong kind."""
    if not isinstance(entry, dict):
        raise BertError(f'{place}: expected an object with the key "{key}", found {type(entry).__name__}.')
    if key not in entry:
        raise BertError(f'{place}: the key "{key}" is missing.')
    if not isinstance(entry[key], kind):
        raise BertError(f'{place}: "{key}" must be {_KINDS[kind]}, not {str(entry[key])[:40]!r}.')
    return entry[key]

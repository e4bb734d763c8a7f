"""SQuAD's JSON, version 1.1 or 2.0: articles of paragraphs of questions, each mistake named by its place."""

import dataclasses
import re

from foundation import files
from foundation.errors import BertError

# What parts the words of a context for the release; other Unicode spaces, as U+00A0, stay inside a word.
SPACES = " \t\r\n\u202f"
_WORD = re.compile(f"[^{SPACES}]+")


@dataclasses.dataclass(frozen=True, eq=False)
class Paragraph:
    """A context, shared by its questions."""

    title: str
    context: str


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
    """A question about a paragraph.

    Attributes:
        id: str.
        text: str.
        paragraph: Paragraph.
        answers: tuple of (text, first character in the context, None where not given); None where the file has none.
        is_impossible: the context does not answer it, as the file says.
    """

    id: str
    text: str
    paragraph: Paragraph
    answers: tuple | None
    is_impossible: bool


def words(context):
    """Words of a context as the release parts them: lists of str and of their first characters."""
    found = list(_WORD.finditer(context))
    return [match.group() for match in found], [match.start() for match in found]


def read(path):
    """Reads a file of questions.

    Args:
        path: str, local or remote.

    Returns:
        list of Question, in the order of the file.

    Raises:
        BertError: not JSON, a key that is missing or of another kind, an id given twice.
    """
    articles = _get(files.read_json(path), "data", list, path)
    questions, places = [], {}
    for number, article in enumerate(articles, 1):
        place = f"{path}, article {number}"
        title = article.get("title") if isinstance(article, dict) else None
        if isinstance(title, str):
            place = f'{place} ("{title}")'
        for count, entry in enumerate(_get(article, "paragraphs", list, place), 1):
            here = f"{place}, paragraph {count}"
            paragraph = Paragraph(str(title or ""), _get(entry, "context", str, here))
            for index, question in enumerate(_get(entry, "qas", list, here), 1):
                question = _question(question, paragraph, f"{here}, question {index}")
                if question.id in places:
                    raise BertError(f'{here}: question id "{question.id}" stands in {places[question.id]} already. '
                                    "Give each question an id of its own.")
                places[question.id] = f"article {number}, paragraph {count}"
                questions.append(question)
    return questions


def has_answers(questions):
    """Whether a file can be scored: each question has a list of answers, and one of them an answer."""
    return all(each.answers is not None for each in questions) and any(each.answers for each in questions)


def trainable(questions, version_2_with_negative, path):
    """Leaves out training questions whose answer does not stand where the file says, as the release does.

    Args:
        questions: list of Question.
        version_2_with_negative: whether questions may be impossible; `is_impossible` is not looked at otherwise.
        path: the file, for messages.

    Returns:
        list of Question, `is_impossible` as it is to be trained on; int, how many answers were not found.

    Raises:
        BertError: a question without an answer, an answer without its place, or no answer in the whole file.
    """
    kept, lost = [], 0
    for question in questions:
        if version_2_with_negative and question.is_impossible:
            kept.append(question)
            continue
        if not question.answers:
            mend = ("Give it one, or set is_impossible." if version_2_with_negative else
                    "Give it one, or pass --version_2_with_negative=true for SQuAD 2.0.")
            raise BertError(f'{path}: question "{question.id}" has no answer to train on. {mend}')
        text, start = question.answers[0]
        if start is None:
            raise BertError(f'{path}: question "{question.id}": its answer has no "answer_start".')
        if not _stands_there(question.paragraph.context, text, start):
            lost += 1
        else:
            kept.append(dataclasses.replace(question, is_impossible=False) if question.is_impossible else question)
    if all(question.is_impossible for question in kept):
        raise BertError(f"{path}: no question has an answer that stands in its context. Is it a training file?")
    return kept, lost


def _stands_there(context, text, start):
    """Whether the words around an answer hold it, white space aside (the release's test)."""
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


def _question(entry, paragraph, place):
    identity = _get(entry, "id", str, place)
    place = f'{place} (id "{identity}")'
    text = _get(entry, "question", str, place)
    is_impossible = _get(entry, "is_impossible", bool, place) if "is_impossible" in entry else False
    answers = None
    if "answers" in entry:
        answers = tuple(_answer(answer, place) for answer in _get(entry, "answers", list, place))
    return Question(identity, text, paragraph, answers, is_impossible)


def _answer(entry, place):
    text = _get(entry, "text", str, f"{place}, an answer")
    if "answer_start" not in entry:
        return text, None
    start = _get(entry, "answer_start", int, f"{place}, an answer")
    if start < 0:
        raise BertError(f'{place}: "answer_start" is {start}. It counts the characters of the context from 0.')
    return text, start


_KINDS = {list: "a list", str: "a string", bool: "true or false", int: "a whole number"}


def _get(entry, key, kind, place):
    """A value of a JSON object; raises BertError where it is missing or of another kind."""
    if not isinstance(entry, dict):
        raise BertError(f'{place}: expected an object with the key "{key}", found {type(entry).__name__}.')
    if key not in entry:
        raise BertError(f'{place}: the key "{key}" is missing.')
    if not isinstance(entry[key], kind):
        raise BertError(f'{place}: "{key}" must be {_KINDS[kind]}, not {str(entry[key])[:40]!r}.')
    return entry[key]

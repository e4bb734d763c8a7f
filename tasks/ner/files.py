"""Words and their tags by column: CoNLL-2003's four columns, WNUT's two, or words alone.

A line is a word: its first column is the word and, where there are several, the last is the tag. A line without
content ends a sentence, a line that begins with `-DOCSTART-` a document.
"""

import dataclasses
import re

from foundation import files
from foundation.errors import BertError

DOCUMENT_BREAK = "-DOCSTART-"
OUTSIDE = "O"

_TAG = re.compile(r"O|[BI]-\S+")


@dataclasses.dataclass(frozen=True)
class Sentence:
    """One sentence.

    Attributes:
        words: tuple of str.
        tags: tuple of str, one a word, or None where the file holds none.
        document: int, counts the documents of the file.
        path, line: where its first word stands; the others follow line by line.
    """

    words: tuple
    tags: tuple | None
    document: int
    path: str
    line: int


def read(path):
    """Reads a file of words in columns, separated by tabs or by spaces as in its first line.

    Args:
        path: str, local or remote; UTF-8.

    Returns:
        list of Sentence.

    Raises:
        BertError: naming file and line: not UTF-8, a line of more or fewer columns than the first, an empty word,
            what is no tag; or a file without words.
    """
    sentences, rows = [], []
    document = first = 0
    split = columns = None
    for number, line in enumerate([*files.read_edited_text(path).split("\n"), ""], 1):
        line = line.rstrip("\r")
        document_break = line.startswith(DOCUMENT_BREAK)
        if document_break or not line.strip():
            if rows:
                sentences.append(_sentence(rows, document, path, first))
                rows = []
            document += document_break
            continue
        if split is None:
            split = _by_tabs if "\t" in line else _by_spaces
        row = split(line)
        columns = columns or len(row)
        _check(row, columns, path, number)
        first = first if rows else number
        rows.append(row)
    if not sentences:
        raise BertError(f"{path}: holds no words. A line is a word and its tag; an empty line ends a sentence.")
    return sentences


def _by_tabs(line):
    return line.split("\t")


def _by_spaces(line):
    # Not str.split(): that also cuts at the no-break spaces within a word.
    return re.split(" +", line.strip(" "))


def _check(row, columns, path, number):
    if len(row) != columns:
        raise BertError(f"{path}, line {number}: {len(row)} column{'s'[:len(row) > 1]}, where the first line has "
                        f"{columns}. Each line is a word, other columns if any, and a tag.")
    if not row[0]:
        raise BertError(f"{path}, line {number}, column 1: the word is empty.")
    if columns > 1 and not _TAG.fullmatch(row[-1]):
        raise BertError(f"{path}, line {number}, column {columns}: {row[-1]!r} is not a tag. "
                        "Tags are O, B-type and I-type; a file without tags holds words only.")


def _sentence(rows, document, path, line):
    tags = tuple(row[-1] for row in rows) if len(rows[0]) > 1 else None
    return Sentence(tuple(row[0] for row in rows), tags, document, path, line)


def labels_of(sentences):
    """Tags that occur in sentences: a tuple, `O` first, the others sorted."""
    found = {tag for sentence in sentences for tag in sentence.tags}
    return (OUTSIDE, *sorted(found - {OUTSIDE}))


def check_labels(labels):
    """Raises BertError where --labels is not a list of different tags with `O` among them."""
    wrong = [label for label in labels if not _TAG.fullmatch(label)]
    if wrong:
        raise BertError(f"--labels: {wrong[0]!r} is not a tag. Tags are O, B-type and I-type.")
    if OUTSIDE not in labels:
        raise BertError("--labels lacks O, the tag of words outside of entities. Add it.")
    if len(set(labels)) < len(labels):
        raise BertError("--labels names a tag twice. Remove one of the two.")


def scheme_of(sentences):
    """The scheme that tags are written in.

    Args:
        sentences: list of Sentence with tags.

    Returns:
        "bio" (an entity begins with B-; so too where both would do) or "iob1" (B- only parts an entity from one of
        its own type just before it).

    Raises:
        BertError: neither, naming a line against each.
    """
    against = {scheme: _violation(sentences, scheme) for scheme in ("bio", "iob1")}
    for scheme, violation in against.items():
        if violation is None:
            return scheme
    raise BertError(f"{against['bio']} The tags are not in IOB1 either: {against['iob1']}")


def check_scheme(sentences, scheme):
    """Raises BertError, naming file and line, for a tag that cannot stand where it does in "bio" or "iob1"."""
    violation = _violation(sentences, scheme)
    if violation:
        raise BertError(f"{violation} Mend the tag, or give --tag_scheme.")


def _violation(sentences, scheme):
    """What is wrong with the first tag that breaks a scheme, one sentence, or None."""
    mark, name = {"bio": ("I", "BIO"), "iob1": ("B", "IOB1")}[scheme]
    for sentence in sentences:
        before = OUTSIDE
        for index, tag in enumerate(sentence.tags):
            if tag[0] == mark and before[2:] != tag[2:]:
                return (f"{sentence.path}, line {sentence.line + index}: {tag} after {before} is impossible in {name}, "
                        f"where {mark}- follows a tag of its own type.")
            before = tag
    return None

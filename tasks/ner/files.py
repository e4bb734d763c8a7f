"""Words and their tags by column: CoNLL-2003's four columns, WNUT's two, or words alone.

Each line is a word: the first column is the word and, where there are several, the last is the tag. An empty line ends
a sentence, a line that begins with `-DOCSTART-` a document.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

from foundation import files
from foundation.errors import BertError
from foundation.settings import DATA, MODEL, setting
from tasks import files as task_files
from tasks.files import FileSettings

DOCUMENT_BREAK = "-DOCSTART-"
OUTSIDE = "O"
# A BiLSTM with random initial weights learns too little at the learning rate that suits a pre-trained model.
FEATURE_BASED_LEARNING_RATE = 1e-3
# The encoder's vectors that a BiLSTM can read (`modeling.feature_tagger.LAYERS`, which needs TensorFlow).
VECTORS = ("embeddings", "second_to_last", "last", "weighted_sum_last_four", "concat_last_four", "weighted_sum_all")
# Names of the files in --data_dir: plain ones, or those of CoNLL-2003's distribution.
FILE_NAMES = {
    "train": ("train.txt", "eng.train"),
    "dev": ("dev.txt", "valid.txt", "eng.testa"),
    "test": ("test.txt", "eng.testb"),
}

_TAG = re.compile(r"O|[BI]-\S+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NerSettings(FileSettings):
    """The data and the model of `run_ner.py`."""

    described: ClassVar[tuple[str, ...]] = (
        "labels", "tag_scheme", "document_context", "feature_based", "features", "lstm_size", "max_seq_length")
    data_dir: str | None = setting(
        None, group=DATA, released=True,
        help="Folder with train.txt, dev.txt (or valid.txt) and test.txt, or with CoNLL-2003's eng.train, eng.testa "
             "and eng.testb.")
    labels: tuple[str, ...] | None = setting(
        None, group=DATA, help="The tags, including O, in the order of their ids. Default: those of the training set.")
    tag_scheme: str = setting(
        "auto", choices=("auto", "bio", "iob1"), group=DATA,
        help="How tags are written: bio begins each entity with B-, iob1 only an entity that directly follows another "
             "of its type. auto: as in the training set.")
    document_context: bool = setting(
        False, group=DATA, help="Fill each sequence with the words before and after its sentence.")
    max_seq_length: int = setting(
        128, at_least=4, group=DATA, released=True,
        help="Maximum word pieces of a sequence, including [CLS] and [SEP].")
    feature_based: bool = setting(
        False, group=MODEL,
        help="Train a BiLSTM on the vectors of the encoder, which is frozen. The default of --learning_rate is then "
             f"{FEATURE_BASED_LEARNING_RATE:g}.")
    features: str = setting(
        "concat_last_four", choices=VECTORS, group=MODEL, help="The vectors, with --feature_based.")
    lstm_size: int = setting(
        768, at_least=1, group=MODEL, help="Units of the BiLSTM in each direction, with --feature_based.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labels:
            _check_labels(self.labels)


@dataclasses.dataclass(frozen=True)
class Sentence:
    """One sentence.

    Attributes:
        words: at least one.
        tags: one for each word, or None where the file has none.
        document: number of the document in the file.
        path, line: where its first word is; the rest follow line by line.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    document: int
    path: str
    line: int


class NerFiles:
    """The files of a data set, with the labels and the scheme of its tags.

    Args:
        settings: the files, and what is known of their tags.
    """

    def __init__(self, settings: NerSettings) -> None:
        self.settings = settings

    def path(self, split: str) -> str:
        """The file a split is read from. Raises BertError where it is not given or missing."""
        return task_files.find(self.settings, split, FILE_NAMES[split])

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """The tags, in the order of their scores: the given ones, or those of the training file."""
        return tuple(self.settings.labels or self._found_in_training[0])

    @functools.cached_property
    def tag_scheme(self) -> str | None:
        """"bio" or "iob1"; None where labels are given and the scheme is not."""
        if self.settings.tag_scheme != "auto":
            return self.settings.tag_scheme
        return None if self.settings.labels else self._found_in_training[1]

    def read(self, split: str) -> list[Sentence]:
        """Sentences of a split; those of a test split may have no tags.

        Raises:
            BertError: naming file and line, what `read` reports, an unknown tag, or one that breaks the scheme.
        """
        sentences = read(self.path(split)) if split == "test" else self._tagged(split)
        if sentences[0].tags is not None:
            self._check_tags(sentences)
            if self.tag_scheme is None:
                scheme_of(sentences)
            else:
                check_scheme(sentences, self.tag_scheme)
        return sentences

    @functools.cached_property
    def _found_in_training(self) -> tuple[tuple[str, ...], str | None]:
        sentences = self._tagged("train")
        scheme = scheme_of(sentences) if self.settings.tag_scheme == "auto" else None
        return labels_of(sentences), scheme

    def _tagged(self, split: str) -> list[Sentence]:
        sentences = read(self.path(split))
        if sentences[0].tags is None:
            raise BertError(f"{sentences[0].path}, line {sentences[0].line}: only one column, the word. "
                            f"A {split} file has a tag in its last column.")
        return sentences

    def _check_tags(self, sentences: Iterable[Sentence]) -> None:
        known = set(self.labels)
        for sentence in sentences:
            for index, tag in enumerate(sentence.tags or ()):
                if tag not in known:
                    raise BertError(f"{sentence.path}, line {sentence.line + index}: {tag} is not a label of the "
                                    f"training file or of --labels. Labels: {', '.join(self.labels)}.")


def read(path: str) -> list[Sentence]:
    """Reads a file of words in columns, separated by tabs or by spaces as in its first line.

    Args:
        path: local or remote; UTF-8.

    Raises:
        BertError: naming file and line: not UTF-8, a line of more or fewer columns than the first, an empty word,
            an invalid tag; or a file without words.
    """
    sentences: list[Sentence] = []
    rows: list[list[str]] = []
    document = first = 0
    split = None
    columns = 0
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
        raise BertError(f"{path}: holds no words. Each line is a word and its tag; an empty line ends a sentence.")
    return sentences


def _by_tabs(line: str) -> list[str]:
    return line.split("\t")


def _by_spaces(line: str) -> list[str]:
    # Not str.split(): that also cuts at the no-break spaces within a word.
    return re.split(" +", line.strip(" "))


def _check(row: list[str], columns: int, path: str, number: int) -> None:
    if len(row) != columns:
        raise BertError(f"{path}, line {number}: {len(row)} column{'s'[:len(row) > 1]}, where the first line has "
                        f"{columns}. Each line is a word, further columns if any, and a tag.")
    if not row[0]:
        raise BertError(f"{path}, line {number}, column 1: the word is empty.")
    if columns > 1 and not _TAG.fullmatch(row[-1]):
        raise BertError(f"{path}, line {number}, column {columns}: {row[-1]!r} is not a tag. "
                        "Tags are O, B-type and I-type; a file without tags holds words only.")


def _sentence(rows: list[list[str]], document: int, path: str, line: int) -> Sentence:
    tags = tuple(row[-1] for row in rows) if len(rows[0]) > 1 else None
    return Sentence(tuple(row[0] for row in rows), tags, document, path, line)


def labels_of(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    """Tags that occur in sentences, `O` first, the rest sorted."""
    found = {tag for sentence in sentences for tag in sentence.tags or ()}
    return (OUTSIDE, *sorted(found - {OUTSIDE}))


def _check_labels(labels: Sequence[str]) -> None:
    """Raises BertError where --labels is not a list of different tags that includes `O`."""
    wrong = [label for label in labels if not _TAG.fullmatch(label)]
    if wrong:
        raise BertError(f"--labels: {wrong[0]!r} is not a tag. Tags are O, B-type and I-type.")
    if OUTSIDE not in labels:
        raise BertError("--labels lacks O, the tag of words outside of entities. Add it.")
    if len(set(labels)) < len(labels):
        raise BertError("--labels has a tag twice. Remove one of the two.")


def scheme_of(sentences: Iterable[Sentence]) -> str:
    """The scheme that tags are written in.

    Args:
        sentences: with tags.

    Returns:
        "bio" (an entity begins with B-; also where both would do) or "iob1" (B- only separates an entity from one of
        its own type directly before it).

    Raises:
        BertError: neither, naming a line that breaks each.
    """
    against = {scheme: _violation(sentences, scheme) for scheme in ("bio", "iob1")}
    for scheme, violation in against.items():
        if violation is None:
            return scheme
    raise BertError(f"{against['bio']} The tags are not in IOB1 either: {against['iob1']}")


def check_scheme(sentences: Iterable[Sentence], scheme: str) -> None:
    """Raises BertError, naming file and line, for a tag that breaks its scheme, "bio" or "iob1"."""
    violation = _violation(sentences, scheme)
    if violation:
        raise BertError(f"{violation} Correct the tag, or pass --tag_scheme.")


def _violation(sentences: Iterable[Sentence], scheme: str) -> str | None:
    """What is wrong with the first tag that breaks a scheme, one sentence, or None."""
    mark, name = {"bio": ("I", "BIO"), "iob1": ("B", "IOB1")}[scheme]
    for sentence in sentences:
        before = OUTSIDE
        for index, tag in enumerate(sentence.tags or ()):
            if tag[0] == mark and before[2:] != tag[2:]:
                return (f"{sentence.path}, line {sentence.line + index}: {tag} after {before} is impossible in {name}, "
                        f"where {mark}- follows a tag of its own type.")
            before = tag
    return None

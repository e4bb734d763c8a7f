"""Words and tags by column: what is read, which scheme it is in, how mistakes are reported."""

import pytest

from foundation.errors import BertError
from tasks.ner import files as ner_files
from tasks.ner.files import NerSettings

CONLL = """-DOCSTART- -X- -X- O

EU NNP B-NP I-ORG
rejects VBZ B-VP O

Peter NNP B-NP I-PER
Blackburn NNP I-NP I-PER

-DOCSTART- -X- -X- O

BRUSSELS NNP B-NP I-LOC
"""


@pytest.fixture
def write(tmp_path):
    def writing(content):
        path = tmp_path / "words.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return writing


@pytest.fixture
def tagged(write):
    """Sentences with the given tags, separated by |."""
    def reading(tags):
        return ner_files.read(write("\n\n".join(
            "\n".join(f"w {tag}" for tag in sentence.split()) for sentence in tags.split("|"))))

    return reading


def error(action, *arguments):
    with pytest.raises(BertError) as raised:
        action(*arguments)
    return str(raised.value)


def test_four_columns_by_spaces_and_document_breaks(write):
    sentences = ner_files.read(write(CONLL))
    assert [sentence.words for sentence in sentences] == [("EU", "rejects"), ("Peter", "Blackburn"), ("BRUSSELS",)]
    assert [sentence.tags for sentence in sentences] == [("I-ORG", "O"), ("I-PER", "I-PER"), ("I-LOC",)]
    assert [sentence.document for sentence in sentences] == [1, 1, 2]
    assert [sentence.line for sentence in sentences] == [3, 6, 11]


def test_two_columns_by_tabs_and_breaks_of_white_space_only(write):
    sentences = ner_files.read(write("a\u00a0b c\tO\n\t\nd\tB-x-y\r\n \r\n\n\ne\tO"))
    assert [sentence.words for sentence in sentences] == [("a\u00a0b c",), ("d",), ("e",)]
    assert [sentence.tags for sentence in sentences] == [("O",), ("B-x-y",), ("O",)]


def test_words_alone_have_no_tags_and_only_a_line_feed_ends_a_line(write):
    [sentence] = ner_files.read(write("\ufeffa\u2028b\nc\u0085d\n"))
    assert sentence.words == ("a\u2028b", "c\u0085d") and sentence.tags is None


def test_several_spaces_are_one(write):
    assert ner_files.read(write("a   X O \nb  Y   I-P\n"))[0].tags == ("O", "I-P")


def test_labels_begin_with_outside(tagged):
    assert ner_files.labels_of(tagged("B-X I-X O | B-A")) == ("O", "B-A", "B-X", "I-X")


@pytest.mark.parametrize(("tags", "scheme"), [
    ("O B-X I-X B-X | B-Y I-Y", "bio"), ("O I-X I-X B-X I-X | I-Y I-X", "iob1"), ("O O", "bio")])
def test_scheme_is_found(tagged, tags, scheme):
    assert ner_files.scheme_of(tagged(tags)) == scheme
    ner_files.check_scheme(tagged(tags), scheme)


def test_tags_of_no_scheme_are_reported_with_a_line_against_each(tagged, tmp_path):
    path = tmp_path / "words.txt"
    assert error(ner_files.scheme_of, tagged("O B-X | O I-Y")) == (
        f"{path}, line 5: I-Y after O is impossible in BIO, where I- follows a tag of its own type. The tags are not "
        f"in IOB1 either: {path}, line 2: B-X after O is impossible in IOB1, where B- follows a tag of its own type.")


@pytest.mark.parametrize(("tags", "scheme", "found"), [
    ("B-X | I-X", "bio", "line 3: I-X after O is impossible in BIO"),
    ("B-X I-Y", "bio", "line 2: I-Y after B-X is impossible in BIO"),
    ("I-X B-Y", "iob1", "line 2: B-Y after I-X is impossible in IOB1")])
def test_a_tag_that_its_scheme_forbids_is_named(tagged, tags, scheme, found):
    assert found in error(ner_files.check_scheme, tagged(tags), scheme)


@pytest.mark.parametrize(("content", "message"), [
    ("a O\nb\n", ", line 2: 1 column, where the first line has 2. "
     "Each line is a word, further columns if any, and a tag."),
    ("a\tO\n\nb O\n", ", line 3: 1 column, where the first line has 2. "
     "Each line is a word, further columns if any, and a tag."),
    ("a\tO\n\tO\n", ", line 2, column 1: the word is empty."),
    ("a N O\nb N X-PER\n", ", line 2, column 3: 'X-PER' is not a tag. "
     "Tags are O, B-type and I-type; a file without tags holds words only."),
    ("a B-\n", ", line 1, column 2: 'B-' is not a tag. "
     "Tags are O, B-type and I-type; a file without tags holds words only."),
    ("", ": holds no words. Each line is a word and its tag; an empty line ends a sentence."),
    ("-DOCSTART- O\n\n", ": holds no words. Each line is a word and its tag; an empty line ends a sentence."),
    (b"a O\nb\xff O\n", ", line 2, byte 2: not UTF-8 (0xff). Re-encode the file."),
    (b"\xef\xbb\xbfa O\n\xe9 O\n", ", line 2, byte 1: not UTF-8 (0xe9). Re-encode the file.")])
def test_mistakes_are_reported_by_file_and_line(write, content, message):
    path = write(content)
    assert error(ner_files.read, path) == path + message


@pytest.mark.parametrize(("labels", "message"), [
    (["B-X"], "--labels lacks O, the tag of words outside of entities. Add it."),
    (["O", "X"], "--labels: 'X' is not a tag. Tags are O, B-type and I-type."),
    (["O", "B-X", "B-X"], "--labels has a tag twice. Remove one of the two.")])
def test_impossible_labels_are_refused(labels, message):
    with pytest.raises(BertError) as raised:
        NerSettings(labels=labels)
    assert str(raised.value) == message

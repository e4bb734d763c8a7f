"""Sentence rules on hard cases, and the job that applies them: layouts, workers, bad input."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep import split_sentences
from data_prep.sentence_rules import SentenceSplitter, split
from data_prep.settings import SentenceSettings
from data_prep.text_blocks import TextReader
from foundation.errors import BertError

# Each text with its sentences separated by " | ".
HARD_CASES = [
    "Mr. Smith met Dr. Jones. | They talked.",
    "Mrs. Bennet and Messrs. Long came. | Prof. Lee did not.",
    "He lives on Main St. | The house is old.",
    "St. John and St. Paul wrote letters.",
    "It was written by J. R. R. Tolkien. | He was English.",
    "George W. Bush met John F. Kennedy Jr. in Texas.",
    "B. F. Westcott and Fenton J. A. Hort published it.",
    "It ended World War I. | The peace was short.",
    "He moved to the U.S. | In 1990 he returned.",
    "He spoke to the U.S. Congress and the U.N. Security Council.",
    "The case of Terry v. Ohio was decided in 1968. | It stands.",
    "Pi is about 3.14 and e is 2.72. | Both are irrational.",
    "See No. 5, vol. 3, pp. 12, fig. 7 and ch. 2 of it.",
    "He said no. | Then he left.",
    "It was born on Sept. 11, 2001, and ended on Jan. 5.",
    "Fruit, e.g. Apples, and roots, i.e. Carrots, are food.",
    "Apples, pears, etc. | They are fruit.",
    "Apples, pears, etc. Bought fresh, they keep.",
    "Acme Inc. Shares rose by 5 per cent.",
    "The company is Acme Inc. | It makes all sorts of things.",
    "He came at 5 p.m. | She came later.",
    "It happened c. 1500 B.C. in Egypt (d. 1450).",
    "He holds a Ph.D. in physics from M.I.T. | He is old.",
    'He said "Go." | Then he left.',
    "He said “Go.” | Then he left.",
    "‘Stop!’ | The car stopped.",
    '"Why?" he asked. | "Because," she said.',
    '"Why?" I asked. | No answer came.',
    '"Stop!" cried the man. | Nobody stopped.',
    "What? | No! | Really?! | Yes.",
    "Is it so? | Who knows.",
    "Yahoo! is a company. | It was sold.",
    "He waited... and waited. | Nothing came.",
    "He waited... | Nothing came.",
    "I ... I do not know… I never did.",
    "He paused . . . and went on.",
    "(He left at once.) | Then she came.",
    "He left (at last). | She stayed.",
    "The patent was issued in 1876.[N 4] | Bell refused.[5] | He had no telephone.",
    "They ruled.:233 | The nobles did not.",
    "It cost $5. | £3 was too little.",
    "In 1918 it ended. | 1919 was a year of peace.",
    "1. First wash it. | Then dry it.",
    "IV. The king returned. | He was old.",
    "It was in 1918. | Peace came.",
    "See www.example.com or file.txt for more. | It is there.",
    "The iPhone was new. iPods were not.",
    "First line\nsecond line. | Third\tline.",
    "No end here",
]

OTHER_SCRIPTS = [
    ("吾輩は猫である。名前はまだ無い。", ["吾輩は猫である。", "名前はまだ無い。"]),
    ("「行け！」と言った。彼は去った。", ["「行け！」と言った。", "彼は去った。"]),
    ("你好吗？我很好！谢谢。", ["你好吗？", "我很好！", "谢谢。"]),
    ("كيف حالك؟ أنا بخير.", ["كيف حالك؟", "أنا بخير."]),
    ("यह एक वाक्य है। यह दूसरा है।", ["यह एक वाक्य है।", "यह दूसरा है।"]),
    ("Это дом. Он стар.", ["Это дом.", "Он стар."]),
    ("Wie geht’s? Ärzte kommen. Österreich auch.", ["Wie geht’s?", "Ärzte kommen.", "Österreich auch."]),
]


@pytest.mark.parametrize("case", HARD_CASES)
def test_hard_case_is_split_where_a_reader_would(case):
    sentences = [" ".join(sentence.split()) for sentence in case.split(" | ")]
    assert split(" ".join(case.split(" | "))) == sentences


@pytest.mark.parametrize("paragraph, sentences", OTHER_SCRIPTS)
def test_enders_of_other_scripts_end_sentences(paragraph, sentences):
    assert split(paragraph) == sentences


def test_blank_paragraph_has_no_sentences():
    assert split("") == [] and split(" \t\u00a0 \n") == []


def test_own_abbreviations_do_not_end_a_sentence():
    assert len(split("Das ist bzw. Das war gut.")) == 2
    assert len(SentenceSplitter(["bzw."]).split("Das ist bzw. Das war gut.")) == 1


def test_file_of_abbreviations_is_one_that_people_edit(tmp_path):
    path = tmp_path / "abbreviations.txt"
    path.write_bytes("\ufeff# ours\r\nbzw.\r\n\r\nd.h.  # a\u2028b\n".encode())
    assert split_sentences.read_abbreviations(str(path)) == ["bzw.", "d.h."]


_PIECES = st.sampled_from([
    "a", "The", "Mr", "U.S", "J", "I", "3", ".", "!", "?", "…", "...", '"', "”", "(", ")", "[1]", " ", " ", " ", "\n",
    "\u00a0", "\u3000", "é", ":2", "。", "」", "と", "؟", "।", "-", "\u2028",
])
_TEXT = st.one_of(st.lists(_PIECES, max_size=40).map("".join), st.text(max_size=60))


@settings(deadline=None, max_examples=300)
@given(_TEXT)
def test_no_character_but_white_space_is_lost(paragraph):
    sentences = split(paragraph)
    assert "".join("".join(sentences).split()) == "".join(paragraph.split())
    assert all(sentence == " ".join(sentence.split()) != "" for sentence in sentences)


@settings(deadline=None, max_examples=300)
@given(_TEXT.filter(lambda text: not set(text) & set("。｡！？؟۔।॥։")))
def test_sentences_joined_by_spaces_give_the_words_back(paragraph):
    if any(character in "።။។᠃" for character in paragraph):
        return
    assert " ".join(split(paragraph)).split() == paragraph.split()


def run(paths, output, block_bytes=split_sentences.BLOCK_BYTES, **options):
    """Splits files, in this process unless told otherwise."""
    options = {"num_workers": 1, **options}
    settings = SentenceSettings(input_file=[str(path) for path in paths], output_file=str(output), **options)
    return split_sentences.run(settings, block_bytes)


def run_on(tmp_path, content, **options):
    """Runs the job on a file of this content; returns the output's text and the statistics."""
    path = tmp_path / "in.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = run([path], tmp_path / "out.txt", **options)
    return (tmp_path / "out.txt").read_text(encoding="utf-8"), done


def test_paragraphs_become_documents_with_a_sentence_a_line(tmp_path):
    text, done = run_on(tmp_path, "\nOne. Two.\nThree.\n\n \n\nFour. Five.")
    assert text == "One.\nTwo.\nThree.\n\nFour.\nFive.\n"
    assert (done.files, done.documents, done.sentences, done.words) == (1, 2, 5, 5)


def test_end_of_a_file_ends_its_document(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"This is {name}. So it is.")
    done = run([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert (tmp_path / "out").read_text() == "This is a.\nSo it is.\n\nThis is b.\nSo it is.\n"
    assert done.documents == 2


BOOK = (
    "\ufeffCHAPTER I\r\n\r\nThis is a line of a book that was wrapped at sixty, by a Mr.\r\n"
    "Smith, who as we hear liked to stand and look at his apple-\r\ntrees. He also liked plums.\r\n\r\nThe next.\r\n"
)


def test_wrapped_book_with_byte_order_mark_is_one_document(tmp_path):
    text, done = run_on(tmp_path, BOOK, input_format="file")
    assert "\r" not in text and "\ufeff" not in text
    assert done.documents == 1
    assert text == (
        "CHAPTER I\nThis is a line of a book that was wrapped at sixty, by a Mr. Smith, who as we hear liked to "
        "stand and look at his apple-trees.\nHe also liked plums.\nThe next.\n"
    )


def test_line_that_is_a_paragraph_is_not_joined_to_the_next(tmp_path):
    lines = ["Heading without a stop", "A long paragraph " + "of words " * 30 + "here.", "A heading", "And text."]
    text, _ = run_on(tmp_path, "\n".join(lines), input_format="file")
    assert text.splitlines() == lines


def test_short_line_indented_line_and_heading_end_a_wrapped_paragraph():
    lines = [
        "THE HEADING OF A CHAPTER THAT IS IN CAPITALS",
        "a line that is as long as the width of this text",
        "short.",
        "another line that is as long as all the others a",
        "    indented, it begins a paragraph of its own, as",
        "it goes on here",
    ]
    joined = list(split_sentences.join_wrapped_lines(lines, 50))
    assert joined == [
        lines[0], f"{lines[1]} {lines[2]}", lines[3], f"{lines[4]} {lines[5]}",
    ]


def test_auto_sees_how_a_file_is_laid_out():
    sentence = "This is a sentence of the kind that articles have in great number. "
    articles = "\n".join([sentence * 5] * 3 + [""] + [sentence * 4] * 4)
    spaced = "\n\n".join([sentence * 5] * 6)
    wrapped = "\n".join(["a line that is wrapped and does not end as a sentence"] * 20)
    documents = "\n".join(["A sentence.", "Another one.", "", "A second document.", "It ends."])
    assert split_sentences.file_layout(articles, "auto") == (True, 0)
    assert split_sentences.file_layout(spaced, "auto") == (False, 0)
    assert split_sentences.file_layout(wrapped, "auto") == (False, 53)
    assert split_sentences.file_layout(documents, "auto") == (True, 0)


@pytest.mark.parametrize("input_format", ["paragraphs", "file"])
@pytest.mark.parametrize("block_bytes", [64, 1000])
def test_output_does_not_depend_on_block_size(tmp_path, input_format, block_bytes):
    content = "\n".join(["Ünïcode is here. So is Mr. Smith. The end.", "", "A paragraph. Two."] * 20)
    whole, expected = run_on(tmp_path, content, input_format=input_format)
    cut, done = run_on(tmp_path, content, input_format=input_format, block_bytes=block_bytes)
    assert cut == whole
    assert done == expected


def test_output_does_not_depend_on_the_number_of_workers(tmp_path):
    content = "\n".join(["One sentence. Two sentences.", ""] * 200)
    one, _ = run_on(tmp_path, content, block_bytes=300)
    two, _ = run_on(tmp_path, content, block_bytes=300, num_workers=2)
    assert two == one


def test_line_longer_than_a_block_is_cut_at_a_space(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("word " * 200)
    blocks = list(TextReader("error", block_bytes=64).blocks(str(path)))
    assert all(len(block) <= 5 * 64 for block in blocks)
    assert " ".join(blocks).split() == ["word"] * 200


@settings(deadline=None, max_examples=40)
@given(text=st.text(st.sampled_from("aé漢😀\r\n "), max_size=60), block_bytes=st.integers(1, 20))
def test_blocks_joined_are_the_text_whatever_the_cuts(tmp_path_factory, text, block_bytes):
    path = tmp_path_factory.mktemp("blocks") / "x"
    path.write_bytes(text.encode())
    blocks = list(TextReader("error", block_bytes=block_bytes).blocks(str(path), ("\n\n", "\n")))
    assert "".join("".join(blocks).split()) == "".join(text.split())
    assert not any("\r" in block for block in blocks)


def test_bad_byte_is_named(tmp_path):
    with pytest.raises(BertError, match=r"in\.txt: byte 4 is not UTF-8 \(0xff\).*--on_bad_utf8=skip"):
        run_on(tmp_path, b"\xc3\xa9t.\xff Two.")
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 1000])
def test_bad_byte_is_named_at_any_block_size(tmp_path, block_bytes):
    with pytest.raises(BertError, match=r"byte 9 is not UTF-8 \(0xe9\)"):
        run_on(tmp_path, "é漢 ok.".encode() + b"\xe9 la", block_bytes=block_bytes)


def test_skip_leaves_bad_bytes_out_and_counts_them(tmp_path):
    text, done = run_on(tmp_path, b"Caf\xe9 one. Tw\xff\xfeo.\xc3", on_bad_utf8="skip")
    assert text == "Caf one.\nTwo.\n"
    assert done.bad_bytes == 4
    assert "4 bytes left out: not UTF-8" in done.summary()


def test_file_without_text_is_an_error_and_leaves_nothing(tmp_path):
    for content in ("", " \n\n\t\n"):
        with pytest.raises(BertError, match=r"in\.txt: no text"):
            run_on(tmp_path, content)
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_missing_file_is_named(tmp_path):
    with pytest.raises(BertError, match=r"gone\.txt: no such file"):
        run([tmp_path / "gone.txt"], tmp_path / "out")


def test_in_memory_file_system_is_read_and_written():
    import tensorflow as tf

    with tf.io.gfile.GFile("ram://split/in.txt", "w") as file:
        file.write("One. Two.")
    run(["ram://split/in.txt"], "ram://split/out.txt")
    with tf.io.gfile.GFile("ram://split/out.txt") as file:
        assert file.read() == "One.\nTwo.\n"


def test_command_line_from_another_folder(tmp_path, repository):
    (tmp_path / "a.txt").write_text("We saw the resp. Unit. It was big.")
    (tmp_path / "words").write_text("# my own\nunit.\n")
    done = subprocess.run(
        [sys.executable, str(repository / "data_prep" / "split_sentences.py"), "--output_file=out.txt",
         "--input_file=*.txt", "--abbreviations=words", "--input_format=file"],
        cwd=tmp_path, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "out.txt: 1 document, 1 sentence, 8 words from 1 file" in done.stdout
    assert (tmp_path / "out.txt").read_text() == "We saw the resp. Unit. It was big.\n"

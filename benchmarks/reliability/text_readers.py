"""Readers of texts, vocabularies, tables and tasks' files, for `fuzz`."""

import csv
import functools
import io
import json
import os
import pathlib
import re
import sys
from collections.abc import Iterable

from benchmarks.reliability import mutations
from benchmarks.reliability.fuzz import Reader, bytes_of, expect, one_file
from data_prep import build_vocab, id_store, split_sentences
from data_prep.id_store import IdStore
from data_prep.settings import CorpusSettings, SentenceSettings, VocabularySettings
from data_prep.text_blocks import TextReader
from extraction import lines
from foundation import files, vocab_file
from inputs import tables
from tasks.classification.files import ClassificationFiles, ClassificationSettings
from tasks.multiple_choice.files import MultipleChoiceFiles, MultipleChoiceSettings
from tasks.ner import files as ner
from tasks.ner.files import NerFiles, NerSettings
from tasks.squad import files as squad
from tests.data_prep import corpora
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

_TEXT = """The cat sat. It was 12 o'clock on the 3rd of May 1998, naïve and Zoë said.

A second paragraph (of 2 lines)
goes on here; "quoted," she said. 北京 is a city.
Mr. Smith paid $5.50 for 1,000 nails.

"""
_VOCABULARY = "".join(f"{token}\n" for token in (*SPECIAL_TOKENS, "[unused0]", *corpora.WORDS, "##s", "naïve", "."))


def _tokenizes(texts: Iterable[str]) -> None:
    """What is read as text must be text to a tokenizer."""
    found = [text for text in texts if len(text) < 100_000]
    expect(len(_tokenizer().encode_lines_with_offsets(found).row_splits), len(found) + 1)


@functools.cache
def _tokenizer(tokens: tuple[str, ...] = (*SPECIAL_TOKENS, "a", "the")) -> Tokenizer:
    return Tokenizer(Vocabulary(tokens))


# --- Texts and vocabularies ------------------------------------------------------------------------------------------


def _read_text(path: str) -> None:
    data = bytes_of(path)
    for on_bad_utf8 in ("skip", "error"):
        found = "".join(TextReader(on_bad_utf8, 64).blocks(path, ("\n\n", "\n")))
        whole = data.decode("utf-8", "ignore" if on_bad_utf8 == "skip" else "strict").removeprefix("\ufeff")
        expect(re.sub("[\r\n ]", "", found), re.sub("[\r\n ]", "", whole))


def _split(path: str) -> None:
    output = path + ".out"
    split_sentences.run(SentenceSettings(input_file=path, output_file=output, num_workers=1))
    expect("".join(files.read_text(output).split()), "".join(bytes_of(path).decode("utf-8-sig").split()))


def _split_with(abbreviations: str) -> None:
    """Splits with a file of abbreviations; the end of each may only keep sentences together."""
    folder = os.path.dirname(abbreviations)
    known = split_sentences.read_abbreviations(abbreviations)
    lines = bytes_of(abbreviations).decode("utf-8-sig").split("\n")
    expect(known, [found for line in lines if (found := line.partition("#")[0].strip())])
    texts = []
    for given in (None, abbreviations):
        output = os.path.join(folder, "sentences.txt")
        split_sentences.run(SentenceSettings(input_file=os.path.join(folder, "a.txt"), output_file=output,
                                             num_workers=1, abbreviations=given))
        texts.append(files.read_text(output))
    expect(*("".join(text.split()) for text in texts))
    assert len(texts[1].splitlines()) <= len(texts[0].splitlines())


def _make_abbreviations(folder: str) -> None:
    files.write_text(os.path.join(folder, "a.txt"), _TEXT)
    files.write_text(os.path.join(folder, "abbreviations.txt"), "# Of our reports\nsaid.\nca\n\nnails\nZoë  # a name\n")


def _learn(path: str) -> None:
    output = path + ".vocab"
    build_vocab.run(VocabularySettings(input_file=path, output_file=output, vocab_size=150, min_frequency=1,
                                       num_workers=1))
    vocabulary = Vocabulary.from_file(output)
    assert set(SPECIAL_TOKENS) <= set(vocabulary.tokens)
    Tokenizer(vocabulary).encode("a naïve text")


def _read_lines(path: str) -> None:
    lines.check(path)
    found = [line for block, _ in lines.blocks(path, 3) for line in block]
    expect("".join(found), bytes_of(path).decode())
    for line in found:
        lines.split_pair(line)


def _read_vocabulary(path: str) -> None:
    vocabulary = Vocabulary.from_file(path)
    found = bytes_of(path).decode().removesuffix("\n").split("\n")
    expect(vocabulary.tokens, tuple(token.strip() for token in found))
    expect((len(vocabulary.continuation), len(vocabulary.sha256)), (vocabulary.size, 64))
    Tokenizer(vocabulary).encode("a naïve text")


def _read_tokenizer(path: str) -> None:
    vocabulary = Vocabulary.from_file(path)
    expect(vocab_file.text(path), "".join(f"{token}\n" for token in vocabulary.tokens))
    expect(len(vocabulary.sha256), 64)
    Tokenizer(vocabulary).encode("a naïve text")


_TOKENIZER = json.dumps({
    "version": "1.0", "added_tokens": [{"id": index, "content": token} for index, token in enumerate(SPECIAL_TOKENS)],
    "normalizer": {"type": "BertNormalizer", "lowercase": True},
    "model": {"type": "WordPiece", "vocab": {token: index for index, token in enumerate(
        (*SPECIAL_TOKENS, *corpora.WORDS[:10], "##s"))}}})


def _make_corpus(folder: str) -> None:
    corpora.write_vocabulary(pathlib.Path(folder, "vocab.txt"))
    corpora.write_corpus(pathlib.Path(folder, "corpus.txt"), corpora.make_documents(4))


def _make_store(folder: str) -> None:
    _make_corpus(folder)
    _tokenize_corpus(folder)


def _tokenize_corpus(folder: str) -> None:
    """The first pass of `create_pretraining_data`."""
    vocabulary = Vocabulary.from_file(vocab := os.path.join(folder, "vocab.txt"))
    corpus = CorpusSettings(vocab_file=vocab)
    units = [(f"unit{number}", spans) for number, spans in enumerate(id_store.plan_spans(
        [os.path.join(folder, "corpus.txt")], span_bytes=2000))]
    results = [id_store.tokenize_unit(unit, folder, corpus, vocabulary.sha256) for unit in units]
    id_store.join_units([name for name, _ in units], folder, os.path.join(folder, "store"), vocabulary.size)
    store = IdStore.open(os.path.join(folder, "store"))
    expect((store.num_documents, len(store.tokens)),
           (sum(result["documents"] for result in results), sum(result["tokens"] for result in results)))
    text = bytes_of(os.path.join(folder, "corpus.txt")).decode("utf-8-sig")
    whole = _tokenizer(vocabulary.tokens).encode_lines(text.split("\n"))[0]
    expect(store.tokens.tolist(), whole.tolist())


def _open_store(folder: str) -> None:
    store = IdStore.open(os.path.join(folder, "store"))
    expect(store.sentence_starts[-1], len(store.tokens))


# --- Tables and tasks ------------------------------------------------------------------------------------------------

_TSV = "text\tother\tlabel\n" + "".join(f"sentence {n} is \"so\"\tsecond {n}\t{n % 2}\n" for n in range(8))
_CSV = "text,other,label\n" + "".join(f'"a ""b"", {n}\nc",second {n},{n % 2}\n' for n in range(8))
_JSONL = "".join(json.dumps({"text": f"first {n} ü", "other": f"second {n}", "label": n % 2, "score": n / 3}) + "\n"
                 for n in range(8))


def _read_plain(path: str) -> None:
    table = tables.read(path)
    rows = [line.removesuffix("\r").split("\t") for line in bytes_of(path).decode("utf-8-sig").split("\n")]
    while rows[-1] == [""]:
        rows.pop()
    expect(table.rows, rows[1:])
    _tokenizes(table.texts("text"))


def _read_csv(path: str) -> None:
    table = tables.read(path)
    csv.field_size_limit(sys.maxsize)
    rows = list(csv.reader(io.StringIO(bytes_of(path).decode("utf-8-sig"), newline="")))
    while rows[-1] in ([], [""]):
        rows.pop()
    expect(table.rows, [row or [""] for row in rows[1:]])
    _tokenizes(table.texts("text"))


def _read_jsonl(path: str) -> None:
    table = tables.read(path)
    expect(json.dumps(table.rows), json.dumps([json.loads(line) for line in bytes_of(path).decode(
        "utf-8-sig").rstrip().split("\n")]))
    _tokenizes(table.texts("text"))
    _tokenizes(table.cells("label"))


def _read_classification(path: str) -> None:
    for regression in (False, True):
        labelled = ClassificationFiles(ClassificationSettings(
            task_name="custom", train_file=path, dev_file=path, test_file=path, text_a_column="text",
            text_b_column="other", label_column="label", regression=regression))
        for split in ("train", "dev", "test"):
            examples = labelled.read(split)
            _tokenizes(text for example in examples for text in (example.text_a, example.text_b or ""))
            print(labelled.labels)


def _read_choices(path: str) -> None:
    choices = MultipleChoiceFiles(MultipleChoiceSettings(
        task_name="custom", train_file=path, test_file=path, label_column="label", prompt_columns=("text",),
        choice_columns=("other", "score")))
    for split in ("train", "test"):
        for question in choices.read(split):
            assert split == "test" or question.label in (0, 1)
            _tokenizes((question.prompt, *question.choices))


_CHOICES = "".join(json.dumps({"text": f"prompt {n}", "other": f"one {n}", "score": f"two {n}", "label": n % 2}) + "\n"
                   for n in range(4))
_SQUAD = json.dumps({"version": "v2.0", "data": [{"title": "T", "paragraphs": [{
    "context": "The river  is 300 km long, and naïve.\nIt flows.", "qas": [
        {"id": f"q{n}", "question": f"How long {n}?", "is_impossible": n == 2,
         "answers": [{"text": "300 km", "answer_start": 14}] if n != 2 else []} for n in range(3)]}]}]})


def _read_squad(path: str) -> None:
    questions = squad.read(path)
    articles = json.loads(bytes_of(path))["data"]
    expect([each.id for each in questions], [
        each["id"] for article in articles for part in article["paragraphs"] for each in part["qas"]])
    for question in questions:
        _tokenizes((question.text, question.paragraph.context, question.paragraph.title))
    for question in squad.trainable(questions, True, path)[0]:
        for text, start in question.answers or ():
            _tokenizes((text,))
            assert question.is_impossible or (start is not None and start < len(question.paragraph.context))


_CONLL = "-DOCSTART- -X- O O\n\nZoë NNP I-NP B-PER\nSmith NNP I-NP I-PER\nsat VBD I-VP O\n\nin IN I-PP O\n" \
         "Paris NNP I-NP B-LOC\n1998 CD I-NP O\n\n"


def _read_conll(path: str) -> None:
    files_of_words = NerFiles(NerSettings(train_file=path, test_file=path))
    sentences = files_of_words.read("train")
    words = [line for line in bytes_of(path).decode("utf-8-sig").split("\n")
             if line.strip() and not line.startswith(ner.DOCUMENT_BREAK)]
    expect([word for sentence in sentences for word in sentence.words],
        [re.split("\t" if "\t" in words[0] else " +", line.rstrip("\r") if "\t" in words[0] else line.rstrip(
            "\r").strip(" "))[0] for line in words])
    assert all(set(sentence.tags or ()) <= set(files_of_words.labels) for sentence in sentences)
    _tokenizes(word for sentence in sentences for word in sentence.words)
    print(files_of_words.labels)


READERS = (
    one_file("texts", "a.txt", _TEXT * 3, mutations.edited, _read_text),
    one_file("sentences", "a.txt", _TEXT * 3, mutations.edited, _split),
    Reader("abbreviations", _make_abbreviations, {"abbreviations.txt": mutations.edited}, lambda folder: _split_with(
        os.path.join(folder, "abbreviations.txt"))),
    one_file("words", "a.txt", _TEXT, mutations.edited, _learn),
    one_file("lines", "a.txt", _TEXT.replace("(", "|||"), mutations.edited, _read_lines),
    one_file("vocabularies", "vocab.txt", _VOCABULARY, mutations.edited, _read_vocabulary),
    one_file("tokenizer.json", "tokenizer.json", _TOKENIZER, mutations.json_edited, _read_tokenizer),
    Reader("corpora", _make_corpus, {"corpus.txt": mutations.edited}, _tokenize_corpus),
    Reader("id_store", _make_store, {"store/store.json": mutations.json_edited, **dict.fromkeys(
        ("store/tokens", "store/sentence_starts", "store/document_starts"), mutations.damaged)}, _open_store),
    one_file("tsv", "a.tsv", _TSV, mutations.edited, _read_plain),
    one_file("csv", "a.csv", _CSV, mutations.edited, _read_csv),
    one_file("jsonl", "a.jsonl", _JSONL, mutations.json_lines_edited, _read_jsonl),
    one_file("classification", "a.tsv", _TSV, mutations.edited, _read_classification),
    one_file("classification_json", "a.jsonl", _JSONL, mutations.json_lines_edited, _read_classification),
    one_file("multiple_choice", "a.jsonl", _CHOICES, mutations.json_lines_edited, _read_choices),
    one_file("squad", "a.json", _SQUAD, mutations.json_edited, _read_squad),
    one_file("conll", "a.txt", _CONLL, mutations.edited, _read_conll),
)

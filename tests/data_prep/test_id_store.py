"""First pass: text is cut, tokenised and joined into one store; the places of the cuts do not matter."""

import os

import numpy as np
import pytest

from data_prep import id_store
from data_prep.id_store import IdStore, plan_spans, tokenize_unit
from data_prep.settings import CorpusSettings
from foundation.errors import BertError
from tests.data_prep import corpora
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary


@pytest.fixture
def vocab_file(tmp_path):
    return corpora.write_vocabulary(tmp_path / "vocab.txt")


def build(paths, vocab_file, folder, span_bytes=id_store.SPAN_BYTES, on_bad_utf8="error"):
    """The store of some files, and the counts of all units."""
    corpus = CorpusSettings(vocab_file=vocab_file, on_bad_utf8=on_bad_utf8)
    vocabulary = Vocabulary.from_file(vocab_file)
    folder.mkdir()
    units = [(str(number), spans) for number, spans in enumerate(plan_spans(paths, span_bytes))]
    results = [tokenize_unit(unit, str(folder), corpus, vocabulary.sha256) for unit in units]
    id_store.join_units([name for name, _ in units], str(folder), str(folder / "store"), vocabulary.size)
    counts = {name: sum(result[name] for result in results) for name in id_store.COUNTS}
    return IdStore.open(str(folder / "store")), counts


def documents_of(store):
    """The store as lists of documents of sentences of ids."""
    sentences = [
        store.tokens[begin:end].tolist() for begin, end in zip(store.sentence_starts, store.sentence_starts[1:])
    ]
    return [sentences[begin:end] for begin, end in zip(store.document_starts, store.document_starts[1:])]


def test_runs_of_tokens_are_read_in_any_order(tmp_path, vocab_file):
    store, _ = build([corpora.write_corpus(tmp_path / "a", corpora.make_documents(3))], vocab_file, tmp_path / "work")
    starts, lengths = np.array([7, 0, 30, 5]), np.array([3, 2, 0, 9])
    expected = [store.tokens[start : start + length] for start, length in zip(starts, lengths)]
    np.testing.assert_array_equal(store.read_tokens(starts, lengths), np.concatenate(expected))


def ids_of(documents, vocab_file):
    tokenizer = Tokenizer(Vocabulary.from_file(vocab_file))
    return [[tokenizer.encode_lines([line])[0].tolist() for line in document] for document in documents]


@pytest.mark.parametrize("span_bytes", [1, 50, 700, 1 << 24])
@pytest.mark.parametrize("read_bytes", [7, 1 << 20])
def test_where_files_are_cut_does_not_matter(tmp_path, vocab_file, monkeypatch, span_bytes, read_bytes):
    monkeypatch.setattr(id_store, "_READ_BYTES", read_bytes)
    documents = corpora.make_documents(12, sentences=(1, 5), words=(1, 4))
    paths = [corpora.write_corpus(tmp_path / "a", documents[:7]), corpora.write_corpus(tmp_path / "b", documents[7:])]
    store, counts = build(paths, vocab_file, tmp_path / "work", span_bytes)
    expected = ids_of(documents, vocab_file)
    assert documents_of(store) == expected
    assert counts["documents"] == store.num_documents == 12
    assert counts["sentences"] == sum(map(len, documents))
    assert counts["tokens"] == len(store.tokens)
    assert counts["bytes"] == sum(os.path.getsize(path) for path in paths)


@pytest.mark.parametrize("span_bytes", [1, 1 << 24])
def test_the_end_of_a_file_ends_a_document(tmp_path, vocab_file, span_bytes):
    (tmp_path / "a").write_text("ban\n\nbar")
    (tmp_path / "b").write_text("ben\nber")
    store, _ = build([str(tmp_path / "a"), str(tmp_path / "b")], vocab_file, tmp_path / "work", span_bytes)
    assert documents_of(store) == ids_of([["ban"], ["bar"], ["ben", "ber"]], vocab_file)


@pytest.mark.parametrize("span_bytes", [1, 4, 1 << 24])
@pytest.mark.parametrize(
    "text",
    [
        "ban\r\nbar\r\n\r\nben\r\n",
        "\ufeffban\nbar\n\nben\n",
        "\n\n\nban\nbar\n\n\n\nben\n\n\n",
        "ban\nbar\n \t \nben",
        "ban\nbar\n\u3000\nben",
        "ban\n\u200b\nbar\n\n\u200b\n\nben\n",  # a line without tokens is no sentence, and makes no document
    ],
)
def test_line_ends_marks_and_empty_lines(tmp_path, vocab_file, text, span_bytes):
    (tmp_path / "a").write_bytes(text.encode())
    store, counts = build([str(tmp_path / "a")], vocab_file, tmp_path / "work", span_bytes)
    assert documents_of(store) == ids_of([["ban", "bar"], ["ben"]], vocab_file)
    assert (counts["documents"], counts["sentences"]) == (2, 3)


def test_an_empty_file_is_an_empty_store(tmp_path, vocab_file):
    (tmp_path / "a").write_text("\n\n")
    store, counts = build([str(tmp_path / "a")], vocab_file, tmp_path / "work")
    assert store.num_documents == counts["documents"] == 0
    assert len(store.tokens) == 0


@pytest.mark.parametrize("span_bytes", [1, 1 << 24])
@pytest.mark.parametrize("read_bytes", [5, 1 << 20])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_byte_that_is_not_utf8_is_named(tmp_path, vocab_file, monkeypatch, span_bytes, read_bytes, mark):
    monkeypatch.setattr(id_store, "_READ_BYTES", read_bytes)
    text = mark + b"ban\n\n\xc3\xa9 ben\nbe\xffr\nbir\n"
    (tmp_path / "a.txt").write_bytes(text)
    message = rf"a\.txt: byte {text.index(0xFF)} is not UTF-8 \(0xff\).*--on_bad_utf8=skip"
    with pytest.raises(BertError, match=message):
        build([str(tmp_path / "a.txt")], vocab_file, tmp_path / "work", span_bytes)


def test_lines_that_are_not_utf8_are_skipped_and_counted(tmp_path, vocab_file):
    (tmp_path / "a").write_bytes(b"ban\nbe\xffr\nbir\n\n\xff\n\nben\n")
    store, counts = build([str(tmp_path / "a")], vocab_file, tmp_path / "work", on_bad_utf8="skip")
    assert documents_of(store) == ids_of([["ban", "bir"], ["ben"]], vocab_file)
    assert counts["bad_lines"] == 2


def test_ids_take_two_bytes_where_they_fit():
    assert id_store.id_dtype(1 << 16) == np.uint16
    assert id_store.id_dtype((1 << 16) + 1) == np.uint32


def test_small_files_share_a_unit_of_work(tmp_path):
    paths = []
    for number in range(10):
        (tmp_path / str(number)).write_text("ban\n" * 10)
        paths.append(str(tmp_path / str(number)))
    units = plan_spans(paths, span_bytes=125)
    assert [len(unit) for unit in units] == [3, 3, 3, 1]
    assert [span.file for unit in units for span in unit] == paths


def test_a_vocabulary_that_changes_during_the_job_stops_it(tmp_path, vocab_file):
    corpora.write_corpus(tmp_path / "a", [["ban"]])
    (spans,) = plan_spans([str(tmp_path / "a")])
    with pytest.raises(BertError, match="changed while it was in use"):
        tokenize_unit(("0", spans), str(tmp_path), CorpusSettings(vocab_file=vocab_file), "0" * 64)


@pytest.mark.parametrize("name, keep, message", [
    ("tokens", -1, "tokens: truncated"),
    ("tokens", -2, "do not belong together"),
    ("sentence_starts", -8, "do not belong together"),
    ("document_starts", -3, "document_starts: truncated"),
    ("store.json", 2, "store.json.*not JSON"),
])
def test_a_store_that_is_cut_off_is_named_and_known(tmp_path, vocab_file, capsys, name, keep, message):
    path = corpora.write_corpus(tmp_path / "a", corpora.make_documents(3))
    build([path], vocab_file, tmp_path / "work")
    store = tmp_path / "work" / "store"
    assert id_store.is_intact(str(store)) and not capsys.readouterr().err
    (store / name).write_bytes((store / name).read_bytes()[:keep])
    with pytest.raises(BertError, match=message):
        IdStore.open(str(store))
    assert not id_store.is_intact(str(store))
    assert f"warning: {store}: damaged since the job was interrupted. It is made again." in capsys.readouterr().err


def test_both_tokenizers_make_the_same_files(tmp_path, vocab_file):
    path = corpora.write_corpus(tmp_path / "a", corpora.make_documents(5))
    (spans,) = plan_spans([path])
    corpus, sha256 = CorpusSettings(vocab_file=vocab_file), Vocabulary.from_file(vocab_file).sha256
    table, native = (tokenize_unit((name, spans), str(tmp_path), corpus, sha256, native=name == "native")
                     for name in ("table", "native"))
    assert table == native

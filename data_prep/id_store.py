"""First pass: a corpus becomes token ids once, in a local store with random access.

Input has the release's format: UTF-8, one sentence per line, an empty line between documents. The end of a file ends a
document too (the release joins the next file's first document to it). Files are cut into spans of about 16 MB at empty
lines, so that workers share even a single file; where the cuts fall depends on the file only.
"""

import contextlib
import dataclasses
import functools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from data_prep import intermediate
from data_prep.memory_maps import MappedArray
from data_prep.settings import ERROR, CorpusSettings
from foundation import files, state
from foundation.errors import BertError
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary
from tokenization.word_table import WordTable

SPAN_BYTES = 1 << 24
_READ_BYTES = 1 << 20
_EMPTY_LINE = re.compile(rb"\n[ \t\r]*\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# What `tokenize_unit` counts.
COUNTS = ("documents", "sentences", "tokens", "bytes", "bad_lines")
_STORE_FILE = "store.json"
_DTYPES = ("uint16", "uint32")
_STORE_FILES = _TOKENS_FILE, _SENTENCES_FILE, _DOCUMENTS_FILE = "tokens", "sentence_starts", "document_starts"
_STORE_SCHEMA = {"dtype": str, "sentences": int, "documents": int,
                 "files": dict.fromkeys(_STORE_FILES, intermediate.SCHEMA)}
_UNIT_SUFFIXES = TOKENS, SENTENCES, DOCUMENTS = ".tokens", ".sentences", ".documents"
# What `tokenize_unit` returns.
UNIT_SCHEMA = {**dict.fromkeys(COUNTS, int), "files": dict.fromkeys(_UNIT_SUFFIXES, intermediate.SCHEMA)}


@dataclasses.dataclass(frozen=True)
class Span:
    """Bytes `start` to `end` of a file, whole documents."""

    file: str
    start: int
    end: int


def plan_spans(paths: Sequence[str], span_bytes: int = SPAN_BYTES) -> list[list[Span]]:
    """Cuts files into spans at empty lines and groups small ones.

    Args:
        paths: input files.
        span_bytes: the size to aim for.

    Returns:
        Units of work of about `span_bytes` each, in the order of the corpus.
    """
    units: list[list[Span]] = []
    unit_bytes = 0
    for path in paths:
        size = files.size(path)
        start = 0
        while start < size:
            end = _next_empty_line(path, start + span_bytes, size)
            if not units or unit_bytes + (end - start) > span_bytes:
                units.append([])
                unit_bytes = 0
            units[-1].append(Span(path, start, end))
            unit_bytes += end - start
            start = end
    return units


def _next_empty_line(path: str, offset: int, size: int) -> int:
    """Offset of the end of the first line from `offset` on that is followed by an empty line, or the file's size."""
    with files.open_file(path, "rb") as file:
        file.seek(min(offset, size))
        window = b""
        while chunk := file.read(1 << 16):
            # What is left of the window may hold the beginning of an empty line.
            kept = len(window) - len(window.rstrip(b" \t\r\n"))
            offset += len(window) - kept
            window = window[len(window) - kept :] + chunk
            if found := _EMPTY_LINE.search(window):
                return offset + found.start() + 1
    return size


def tokenize_unit(unit: tuple[str, list[Span]], folder: str, corpus: CorpusSettings, vocab_sha256: str,
                  native: bool = False) -> dict[str, Any]:
    """Turns the spans of a unit into three files of ids, sentence lengths and document lengths.

    Args:
        unit: name and spans.
        folder: where `<name>.tokens`, `<name>.sentences` (uint32, tokens of each sentence) and `<name>.documents`
            (uint32, sentences of each document) are written. Sentences without tokens and documents without sentences
            are left out.
        corpus: CorpusSettings.
        vocab_sha256: of the vocabulary that the job began with.
        native: tokenize with TensorFlow, which takes seconds to start and is faster on large corpora. The ids are the
            same.

    Returns:
        Counts: `documents`, `sentences`, `tokens`, `bytes`, `bad_lines` (left out, not UTF-8). `files`: what describes
        the files (`data_prep.intermediate`), by suffix.

    Raises:
        BertError: a line is not UTF-8 and `corpus.on_bad_utf8` is "error".
    """
    name, spans = unit
    path = os.path.join(folder, name)
    tokenizer, dtype = _tokenizer(corpus, vocab_sha256, native)
    sentence_lengths, sentence_documents = [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)]
    documents = tokens = bad_lines = 0
    with intermediate.writing(path + TOKENS) as output:
        for span in spans:
            for start, data in _blocks_of_lines(span):
                lines, bad = _decode(data, span.file, start, corpus.on_bad_utf8)
                bad_lines += bad
                sentences, of_document = [], []
                for line in lines:
                    if line := line.strip():
                        sentences.append(line)
                        of_document.append(documents)
                    else:
                        documents += 1
                if sentences:
                    ids, splits = tokenizer.encode_lines(sentences)
                    lengths = np.diff(splits).astype(np.uint32)
                    output.write_array(ids.astype(dtype))
                    tokens += len(ids)
                    sentence_lengths.append(lengths[lengths > 0])
                    sentence_documents.append(np.array(of_document, np.int64)[lengths > 0])
            documents += 1
    document_lengths = np.bincount(np.concatenate(sentence_documents))
    by_suffix = {
        SENTENCES: np.concatenate(sentence_lengths),
        DOCUMENTS: document_lengths[document_lengths > 0].astype(np.uint32),
    }
    described = {TOKENS: output.description()}
    for suffix, lengths in by_suffix.items():
        with intermediate.writing(path + suffix) as output:
            output.write_array(lengths)
        described[suffix] = output.description()
    return {
        "documents": len(by_suffix[DOCUMENTS]),
        "sentences": len(by_suffix[SENTENCES]),
        "tokens": tokens,
        "bytes": sum(span.end - span.start for span in spans),
        "bad_lines": bad_lines,
        "files": described,
    }


def is_unit_intact(name: str, folder: str, result: dict[str, Any]) -> bool:
    """Whether the files of a unit are as `tokenize_unit` wrote them when it returned this; if not, that is reported."""
    return all(intermediate.is_intact(os.path.join(folder, name + suffix), described)
               for suffix, described in result["files"].items())


@functools.lru_cache(maxsize=1)
def _tokenizer(corpus: CorpusSettings, vocab_sha256: str, native: bool) -> tuple[Tokenizer | WordTable, Any]:
    vocabulary = Vocabulary.from_file(corpus.vocab_file)
    if vocabulary.sha256 != vocab_sha256:
        raise BertError(f"{corpus.vocab_file}: changed while it was in use. Run the same command again.")
    kind = Tokenizer if native else WordTable
    return kind(vocabulary, do_lower_case=corpus.do_lower_case), id_dtype(vocabulary.size)


def id_dtype(vocab_size: int) -> npt.DTypeLike:
    """The smallest integer type that holds every id of a vocabulary."""
    return np.uint16 if vocab_size <= 1 << 16 else np.uint32


def _blocks_of_lines(span: Span) -> Iterator[tuple[int, bytes]]:
    """Yields offset in the file and bytes of about a megabyte of whole lines."""
    with files.open_file(span.file, "rb") as file:
        file.seek(span.start)
        offset, rest, left = span.start, b"", span.end - span.start
        while left:
            chunk = file.read(min(left, _READ_BYTES))
            if not chunk:
                raise BertError(f"{span.file}: was truncated while it was read. Run the same command again.")
            left -= len(chunk)
            data = rest + chunk
            cut = data.rfind(b"\n") + 1 if left else len(data)
            if cut:
                yield offset, data[:cut]
            offset, rest = offset + cut, data[cut:]


def _decode(data: bytes, path: str, offset: int, on_bad_utf8: str) -> tuple[list[str], int]:
    """Bytes as lines, and the number of lines left out. Only a line feed ends a line; a last empty line is dropped."""
    if offset == 0 and data.startswith(_BYTE_ORDER_MARK):
        data, offset = data.removeprefix(_BYTE_ORDER_MARK), len(_BYTE_ORDER_MARK)
    data = data.removesuffix(b"\n")
    if on_bad_utf8 == ERROR:
        text = files.decode(
            data, path, offset, "Re-encode the file, or pass --on_bad_utf8=skip to leave out such lines.")
        return text.split("\n"), 0
    with contextlib.suppress(UnicodeDecodeError):
        return data.decode("utf-8").split("\n"), 0
    lines, bad = [], 0
    for line in data.split(b"\n"):
        try:
            lines.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            bad += 1
    return lines, bad


def join_units(names: Sequence[str], source: str, folder: str, vocab_size: int) -> None:
    """Joins the files of all units, in order, into the store that `IdStore` reads.

    Args:
        names: names of the units, in the order of the corpus.
        source: folder of the units' files, which are removed.
        folder: folder of the store; it exists (`exists`) when it is complete.
        vocab_size: for the type of the ids.
    """
    files.make_folder(folder)
    with intermediate.writing(os.path.join(folder, _TOKENS_FILE)) as output:
        for name in names:
            output.append(os.path.join(source, name + TOKENS))
    sentences, of_sentences = _append_starts(names, source, SENTENCES, os.path.join(folder, _SENTENCES_FILE))
    documents, of_documents = _append_starts(names, source, DOCUMENTS, os.path.join(folder, _DOCUMENTS_FILE))
    described = zip(_STORE_FILES, (output.description(), of_sentences, of_documents))
    files.write_json(
        os.path.join(folder, _STORE_FILE),
        {"dtype": np.dtype(id_dtype(vocab_size)).name, "sentences": sentences, "documents": documents,
         "files": dict(described)},
    )
    for name in names:
        for suffix in _UNIT_SUFFIXES:
            os.remove(os.path.join(source, name + suffix))


def exists(folder: str) -> bool:
    """Whether a folder holds a complete store."""
    return os.path.exists(os.path.join(folder, _STORE_FILE))


def is_intact(folder: str) -> bool:
    """Whether a store is as `join_units` wrote it; if not, that is reported."""
    try:
        IdStore.open(folder)
    except (BertError, OSError):
        intermediate.report(folder, "damaged")
        return False
    described = state.read(os.path.join(folder, _STORE_FILE), _STORE_SCHEMA)["files"]
    return all(intermediate.is_intact(os.path.join(folder, name), each) for name, each in described.items())


def _append_starts(names: Sequence[str], source: str, suffix: str, path: str) -> tuple[int, dict[str, int]]:
    """Writes lengths as starts: int64 [count + 1], the last one the end. Returns the count, and the file's description.
    """
    end, count = 0, 0
    with intermediate.writing(path) as output:
        output.write(np.int64(0).tobytes())
        for name in names:
            lengths = np.fromfile(os.path.join(source, name + suffix), np.uint32)
            ends = end + np.cumsum(lengths, dtype=np.int64)
            output.write_array(ends)
            count += len(ends)
            end = int(ends[-1]) if len(ends) else end
    return count, output.description()


@dataclasses.dataclass(frozen=True)
class IdStore:
    """A tokenised corpus, memory-mapped.

    Attributes:
        maps: the files behind the arrays, in this order.
    """

    maps: tuple[MappedArray, MappedArray, MappedArray]

    @classmethod
    def open(cls, folder: str) -> Self:
        """Opens what `join_units` wrote. Raises BertError where a file has not the size that the others ask for."""
        advice = f"Remove {os.path.dirname(folder)} and run the same command again."
        described = state.read(os.path.join(folder, _STORE_FILE), _STORE_SCHEMA, advice)
        if described["dtype"] not in _DTYPES:
            raise BertError(f"{folder}/{_STORE_FILE}: no type {described['dtype']!r} is known. {advice}")
        store = cls((
            MappedArray.open(os.path.join(folder, _TOKENS_FILE), described["dtype"]),
            MappedArray.open(os.path.join(folder, _SENTENCES_FILE), np.int64),
            MappedArray.open(os.path.join(folder, _DOCUMENTS_FILE), np.int64),
        ))
        sizes = (len(store.sentence_starts) - 1, len(store.document_starts) - 1)
        if sizes != (described["sentences"], described["documents"]) or store.sentence_starts[-1] != len(store.tokens):
            raise BertError(f"{folder}: its files do not belong together. {advice}")
        return store

    @property
    def tokens(self) -> np.ndarray:
        """Unsigned integers [tokens], the whole corpus end to end."""
        return self.maps[0].array

    def read_tokens(self, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Runs of tokens, end to end; starts and lengths are int64 [n]."""
        return self.maps[0].read(starts, lengths)

    @property
    def sentence_starts(self) -> np.ndarray:
        """int64 [sentences + 1], where each sentence begins in `tokens`, and the end."""
        return self.maps[1].array

    @property
    def document_starts(self) -> np.ndarray:
        """int64 [documents + 1], where each document begins among the sentences, and the end."""
        return self.maps[2].array

    @property
    def num_documents(self) -> int:
        return len(self.document_starts) - 1

    def drop_pages(self) -> None:
        """Gives back the memory of what was read so far."""
        for mapped in self.maps:
            mapped.drop_pages()

"""First pass: a corpus becomes token ids once, in a local store that is then read at random.

Input is the release's format: UTF-8, one sentence a line, an empty line between documents. The end of a file ends a
document too (in the release the next file's first document is joined to it). Files are cut into spans of about 16 MB
at empty lines, so that workers share even a single file; where the cuts fall depends on the file only.
"""

import dataclasses
import functools
import json
import os
import re
import shutil

import numpy as np

from data_prep.memory_maps import MappedArray, write_array
from foundation import files
from foundation.errors import BertError
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary

SPAN_BYTES = 1 << 24
_READ_BYTES = 1 << 20
_EMPTY_LINE = re.compile(rb"\n[ \t\r]*\n")


@dataclasses.dataclass(frozen=True)
class Span:
    """Bytes `start` to `end` of a file, whole documents."""

    file: str
    start: int
    end: int


def plan_spans(paths, span_bytes=SPAN_BYTES):
    """Cuts files into spans at empty lines and groups small ones.

    Args:
        paths: input files.
        span_bytes: the size to aim for.

    Returns:
        list of lists of `Span`: units of work of about `span_bytes` each, in the order of the corpus.
    """
    units, unit_bytes = [], 0
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


def _next_empty_line(path, offset, size):
    """Offset of the end of the first line from `offset` on that an empty line follows, or the file's size."""
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


def tokenize_unit(unit, folder, corpus, vocab_sha256):
    """Turns the spans of a unit into three files of ids, sentence lengths and document lengths.

    Args:
        unit: (name, list of `Span`).
        folder: where `<name>.tokens`, `<name>.sentences` (uint32, tokens of each sentence) and `<name>.documents`
            (uint32, sentences of each document) are written. Sentences without tokens and documents without sentences
            are left out.
        corpus: `CorpusSettings`.
        vocab_sha256: of the vocabulary the job began with.

    Returns:
        dict of counts: `documents`, `sentences`, `tokens`, `bytes`, `bad_lines` (skipped, not UTF-8).

    Raises:
        BertError: a line is not UTF-8 and `corpus.on_bad_utf8` is "error".
    """
    name, spans = unit
    path = os.path.join(folder, name)
    tokenizer, dtype = _tokenizer(corpus, vocab_sha256)
    sentence_lengths, sentence_documents = [], []
    documents = tokens = bad_lines = 0
    with files.atomic(path + ".tokens") as temporary, open(temporary, "wb") as output:
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
                    write_array(output, ids.astype(dtype))
                    tokens += len(ids)
                    sentence_lengths.append(lengths[lengths > 0])
                    sentence_documents.append(np.array(of_document, np.int64)[lengths > 0])
            documents += 1
    sentence_lengths = np.concatenate([np.zeros(0, np.uint32), *sentence_lengths])
    document_lengths = np.bincount(np.concatenate([np.zeros(0, np.int64), *sentence_documents]))
    document_lengths = document_lengths[document_lengths > 0].astype(np.uint32)
    for suffix, lengths in ((".sentences", sentence_lengths), (".documents", document_lengths)):
        with files.atomic(path + suffix) as temporary, open(temporary, "wb") as output:
            write_array(output, lengths)
    return {
        "documents": len(document_lengths),
        "sentences": len(sentence_lengths),
        "tokens": tokens,
        "bytes": sum(span.end - span.start for span in spans),
        "bad_lines": bad_lines,
    }


@functools.lru_cache(maxsize=1)
def _tokenizer(corpus, vocab_sha256):
    vocabulary = Vocabulary.from_file(corpus.vocab_file)
    if vocabulary.sha256 != vocab_sha256:
        raise BertError(f"{corpus.vocab_file}: changed while it was in use. Run the same command again.")
    return Tokenizer(vocabulary, do_lower_case=corpus.do_lower_case), id_dtype(vocabulary.size)


def id_dtype(vocab_size):
    """The smallest integer type that holds every id of a vocabulary."""
    return np.uint16 if vocab_size <= 1 << 16 else np.uint32


def _blocks_of_lines(span):
    """Yields (offset in the file, bytes) of a few megabytes of whole lines."""
    with files.open_file(span.file, "rb") as file:
        file.seek(span.start)
        offset, rest, left = span.start, b"", span.end - span.start
        while left:
            chunk = file.read(min(left, _READ_BYTES))
            if not chunk:
                raise BertError(f"{span.file}: became shorter while it was read. Run the same command again.")
            left -= len(chunk)
            data = rest + chunk
            cut = data.rfind(b"\n") + 1 if left else len(data)
            if cut:
                yield offset, data[:cut]
            offset, rest = offset + cut, data[cut:]


def _decode(data, path, offset, on_bad_utf8):
    """Bytes to (lines, number of lines skipped); lines end at a newline only, and a last empty one is left out."""
    if offset == 0 and data.startswith(b"\xef\xbb\xbf"):
        data, offset = data[3:], 3
    data = data.removesuffix(b"\n")
    try:
        return data.decode("utf-8").split("\n"), 0
    except UnicodeDecodeError as error:
        if on_bad_utf8 == "error":
            raise BertError(
                f"{path}: byte {offset + error.start} is not UTF-8 (0x{data[error.start]:02x}). "
                f"Re-encode the file, or pass --on_bad_utf8=skip to leave out such lines."
            ) from None
    lines, bad = [], 0
    for line in data.split(b"\n"):
        try:
            lines.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            bad += 1
    return lines, bad


def join_units(names, source, folder, vocab_size):
    """Joins the files of all units, in order, into the store that `IdStore` reads.

    Args:
        names: names of the units, in the order of the corpus.
        source: folder of the units' files, which are removed.
        folder: folder of the store; `store.json` is written last.
        vocab_size: for the type of the ids.
    """
    files.make_folder(folder)
    with files.atomic(os.path.join(folder, "tokens")) as temporary, open(temporary, "wb") as output:
        for name in names:
            with open(os.path.join(source, name + ".tokens"), "rb") as piece:
                shutil.copyfileobj(piece, output, _READ_BYTES)
    sentences = _append_starts(names, source, ".sentences", os.path.join(folder, "sentence_starts"))
    documents = _append_starts(names, source, ".documents", os.path.join(folder, "document_starts"))
    files.write_json(
        os.path.join(folder, "store.json"),
        {"dtype": np.dtype(id_dtype(vocab_size)).name, "sentences": sentences, "documents": documents},
    )
    for name in names:
        for suffix in (".tokens", ".sentences", ".documents"):
            os.remove(os.path.join(source, name + suffix))


def _append_starts(names, source, suffix, path):
    """Lengths become starts: int64 [count + 1], the last one the end. Returns the count."""
    end, count = 0, 0
    with files.atomic(path) as temporary, open(temporary, "wb") as output:
        output.write(np.int64(0).tobytes())
        for name in names:
            lengths = np.fromfile(os.path.join(source, name + suffix), np.uint32)
            ends = end + np.cumsum(lengths, dtype=np.int64)
            write_array(output, ends)
            count += len(ends)
            end = int(ends[-1]) if len(ends) else end
    return count


class IdStore:
    """A tokenised corpus, memory-mapped.

    Args:
        folder: what `join_units` wrote.

    Attributes:
        tokens: unsigned integers [tokens], the whole corpus end to end.
        sentence_starts: int64 [sentences + 1], where each sentence begins in `tokens`, and the end.
        document_starts: int64 [documents + 1], where each document begins among the sentences, and the end.
    """

    def __init__(self, folder):
        with open(os.path.join(folder, "store.json"), encoding="utf-8") as file:
            dtype = json.load(file)["dtype"]
        self._maps = [
            MappedArray(os.path.join(folder, name), dtype)
            for name, dtype in (("tokens", dtype), ("sentence_starts", np.int64), ("document_starts", np.int64))
        ]
        self.tokens, self.sentence_starts, self.document_starts = (mapped.array for mapped in self._maps)

    @property
    def num_documents(self):
        return len(self.document_starts) - 1

    def drop_pages(self):
        """Gives back the memory of what was read so far."""
        for mapped in self._maps:
            mapped.drop_pages()

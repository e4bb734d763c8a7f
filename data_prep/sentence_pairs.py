"""Second pass, the plan: which tokens of the corpus make which training instance.

The packing is the release's (`create_instances_from_document`): sentences of a document accumulate to a target
length; A is a random number of them, B is the rest or, half of the time, a run of sentences of another document. In
the second case the sentences that B would have taken are packed next. Negatives come from any document of the corpus
but the instance's own. An instance is a row of places in the store of ids; no token is touched here.
"""

import bisect
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from data_prep import intermediate
from data_prep.id_store import IdStore
from data_prep.settings import InstanceSettings
from foundation import files, state
from foundation.errors import BertError

# What `plan_unit` returns.
UNIT_SCHEMA = {"instances": int, "file": intermediate.SCHEMA}
# Of the file that describes the plan.
DESCRIPTION_SUFFIX = ".json"

# Documents are planned in blocks of about this many tokens. Each block has random numbers of its own.
BLOCK_TOKENS = 1 << 21

SINGLE_DOCUMENT = (
    "--input_file holds a single document, and next-sentence prediction takes random sentences from another one. Put "
    "empty lines between documents, or pass --next_sentence=false."
)

PLAN_ROW = np.dtype(
    [
        ("a_start", np.int64),
        ("b_start", np.int64),
        ("a_length", np.uint16),
        ("b_length", np.uint16),
        ("is_random", np.bool_),
    ]
)

# Negatives are drawn this many at a time; each touches a few pages of memory somewhere in the corpus.
_DRAWN_TOGETHER = 1 << 11

# First number of a random stream's key, so that the streams of packing, shuffling and masking never meet.
_PACKING_STREAM = 1


def plan_blocks(store: IdStore, block_tokens: int = BLOCK_TOKENS) -> list[tuple[int, int]]:
    """Cuts the documents of a store into blocks.

    Returns:
        For each block, its first document and the document after its last.
    """
    blocks, first = [], 0
    while first < store.num_documents:
        limit = store.sentence_starts[store.document_starts[first]] + block_tokens
        sentence = np.searchsorted(store.sentence_starts, limit, side="right") - 1
        after = max(first + 1, int(np.searchsorted(store.document_starts, sentence, side="right")) - 1)
        blocks.append((first, after))
        first = after
    return blocks


def plan_unit(unit: tuple[str, int, int, tuple[int, int]], folder: str, store_folder: str, settings: InstanceSettings
              ) -> dict[str, Any]:
    """Plans one block of documents for one pass over the corpus and writes the rows to `<folder>/<name>.plan`.

    Args:
        unit: name, pass over the corpus from 0, block number, (first document, document after the last).
        folder: where to write.
        store_folder: of the IdStore.
        settings: InstanceSettings.

    Returns:
        `instances`, how many rows; `file`, what describes the file (`data_prep.intermediate`).
    """
    name, dupe, number, (first, after) = unit
    store = IdStore.open(store_folder)
    rng = np.random.default_rng([_PACKING_STREAM, settings.seed, dupe, number])
    rows = plan_documents(store, first, after, settings, rng)
    with intermediate.writing(unit_file(folder, name)) as output:
        output.write_array(rows)
    return {"instances": len(rows), "file": output.description()}


def unit_file(folder: str, name: str) -> str:
    """The file of a unit's rows."""
    return os.path.join(folder, name + ".plan")


def plan_documents(store: IdStore, first: int, after: int, settings: InstanceSettings, rng: np.random.Generator
                   ) -> np.ndarray:
    """Packs documents into instances.

    Args:
        store: the corpus.
        first: first document.
        after: document after the last.
        settings: InstanceSettings.
        rng: numpy Generator.

    Returns:
        PLAN_ROW [instances], in the order of the documents.

    Raises:
        BertError: `settings.next_sentence`, and there is only one document.
    """
    if settings.next_sentence and store.num_documents < 2:
        raise BertError(SINGLE_DOCUMENT)
    document_starts = np.array(store.document_starts[first : after + 1])
    chunks = _pack(store, document_starts, first, settings, rng)
    sentence_starts = store.sentence_starts
    a_start = sentence_starts[chunks["first"]]
    a_length = sentence_starts[chunks["a_end"]] - a_start
    b_start = sentence_starts[chunks["a_end"]]
    b_length = sentence_starts[chunks["end"]] - b_start
    if settings.next_sentence:
        random_rows = np.flatnonzero(chunks["is_random"])
        for begin in range(0, len(random_rows), _DRAWN_TOGETHER):
            drawn = random_rows[begin : begin + _DRAWN_TOGETHER]
            wanted = chunks["target"][drawn] - a_length[drawn]
            b_start[drawn], b_length[drawn] = _random_texts(store, chunks["document"][drawn], wanted, rng)
            store.drop_pages()
    else:
        a_length, b_length = a_length + b_length, np.zeros_like(b_length)
    a_front, a_length, b_front, b_length = truncate(a_length, b_length, settings.tokens_per_instance, rng)
    rows = np.zeros(len(a_start), PLAN_ROW)
    rows["a_start"], rows["a_length"] = a_start + a_front, a_length
    rows["b_start"], rows["b_length"] = b_start + b_front, b_length
    rows["is_random"] = chunks["is_random"]
    return rows


def _pack(store: IdStore, document_starts: np.ndarray, first_document: int, settings: InstanceSettings,
          rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Cuts documents into chunks of sentences and each chunk into A and B.

    Returns:
        int64 [chunks]: `document`, `target` (tokens), and the sentences `first`, `a_end`, `end`: A is [first, a_end)
        and B is [a_end, end) unless bool `is_random`.
    """
    counts = np.diff(document_starts)
    longest = settings.tokens_per_instance
    short = rng.random(len(counts)) < settings.short_seq_prob
    targets = np.where(short, rng.integers(2, longest, len(counts), endpoint=True), longest).tolist()
    base = int(document_starts[0])
    offsets = store.sentence_starts[base : document_starts[-1] + 1].tolist()
    # Each chunk uses up at least one sentence, and at most two random numbers.
    draws = iter(rng.random(2 * int(counts.sum())).tolist())
    bisect_left, next_sentence = bisect.bisect_left, settings.next_sentence
    chunks = []
    start = 0
    for document, (count, target) in enumerate(zip(counts.tolist(), targets)):
        stop = start + count
        while start < stop:
            end = min(bisect_left(offsets, offsets[start] + target, start + 1, stop), stop)
            if not next_sentence:
                a_end, is_random = end, False
            elif end - start == 1:
                a_end, is_random = end, True
            else:
                a_end = start + 1 + int(next(draws) * (end - start - 1))
                is_random = next(draws) < 0.5
            chunks.append((document, target, start, a_end, end, is_random))
            start = a_end if is_random else end
    columns = np.array(chunks, np.int64).reshape(-1, 6).T
    return {
        "document": first_document + columns[0],
        "target": columns[1],
        "first": base + columns[2],
        "a_end": base + columns[3],
        "end": base + columns[4],
        "is_random": columns[5].astype(bool),
    }


def _random_texts(store: IdStore, own_documents: np.ndarray, wanted: np.ndarray, rng: np.random.Generator
                  ) -> tuple[np.ndarray, np.ndarray]:
    """Runs of whole sentences of other documents, until they have the wanted number of tokens or the document ends.

    Args:
        store: the corpus.
        own_documents: int64 [n], the documents not to draw.
        wanted: int64 [n], tokens; a run has at least one sentence.
        rng: numpy Generator.

    Returns:
        start, length: int64 [n], in tokens.
    """
    other = rng.integers(store.num_documents - 1, size=len(own_documents))
    other += other >= own_documents
    stop = store.document_starts[other + 1]
    sentence = rng.integers(store.document_starts[other], stop)
    start = store.sentence_starts[sentence]
    end = np.empty_like(start)
    # One more sentence for all that still need one, until none does.
    growing = np.arange(len(start))
    while len(growing):
        sentence[growing] += 1
        end[growing] = store.sentence_starts[sentence[growing]]
        enough = (end[growing] - start[growing] >= wanted[growing]) | (sentence[growing] == stop[growing])
        growing = growing[~enough]
    return start, end - start


def truncate(a_length: np.ndarray, b_length: np.ndarray, limit: int, rng: np.random.Generator
             ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Shortens pairs to a limit: a token at a time from the longer segment, from B if equal, at either end evenly.

    How many tokens each segment loses follows from the lengths; how many of them at the front is binomial.

    Args:
        a_length: int64 [n].
        b_length: int64 [n].
        limit: tokens that both may have together.
        rng: numpy Generator.

    Returns:
        a_front, a_length, b_front, b_length: int64 [n], tokens cut off at the front and tokens kept.
    """
    excess = np.maximum(0, a_length + b_length - limit)
    # First the longer segment down to the shorter, then B and A by turns.
    difference = a_length - b_length
    by_turns = np.maximum(0, excess - np.abs(difference))
    a_cut = np.minimum(excess, np.maximum(0, difference)) + by_turns // 2
    b_cut = excess - a_cut
    a_front, b_front = rng.binomial(a_cut, 0.5), rng.binomial(b_cut, 0.5)
    return a_front, a_length - a_cut, b_front, b_length - b_cut


def join_plans(names: Sequence[str], source: str, path: str) -> None:
    """Joins the plans of all units, in order, into one file, which `is_intact` knows; the units' files are removed."""
    with intermediate.writing(path) as output:
        for name in names:
            output.append(unit_file(source, name))
    files.write_json(path + DESCRIPTION_SUFFIX, output.description())
    for name in names:
        os.remove(unit_file(source, name))


def exists(path: str) -> bool:
    """Whether there is a file of `join_plans`."""
    return os.path.exists(path + DESCRIPTION_SUFFIX)


def is_intact(path: str) -> bool:
    """Whether a file is as `join_plans` wrote it; if not, that is reported."""
    try:
        described = state.read(path + DESCRIPTION_SUFFIX, intermediate.SCHEMA)
    except BertError:
        intermediate.report(path, "damaged")
        return False
    return intermediate.is_intact(path, described)


def rows_in(path: str) -> int:
    """The number of rows in a file that `join_plans` wrote."""
    return os.path.getsize(path) // PLAN_ROW.itemsize

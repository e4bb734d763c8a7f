"""Second pass, the work: planned instances in their final, shuffled order become masked records in files.

Record `i` of the output is row `shuffle(i)` of the plan. Records are made in blocks of `BLOCK_ROWS` consecutive
records, whose masks depend on the seed and the block's number alone; so the same records come out in the same order,
however they are shared among workers and files.
"""

import dataclasses
import functools
import hashlib
import os
from typing import Any, Self

import numpy as np

from data_prep import framing, intermediate, records
from data_prep.id_store import IdStore
from data_prep.masking import mask_tokens
from data_prep.memory_maps import MappedArray
from data_prep.permutation import Permutation
from data_prep.sentence_pairs import PLAN_ROW
from data_prep.settings import InstanceSettings
from foundation import files
from tokenization.vocabulary import Vocabulary

# Part of what defines the output: masks are drawn by the block.
BLOCK_ROWS = 1 << 10
CHUNK_ROWS = 1 << 15

# First number of a random stream's key; packing has 1 (`data_prep.sentence_pairs`).
_SHUFFLING_STREAM = 2
_MASKING_STREAM = 3
_COPY_BYTES = 1 << 22

# What `write_chunk` counts.
COUNTS = ("instances", "tokens", "predictions", "random", "full")
UNIT_SCHEMA = {**dict.fromkeys(COUNTS, int), "file": intermediate.SCHEMA}


@dataclasses.dataclass(frozen=True)
class InstanceBlocks:
    """All instances of a job, by block of the final order.

    Attributes:
        store: the corpus.
        plan: PLAN_ROW, an instance each.
        vocabulary: Vocabulary.
        settings: InstanceSettings.
    """

    store: IdStore
    plan: MappedArray
    vocabulary: Vocabulary
    settings: InstanceSettings

    @classmethod
    def open(cls, store_folder: str, plan_file: str, vocab_file: str, settings: InstanceSettings) -> Self:
        """Opens the files that the passes before have written."""
        return cls(IdStore.open(store_folder), MappedArray.open(plan_file, PLAN_ROW), Vocabulary.from_file(vocab_file),
                   settings)

    @functools.cached_property
    def _shuffle(self) -> Permutation:
        return Permutation(len(self.plan.array), [_SHUFFLING_STREAM, self.settings.seed])

    @functools.cached_property
    def _replacement_ids(self) -> np.ndarray:
        if self.settings.replace_with_special:
            return np.arange(self.vocabulary.size)
        return self.vocabulary.replacement_ids

    def arrays(self, number: int) -> dict[str, np.ndarray]:
        """The arrays of block `number`, as `records.frame_pretraining` takes them."""
        settings = self.settings
        begin = number * BLOCK_ROWS
        order = self._shuffle(np.arange(begin, min(begin + BLOCK_ROWS, self._shuffle.size)))
        rows = self.plan.read(order, np.ones_like(order))
        tokens, lengths, candidates, segment_ids = assemble(self.store, rows, self.vocabulary, settings)
        masked, positions, targets, used = mask_tokens(
            tokens,
            lengths,
            candidates,
            np.random.default_rng([_MASKING_STREAM, settings.seed, number]),
            rate=settings.masked_lm_prob,
            limit=settings.max_predictions_per_seq,
            mix=settings.masking_mix,
            mask_id=self.vocabulary.mask_id,
            replacement_ids=self._replacement_ids,
            continuation=self.vocabulary.continuation if settings.do_whole_word_mask else None,
        )
        return {
            "input_ids": masked,
            "input_mask": (np.arange(settings.max_seq_length) < lengths[:, None]).view(np.uint8),
            "segment_ids": segment_ids,
            "masked_lm_positions": positions,
            "masked_lm_ids": targets,
            "masked_lm_weights": used,
            "next_sentence_labels": rows["is_random"].view(np.uint8)[:, None],
        }


def assemble(store: IdStore, rows: np.ndarray, vocabulary: Vocabulary, settings: InstanceSettings
             ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lays out [CLS] A [SEP] B [SEP], or [CLS] A [SEP] without next-sentence prediction.

    Args:
        store: the corpus.
        rows: PLAN_ROW [rows].
        vocabulary: Vocabulary, for the ids of the special tokens.
        settings: InstanceSettings.

    Returns:
        tokens: int32 [rows, seq], padded with 0.
        lengths: int64 [rows], tokens without padding.
        candidates: bool [rows, seq], where A and B are.
        segment_ids: uint8 [rows, seq], 1 on B and the [SEP] after it.
    """
    columns = np.arange(settings.max_seq_length)
    a_end = 1 + rows["a_length"].astype(np.int64)[:, None]
    b_begin = a_end + 1
    b_end = b_begin + rows["b_length"][:, None]
    in_a = (columns >= 1) & (columns < a_end)
    in_b = (columns >= b_begin) & (columns < b_end)
    candidates = in_a | in_b
    tokens = np.zeros(candidates.shape, np.int32)
    starts, lengths = (np.stack([rows[f"a_{name}"], rows[f"b_{name}"]], axis=1).ravel().astype(np.int64)
                       for name in ("start", "length"))
    tokens[candidates] = store.read_tokens(starts, lengths)
    tokens[:, 0] = vocabulary.cls_id
    np.put_along_axis(tokens, a_end, vocabulary.sep_id, axis=1)
    if not settings.next_sentence:
        return tokens, a_end[:, 0] + 1, candidates, np.zeros(candidates.shape, np.uint8)
    np.put_along_axis(tokens, b_end, vocabulary.sep_id, axis=1)
    return tokens, b_end[:, 0] + 1, candidates, ((columns >= b_begin) & (columns <= b_end)).view(np.uint8)


def chunk_file(folder: str, name: str) -> str:
    """The file of a chunk of records."""
    return os.path.join(folder, f"{name}.tfrecord")


def write_chunk(unit: tuple[str, int, int], folder: str, store_folder: str, plan_file: str, vocab_file: str,
                settings: InstanceSettings) -> dict[str, Any]:
    """Writes a range of records to a TFRecord file.

    Args:
        unit: name, first record, record after the last.
        folder: where to write.
        store_folder, plan_file, vocab_file, settings: as for `InstanceBlocks.open`.

    Returns:
        Counts over the records: `instances`, `tokens` (without padding), `predictions`, `random` (labels 1), `full`
        (rows without padding). `file`: what describes the file (`data_prep.intermediate`).
    """
    chunk, begin, end = unit
    blocks = InstanceBlocks.open(store_folder, plan_file, vocab_file, settings)
    counts = dict.fromkeys(COUNTS, 0)
    with intermediate.writing(chunk_file(folder, chunk)) as output:
        for number in range(begin // BLOCK_ROWS, -(-end // BLOCK_ROWS)):
            first = number * BLOCK_ROWS
            wanted = slice(max(begin - first, 0), end - first)
            arrays = {name: values[wanted] for name, values in blocks.arrays(number).items()}
            output.write(records.frame_pretraining(arrays))
            counts["instances"] += len(arrays["input_mask"])
            counts["tokens"] += int(arrays["input_mask"].sum())
            counts["predictions"] += int(arrays["masked_lm_weights"].sum())
            counts["random"] += int(arrays["next_sentence_labels"].sum())
            counts["full"] += int(arrays["input_mask"][:, -1].sum())
    return {**counts, "file": output.description()}


def join_chunks(unit: tuple[str, str, list[str], int], folder: str) -> dict[str, Any]:
    """Joins chunks into an output file, which appears whole; TFRecord files end to end are a TFRecord file.

    Args:
        unit: name, path of the output, names of the chunks, number of records.
        folder: of the chunks.

    Returns:
        `records`, `bytes`, `sha256`, `index` (`framing.Index` as text).
    """
    _, path, chunks, number_of_records = unit
    digest, size, starts = hashlib.sha256(), 0, [np.zeros(0, np.int64)]
    with files.atomic(path) as temporary, files.open_file(temporary, "wb") as output:
        output.write(b"")  # without any chunks, a remote file would not be made
        for chunk in chunks:
            starts.append(size + framing.starts(chunk_file(folder, chunk))[:-1])
            with open(chunk_file(folder, chunk), "rb") as source:
                while data := source.read(_COPY_BYTES):
                    digest.update(data)
                    output.write(data)
                    size += len(data)
    index = framing.Index.of(np.concatenate([*starts, [size]]))
    return {"records": number_of_records, "bytes": size, "sha256": digest.hexdigest(), "index": index.to_text()}

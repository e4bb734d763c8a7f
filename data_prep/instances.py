"""Second pass, the work: planned instances in their final, shuffled order become masked records in files.

Record `i` of the output is row `shuffle(i)` of the plan. Records are made in blocks of `BLOCK_ROWS` consecutive ones,
whose masks depend on the seed and the block's number alone; so the same records come out in the same order however
they are shared among workers and files.
"""

import hashlib
import os

import numpy as np
import tensorflow as tf

from data_prep import records
from data_prep.id_store import IdStore
from data_prep.masking import mask_tokens
from data_prep.memory_maps import MappedArray
from data_prep.permutation import Permutation
from data_prep.sentence_pairs import PLAN_ROW
from foundation import files
from tokenization.vocabulary import Vocabulary

# Part of what defines the output: masks are drawn by the block.
BLOCK_ROWS = 1 << 10
PIECE_ROWS = 1 << 15

_SHUFFLING_STREAM = 2
_MASKING_STREAM = 3
_COPY_BYTES = 1 << 22
_GATHERED_TOGETHER = 1 << 8


class InstanceBlocks:
    """All instances of a job, by block of the final order.

    Args:
        store_folder: of an `IdStore`.
        plan_file: path of `PLAN_ROW`s.
        vocabulary: `Vocabulary`.
        settings: `InstanceSettings`.
    """

    def __init__(self, store_folder, plan_file, vocabulary, settings):
        self._store = IdStore(store_folder)
        self._plan = MappedArray(plan_file, PLAN_ROW)
        self._vocabulary = vocabulary
        self._settings = settings
        self._shuffle = Permutation(len(self._plan.array), [_SHUFFLING_STREAM, settings.seed])
        self._replacement_ids = (
            np.arange(vocabulary.size) if settings.replace_with_special else np.asarray(vocabulary.replacement_ids)
        )
        self._continuation = np.asarray(vocabulary.continuation) if settings.do_whole_word_mask else None

    def arrays(self, number):
        """The arrays of block `number`, as `records.encode_pretraining` takes them; integers, float32 weights."""
        settings = self._settings
        begin = number * BLOCK_ROWS
        order = self._shuffle(np.arange(begin, min(begin + BLOCK_ROWS, self._shuffle.size)))
        rows = self._plan.array[order]
        self._plan.drop_pages()
        tokens, lengths, candidates, segment_ids = assemble(self._store, rows, self._vocabulary, settings)
        masked, positions, targets, weights = mask_tokens(
            tokens,
            lengths,
            candidates,
            np.random.default_rng([_MASKING_STREAM, settings.seed, number]),
            rate=settings.masked_lm_prob,
            limit=settings.max_predictions_per_seq,
            mix=settings.masking_mix,
            mask_id=self._vocabulary.mask_id,
            replacement_ids=self._replacement_ids,
            continuation=self._continuation,
        )
        return {
            "input_ids": masked,
            "input_mask": (np.arange(settings.max_seq_length) < lengths[:, None]).view(np.uint8),
            "segment_ids": segment_ids,
            "masked_lm_positions": positions,
            "masked_lm_ids": targets,
            "masked_lm_weights": weights,
            "next_sentence_labels": rows["is_random"].view(np.uint8)[:, None],
        }


def assemble(store, rows, vocabulary, settings):
    """Lays out [CLS] A [SEP] B [SEP], or [CLS] A [SEP] without next-sentence prediction.

    Args:
        store: has `tokens`, the corpus end to end.
        rows: `PLAN_ROW` [rows].
        vocabulary: has `cls_id` and `sep_id`.
        settings: `InstanceSettings`.

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
    places = columns + np.where(in_a, rows["a_start"][:, None] - 1, rows["b_start"][:, None] - b_begin)
    tokens = np.zeros(candidates.shape, np.int32)
    for begin in range(0, len(rows), _GATHERED_TOGETHER):
        part = slice(begin, begin + _GATHERED_TOGETHER)
        tokens[part][candidates[part]] = store.tokens[places[part][candidates[part]]]
        store.drop_pages()
    tokens[:, 0] = vocabulary.cls_id
    np.put_along_axis(tokens, a_end, vocabulary.sep_id, axis=1)
    if not settings.next_sentence:
        return tokens, a_end[:, 0] + 1, candidates, np.zeros(candidates.shape, np.uint8)
    np.put_along_axis(tokens, b_end, vocabulary.sep_id, axis=1)
    return tokens, b_end[:, 0] + 1, candidates, ((columns >= b_begin) & (columns <= b_end)).view(np.uint8)


def write_piece(unit, folder, store_folder, plan_file, vocab_file, settings):
    """Writes a range of records to a TFRecord file `<folder>/<name>.tfrecord`.

    Args:
        unit: (name, first record, record after the last).
        folder: where to write.
        store_folder, plan_file, vocab_file, settings: as for `InstanceBlocks`.

    Returns:
        dict of counts over the records: `instances`, `tokens` (without padding), `predictions`, `random` (labels 1),
        `full` (rows without padding).
    """
    name, begin, end = unit
    blocks = InstanceBlocks(store_folder, plan_file, Vocabulary.from_file(vocab_file), settings)
    counts = dict.fromkeys(("instances", "tokens", "predictions", "random", "full"), 0)
    path = os.path.join(folder, f"{name}.tfrecord")
    with files.atomic(path) as temporary, tf.io.TFRecordWriter(temporary) as writer:
        for number in range(begin // BLOCK_ROWS, -(-end // BLOCK_ROWS)):
            first = number * BLOCK_ROWS
            wanted = slice(max(begin - first, 0), end - first)
            arrays = {name: values[wanted] for name, values in blocks.arrays(number).items()}
            for record in records.encode_pretraining(arrays):
                writer.write(record)
            counts["instances"] += len(arrays["input_mask"])
            counts["tokens"] += int(arrays["input_mask"].sum())
            counts["predictions"] += int(arrays["masked_lm_weights"].sum())
            counts["random"] += int(arrays["next_sentence_labels"].sum())
            counts["full"] += int(arrays["input_mask"][:, -1].sum())
    return counts


def join_pieces(unit, folder):
    """Joins pieces into an output file, which appears whole; TFRecord files joined are a TFRecord file.

    Args:
        unit: (name, path of the output, list of names of pieces, number of records).
        folder: of the pieces.

    Returns:
        dict: `records`, `bytes`, `sha256`.
    """
    _, path, pieces, number_of_records = unit
    digest, size = hashlib.sha256(), 0
    with files.atomic(path) as temporary, files.open_file(temporary, "wb") as output:
        for piece in pieces:
            with open(os.path.join(folder, f"{piece}.tfrecord"), "rb") as source:
                while chunk := source.read(_COPY_BYTES):
                    digest.update(chunk)
                    output.write(chunk)
                    size += len(chunk)
    return {"records": number_of_records, "bytes": size, "sha256": digest.hexdigest()}

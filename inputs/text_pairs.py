"""Texts and pairs of texts to token columns: `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`."""

import functools
import itertools
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from foundation import parallel
from inputs.features import runs, splits_of

if TYPE_CHECKING:
    from tokenization.tokenizer import Tokenizer

# Characters of text in one task of a worker process. Tokenizing takes a second for some twenty million and a process
# takes seconds to start, so workers pay only beyond the first few tasks (`parallel.map_in_order`).
_CHARACTERS = 1 << 24

_Texts = list[str]
_Columns = tuple[dict[str, np.ndarray], np.ndarray]  # token columns int32 [total]; row_splits int64 [rows + 1]


def pair_features(tokenizer: "Tokenizer", first: _Texts, second: _Texts | None, max_seq_length: int) -> _Columns:
    """Token columns of texts or pairs, cut as the release cuts them (its `convert_single_example`).

    A pair that is too long loses the last token of its longer side, of the second where both are equally long, until
    it fits. A second text without tokens counts as none.

    Args:
        tokenizer: makes the word pieces.
        first: the first text of each row.
        second: the second text of each row; or None.
        max_seq_length: at least 3: the maximum number of tokens of a row.

    Returns:
        `input_ids` and `segment_ids`, int32 [total]; row_splits int64 [rows + 1].
    """
    first_ids, first_splits = tokenizer.encode_lines(first)
    if second is None:
        second_ids, second_splits = np.zeros(0, np.int32), np.zeros(len(first) + 1, np.int64)
    else:
        second_ids, second_splits = tokenizer.encode_lines(second)
    first_lengths, second_lengths = truncated(np.diff(first_splits), np.diff(second_splits), max_seq_length)

    row_lengths = first_lengths + 2 + np.where(second_lengths > 0, second_lengths + 1, 0)
    row_splits = splits_of(row_lengths)
    starts = row_splits[:-1]
    # Positions that no text fills are separators, except the first of each row.
    input_ids = np.full(row_splits[-1], tokenizer.vocabulary.sep_id, np.int32)
    input_ids[starts] = tokenizer.vocabulary.cls_id
    input_ids[runs(starts + 1, first_lengths)] = first_ids[runs(first_splits[:-1], first_lengths)]
    second_starts = starts + first_lengths + 2
    input_ids[runs(second_starts, second_lengths)] = second_ids[runs(second_splits[:-1], second_lengths)]
    segment_ids = np.zeros_like(input_ids)
    segment_ids[runs(second_starts, row_splits[1:] - second_starts)] = 1
    return {"input_ids": input_ids, "segment_ids": segment_ids}, row_splits


def pair_features_of_many(tokenizer: "Tokenizer", first: _Texts, second: _Texts | None, max_seq_length: int,
                          num_workers: int = 1, characters: int = _CHARACTERS) -> _Columns:
    """`pair_features`, by worker processes where there is enough text for them to pay.

    Args:
        tokenizer, first, second, max_seq_length: as for `pair_features`.
        num_workers: at least 1; the result is the same for any.
        characters: text of one task of a worker.

    Returns:
        as `pair_features`.
    """
    chunks = _chunks(first, second, characters)
    if num_workers == 1 or len(chunks) == 1:
        parts = [pair_features(tokenizer, *chunk, max_seq_length) for chunk in chunks]
    else:
        function = functools.partial(_pair_features, pickle.dumps(tokenizer), max_seq_length=max_seq_length)
        parts = list(parallel.map_in_order(function, chunks, num_workers))
    tokens = {name: np.concatenate([part[name] for part, _ in parts]) for name in ("input_ids", "segment_ids")}
    lengths = np.concatenate([np.diff(row_splits) for _, row_splits in parts])
    return tokens, splits_of(lengths)


def truncated(first_lengths: np.ndarray, second_lengths: np.ndarray,
              max_seq_length: int) -> tuple[np.ndarray, np.ndarray]:
    """How many tokens of each text are kept (the release's `_truncate_seq_pair`, in closed form).

    Args:
        first_lengths, second_lengths: int [rows]; 0 in the second where a row is not a pair.
        max_seq_length: the room, including `[CLS]` and `[SEP]`.

    Returns:
        first and second, int [rows] each.
    """
    room = max_seq_length - 2 - (second_lengths > 0)
    # Each side gets half, the first the larger half, and whatever the other side leaves unused.
    first = np.minimum(first_lengths, np.maximum(room - second_lengths, (room + 1) // 2))
    second = np.minimum(second_lengths, np.maximum(room - first_lengths, room // 2))
    return first, second


def _chunks(first: _Texts, second: _Texts | None, characters: int) -> list[tuple[_Texts, _Texts | None]]:
    """Splits rows into chunks of about this many characters; at least one, which may be empty."""
    sizes = np.fromiter(map(len, first), np.int64, len(first))
    if second is not None:
        sizes += np.fromiter(map(len, second), np.int64, len(second))
    numbers = np.cumsum(sizes) // characters
    bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(first)]
    return [(first[begin:end], None if second is None else second[begin:end])
            for begin, end in itertools.pairwise(bounds)]


def _pair_features(pickled_tokenizer: bytes, texts: tuple[_Texts, _Texts | None], max_seq_length: int) -> _Columns:
    return pair_features(_unpickled(pickled_tokenizer), *texts, max_seq_length)


@functools.lru_cache(maxsize=1)
def _unpickled(data: bytes) -> Any:
    """A worker's tokenizer, built once and not for each chunk."""
    return pickle.loads(data)

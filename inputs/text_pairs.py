"""Sentences and pairs of them to what the model reads: `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`."""

import functools
import itertools
import pickle

import numpy as np

from foundation import parallel
from inputs.features import runs, splits_of

# Characters of text in one piece of work. Tokenising runs at some twenty million a second and a worker process takes
# seconds to start, so only what is beyond the first few pieces is worth one (`parallel.map_in_order`).
_CHARACTERS = 1 << 24


def pair_features(tokenizer, first, second, max_seq_length):
    """Token columns of sentences or pairs, cut as the release cuts them (its `convert_single_example`).

    A pair that is too long loses the last token of its longer side, of the second where both are equally long, until
    it fits. A second sentence without tokens is as none.

    Args:
        tokenizer: tokenization.tokenizer.Tokenizer.
        first: list of str.
        second: list of str, as many; or None.
        max_seq_length: int, at least 3: the most tokens of a row.

    Returns:
        dict of `input_ids` and `segment_ids`, int32 [total]; row_splits int64 [rows + 1].
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
    # What no sentence fills is a separator, but for the first of each row.
    input_ids = np.full(row_splits[-1], tokenizer.vocabulary.sep_id, np.int32)
    input_ids[starts] = tokenizer.vocabulary.cls_id
    input_ids[runs(starts + 1, first_lengths)] = first_ids[runs(first_splits[:-1], first_lengths)]
    second_starts = starts + first_lengths + 2
    input_ids[runs(second_starts, second_lengths)] = second_ids[runs(second_splits[:-1], second_lengths)]
    segment_ids = np.zeros_like(input_ids)
    segment_ids[runs(second_starts, row_splits[1:] - second_starts)] = 1
    return {"input_ids": input_ids, "segment_ids": segment_ids}, row_splits


def pair_features_of_many(tokenizer, first, second, max_seq_length, num_workers=1, characters=_CHARACTERS):
    """`pair_features`, by worker processes where there is so much text that they pay.

    Args:
        tokenizer, first, second, max_seq_length: as for `pair_features`.
        num_workers: int, at least 1; the result is the same for any.
        characters: int, text of one piece of work.

    Returns:
        As `pair_features`.
    """
    work = _pieces_of_work(first, second, characters)
    if num_workers == 1 or len(work) == 1:
        parts = [pair_features(tokenizer, *piece, max_seq_length) for piece in work]
    else:
        function = functools.partial(_pair_features, pickle.dumps(tokenizer), max_seq_length=max_seq_length)
        parts = list(parallel.map_in_order(function, work, num_workers))
    tokens = {name: np.concatenate([part[name] for part, _ in parts]) for name in ("input_ids", "segment_ids")}
    lengths = np.concatenate([np.diff(row_splits) for _, row_splits in parts])
    return tokens, splits_of(lengths)


def truncated(first_lengths, second_lengths, max_seq_length):
    """How many tokens of each sentence stay (the release's `_truncate_seq_pair`, in closed form).

    Args:
        first_lengths, second_lengths: int [rows]; 0 in the second where a row is no pair.
        max_seq_length: int, the room with `[CLS]` and `[SEP]`.

    Returns:
        Two int [rows].
    """
    room = max_seq_length - 2 - (second_lengths > 0)
    # Each side has its half, the first the larger one, and what the other side leaves of its own.
    first = np.minimum(first_lengths, np.maximum(room - second_lengths, (room + 1) // 2))
    second = np.minimum(second_lengths, np.maximum(room - first_lengths, room // 2))
    return first, second


def _pieces_of_work(first, second, characters):
    """Cuts rows into lists of about so many characters; at least one, that may be empty."""
    sizes = np.fromiter(map(len, first), np.int64, len(first))
    if second is not None:
        sizes += np.fromiter(map(len, second), np.int64, len(second))
    pieces = np.cumsum(sizes) // characters
    bounds = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(first)]
    return [(first[begin:end], None if second is None else second[begin:end])
            for begin, end in itertools.pairwise(bounds)]


def _pair_features(pickled_tokenizer, texts, max_seq_length):
    return pair_features(_unpickled(pickled_tokenizer), *texts, max_seq_length)


@functools.lru_cache(maxsize=1)
def _unpickled(data):
    """A worker's tokenizer, built once and not once a piece."""
    return pickle.loads(data)

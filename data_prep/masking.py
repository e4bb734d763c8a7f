"""The masked-language-model task: which tokens are to be predicted, and what replaces them."""

import numpy as np


def mask_tokens(
    tokens: np.ndarray,
    lengths: np.ndarray,
    candidates: np.ndarray,
    rng: np.random.Generator,
    *,
    rate: float,
    limit: int,
    mix: tuple[float, ...],
    mask_id: int,
    replacement_ids: np.ndarray,
    continuation: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Chooses and replaces prediction targets in a batch of rows (paper, section 3.1, Task #1, and appendix A.1).

    A row of `n` tokens gets `min(limit, max(1, round(rate * n)))` predictions, fewer only where it has fewer
    candidates. As in the release, `n` includes [CLS] and [SEP], and `round` takes halves to the even number.

    Args:
        tokens: integer [rows, seq], padded.
        lengths: integer [rows], tokens of each row without padding, [CLS] and [SEP] included.
        candidates: bool [rows, seq], where a prediction may fall (not [CLS], [SEP] or padding).
        rng: numpy Generator; the same state gives the same choice.
        rate: share of the tokens to predict.
        limit: prediction slots of a row.
        mix: (mask, same, random), the shares of predictions replaced by [MASK], left as they are and replaced by a
            random token; they sum to 1. The paper uses (0.8, 0.1, 0.1), and compares more mixes in appendix C.2.
        mask_id: id of [MASK].
        replacement_ids: integer [n], the ids a random replacement is drawn from, evenly.
        continuation: bool [vocabulary], which ids are `##` pieces: the pieces of a word are chosen together, and a word
            that would exceed the number of predictions is skipped. None chooses each piece by itself.

    Returns:
        masked: like `tokens`, with the replacements.
        positions: int32 [rows, limit], ascending, unused slots 0.
        targets: int32 [rows, limit], the original tokens, unused slots 0.
        used: float32 [rows, limit], 1 where the slot is used.
    """
    quota = np.minimum(limit, np.maximum(1, np.rint(rate * lengths))).astype(np.int64)
    if continuation is None:
        chosen = _choose_pieces(candidates, quota, limit, rng)
    else:
        chosen = _choose_words(candidates, candidates & continuation[tokens], quota, rng)
    rows, columns = np.nonzero(chosen)
    slots = np.arange(len(rows)) - np.searchsorted(rows, rows)
    originals = tokens[rows, columns]

    positions = np.zeros((len(tokens), limit), np.int32)
    targets = np.zeros((len(tokens), limit), np.int32)
    used = np.zeros((len(tokens), limit), np.float32)
    positions[rows, slots] = columns
    targets[rows, slots] = originals
    used[rows, slots] = 1

    mask_share, same_share, _ = mix
    draw = rng.random(len(rows))
    random_ids = replacement_ids[rng.integers(len(replacement_ids), size=len(rows))]
    masked = tokens.copy()
    masked[rows, columns] = np.where(
        draw < mask_share, mask_id, np.where(draw < mask_share + same_share, originals, random_ids)
    )
    return masked, positions, targets, used


def _random_order(present: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Columns of each row in random order, those not present last.

    A random 64-bit number with the column in its low bits is sorted, which is much faster than an argsort.
    """
    seq = present.shape[1]
    low_bits = np.uint64((1 << max(1, (seq - 1).bit_length())) - 1)
    keys = rng.integers(0, 1 << 63, present.shape, np.uint64) & ~low_bits
    keys |= np.arange(seq, dtype=np.uint64)
    keys |= (~present).astype(np.uint64) << np.uint64(63)
    keys.sort(axis=1)
    return (keys & low_bits).astype(np.int64)


def _choose_pieces(candidates: np.ndarray, quota: np.ndarray, limit: int, rng: np.random.Generator) -> np.ndarray:
    """The first `quota` candidates of each row's random order, as bool [rows, seq]."""
    wanted = np.minimum(quota, np.count_nonzero(candidates, axis=1))
    order = _random_order(candidates, rng)[:, :limit]
    chosen = np.zeros(candidates.shape, bool)
    rows, slots = np.nonzero(np.arange(order.shape[1]) < wanted[:, None])
    chosen[rows, order[rows, slots]] = True
    return chosen


def _choose_words(candidates: np.ndarray, continues: np.ndarray, quota: np.ndarray, rng: np.random.Generator
                  ) -> np.ndarray:
    """Whole words that fit the quota, in each row's random order, as bool [rows, seq].

    A word is a candidate piece and the `##` pieces right after it. A `##` piece at the front of a text, where
    truncation cut its word, is a word by itself.
    """
    rows, seq = candidates.shape
    columns = np.arange(seq)
    follows = continues.copy()
    follows[:, 1:] &= candidates[:, :-1]
    follows[:, 0] = False
    starts = candidates & ~follows
    first_of_word = np.maximum.accumulate(np.where(starts, columns, 0), axis=1)
    row_base = np.arange(rows)[:, None] * seq
    sizes = np.bincount((row_base + first_of_word)[candidates], minlength=rows * seq).reshape(rows, seq)
    order = _random_order(starts, rng)
    sizes_in_order = np.take_along_axis(sizes, order, axis=1)
    sizes_in_order[np.arange(seq) >= np.count_nonzero(starts, axis=1)[:, None]] = seq + 1  # no word: never fits
    fits = np.zeros((rows, seq), bool)
    room = quota.copy()
    for rank in range(seq):
        np.less_equal(sizes_in_order[:, rank], room, out=fits[:, rank])
        room -= sizes_in_order[:, rank] * fits[:, rank]
        if not room.any():
            break
    word_chosen = np.zeros((rows, seq), bool)
    np.put_along_axis(word_chosen, order, fits, axis=1)
    return candidates & np.take_along_axis(word_chosen, first_of_word, axis=1)

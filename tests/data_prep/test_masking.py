"""Masked tokens: how many, which ones, and what they become."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from scipy import stats

from data_prep.masking import mask_tokens

MASK = 4
REPLACEMENTS = np.arange(10, 1000)
# A test that a true share fails once in a million times; the random numbers are fixed anyway.
UNLIKELY = 1e-6


def some_rows(rows, seq, rng, shortest=3):
    """Rows [CLS] A [SEP] B [SEP] of random lengths: tokens, lengths, candidates."""
    lengths = rng.integers(shortest, seq, rows, endpoint=True)
    tokens = np.where(np.arange(seq) < lengths[:, None], rng.integers(10, 1000, (rows, seq)), 0)
    candidates = np.arange(seq) < lengths[:, None] - 1
    candidates[:, 0] = False
    candidates[np.arange(rows), lengths // 2] = False
    return tokens.astype(np.int32), lengths, candidates


def mask(tokens, lengths, candidates, seed=1, **changes):
    options = {
        "rate": 0.15,
        "limit": 20,
        "mix": (0.8, 0.1, 0.1),
        "mask_id": MASK,
        "replacement_ids": REPLACEMENTS,
        "continuation": None,
    }
    return mask_tokens(tokens, lengths, candidates, np.random.default_rng(seed), **{**options, **changes})


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(
    st.integers(0, 1 << 30), st.sampled_from([5, 33, 128]), st.integers(1, 25), st.floats(0, 1), st.booleans()
)
def test_targets_restore_the_tokens(seed, seq, limit, rate, whole_words):
    rng = np.random.default_rng(seed)
    tokens, lengths, candidates = some_rows(17, seq, rng)
    continuation = rng.random(1000) < 0.5 if whole_words else None
    limit = min(limit, seq)
    masked, positions, targets, slots_used = mask(
        tokens, lengths, candidates, seed, limit=limit, rate=rate, continuation=continuation
    )
    assert positions.shape == targets.shape == slots_used.shape == (17, limit)
    used = slots_used == 1
    counts = used.sum(1)
    np.testing.assert_array_equal(used, np.arange(limit) < counts[:, None])
    assert not positions[~used].any()
    assert not targets[~used].any()
    restored = masked.copy()
    for row in range(17):
        where = positions[row][used[row]]
        assert (np.diff(where) > 0).all()
        assert candidates[row][where].all()
        restored[row, where] = targets[row][used[row]]
    np.testing.assert_array_equal(restored, tokens)


def expected_count(length, candidates, rate, limit):
    return min(limit, max(1, round(rate * length)), candidates)


def test_number_of_predictions_is_the_releases():
    tokens, lengths, candidates = some_rows(500, 128, np.random.default_rng(0))
    slots_used = mask(tokens, lengths, candidates)[3]
    expected = [expected_count(n, c, 0.15, 20) for n, c in zip(lengths.tolist(), candidates.sum(1).tolist())]
    assert slots_used.sum(1).tolist() == expected


@pytest.mark.parametrize(
    "case", ["sample_128_d5", "speech_128_d2", "speech_512_d1_cased", "speech_64_d1_short50_seed7"]
)
def test_number_of_predictions_on_the_recorded_rows(golden, case):
    recorded = np.load(golden / "pretraining_data" / f"{case}.npz")
    tokens, lengths = recorded["input_ids"], recorded["input_mask"].sum(1)
    candidates = (recorded["input_mask"] > 0) & (tokens != 101) & (tokens != 102)
    limit = recorded["masked_lm_ids"].shape[1]
    slots_used = mask(tokens, lengths, candidates, limit=limit)[3]
    np.testing.assert_array_equal(slots_used, recorded["masked_lm_weights"])


def test_halves_round_to_the_even_number():
    lengths = np.array([10, 30, 50])  # at a rate of 0.25: 2.5, 7.5, 12.5
    candidates = np.arange(60) < lengths[:, None]
    assert mask(np.full((3, 60), 50), lengths, candidates, rate=0.25)[3].sum(1).tolist() == [2, 8, 12]


def test_every_candidate_is_as_likely_as_another():
    rows, seq = 4000, 40
    candidates = np.zeros((rows, seq), bool)
    candidates[:, 3:33] = True
    _, positions, _, slots_used = mask(np.full((rows, seq), 50), np.full(rows, seq), candidates)
    assert (slots_used.sum(1) == 6).all()
    counts = np.bincount(positions[slots_used > 0], minlength=seq)
    assert not counts[:3].any()
    assert not counts[33:].any()
    assert stats.chisquare(counts[3:33]).pvalue > UNLIKELY


@pytest.mark.parametrize("mix", [(0.8, 0.1, 0.1), (0.6, 0.0, 0.4), (1.0, 0.0, 0.0)])
def test_mix_of_mask_same_and_random(mix):
    tokens, lengths, candidates = some_rows(3000, 128, np.random.default_rng(0), shortest=100)
    masked, positions, targets, slots_used = mask(tokens, lengths, candidates, mix=mix)
    used = slots_used > 0
    became = np.take_along_axis(masked, positions, axis=1)[used]
    total = int(used.sum())
    to_mask, same = int((became == MASK).sum()), int((became == targets[used]).sum())
    by_chance = mix[2] / len(REPLACEMENTS)  # a random token may be the original one
    for count, share in ((to_mask, mix[0]), (same, mix[1] + by_chance), (total - to_mask - same, mix[2] - by_chance)):
        assert stats.binomtest(count, total, share).pvalue > UNLIKELY


def test_random_tokens_come_evenly_from_the_allowed_ones():
    tokens, lengths, candidates = some_rows(1000, 128, np.random.default_rng(0), shortest=100)
    allowed = np.array([20, 30, 31, 900])
    masked, positions, _, slots_used = mask(tokens, lengths, candidates, mix=(0, 0, 1), replacement_ids=allowed)
    became, counts = np.unique(np.take_along_axis(masked, positions, axis=1)[slots_used > 0], return_counts=True)
    assert became.tolist() == allowed.tolist()
    assert stats.chisquare(counts).pvalue > UNLIKELY


def words_of(tokens, candidates, continuation):
    """Words of one row as lists of positions, read from left to right."""
    words = []
    for position, (token, candidate) in enumerate(zip(tokens, candidates)):
        if candidate and continuation[token] and words and words[-1][-1] == position - 1:
            words[-1].append(position)
        elif candidate:
            words.append([position])
    return words


def test_whole_words_are_masked_together_and_fill_the_quota():
    rng = np.random.default_rng(3)
    tokens, lengths, candidates = some_rows(300, 64, rng)
    continuation = rng.random(1000) < 0.6
    _, positions, _, slots_used = mask(tokens, lengths, candidates, continuation=continuation)
    for row in range(len(tokens)):
        chosen = set(positions[row][slots_used[row] > 0].tolist())
        quota = max(1, round(0.15 * lengths[row]))
        assert len(chosen) <= quota
        for word in words_of(tokens[row], candidates[row], continuation):
            inside = chosen.intersection(word)
            assert len(inside) in (0, len(word))
            if not inside:
                assert len(word) > quota - len(chosen)  # it did not fit, or the quota was used up


def test_a_word_longer_than_the_quota_is_left_alone():
    tokens = np.array([[1, 50, 60, 60, 60, 2]])
    candidates = np.array([[False, True, True, True, True, False]])
    continuation = np.arange(1000) == 60
    assert mask(tokens, np.array([6]), candidates, continuation=continuation)[3].sum() == 0


def test_a_piece_cut_off_from_its_word_is_a_word():
    tokens = np.array([[1, 60, 60, 2, 60, 50, 2]])  # [CLS] ##x ##x [SEP] ##x y [SEP]
    candidates = np.array([[False, True, True, False, True, True, False]])
    options = {"rate": 0.3, "mix": (1, 0, 0), "continuation": np.arange(1000) == 60}
    chosen = set()
    for seed in range(60):
        masked = mask(tokens, np.array([7]), candidates, seed, **options)[0]
        chosen.add(tuple(np.flatnonzero(masked == MASK).tolist()))
    assert chosen == {(1, 2), (4, 5)}


def test_every_word_is_as_likely_as_another():
    rows = 4000
    tokens = np.tile([1, *[50, 60] * 10, 2], (rows, 1))
    candidates = (tokens == 50) | (tokens == 60)
    _, positions, _, slots_used = mask(
        tokens, np.full(rows, 22), candidates, rate=0.1, continuation=np.arange(1000) == 60
    )
    counts = np.bincount(positions[slots_used > 0], minlength=22)[1:21:2]
    assert counts.sum() == rows
    assert stats.chisquare(counts).pvalue > UNLIKELY

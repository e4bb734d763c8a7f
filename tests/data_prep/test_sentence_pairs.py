"""Packing: what the segments of an instance are, against the release's rules, its recorded outputs and chance."""

import itertools
import json
import pathlib
import random
import types

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from scipy import stats

from data_prep import sentence_pairs
from data_prep.sentence_pairs import plan_documents, truncate
from data_prep.settings import InstanceSettings
from foundation.errors import BertError

UNLIKELY = 1e-6
# Pieces of each sentence of golden/pretraining_data/input_speech12.txt, by document, with the released vocabularies.
_SPEECHES = json.loads(pathlib.Path(__file__).with_name("speech12_sentence_lengths.json").read_text())


def store_of(documents):
    """A store of documents given as lists of sentence lengths; no tokens, as packing needs none."""
    lengths = [length for document in documents for length in document]
    return types.SimpleNamespace(
        sentence_starts=np.cumsum([0, *lengths]),
        document_starts=np.cumsum([0, *map(len, documents)]),
        num_documents=len(documents),
        drop_pages=lambda: None,
    )


def some_documents(number, seed=0, sentences=(1, 40), tokens=(1, 50)):
    rng = random.Random(seed)
    return [[rng.randint(*tokens) for _ in range(rng.randint(*sentences))] for _ in range(number)]


def plan(store, seed=1, **settings):
    rng = np.random.default_rng(seed)
    settings = InstanceSettings(max_predictions_per_seq=1, **settings)
    return plan_documents(store, 0, store.num_documents, settings, rng)


def documents_at(store, places):
    starts = store.sentence_starts[store.document_starts]
    return np.searchsorted(starts, places, side="right") - 1


def reference_pack(document, documents, longest, short_seq_prob, rng):
    """The release's rules one sentence at a time, as (A, B) lists of (document, position); negatives from others."""
    target = rng.randint(2, longest) if rng.random() < short_seq_prob else longest
    own = [[(document, sentence, token) for token in range(n)] for sentence, n in enumerate(documents[document])]
    chunk, instances, index = [], [], 0
    while index < len(own):
        chunk.append(own[index])
        index += 1
        if index < len(own) and sum(map(len, chunk)) < target:
            continue
        a_end = rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
        a, b = (list(itertools.chain.from_iterable(part)) for part in (chunk[:a_end], chunk[a_end:]))
        is_random = len(chunk) == 1 or rng.random() < 0.5
        if is_random:
            other = rng.choice([number for number in range(len(documents)) if number != document])
            b = []
            for sentence in range(rng.randrange(len(documents[other])), len(documents[other])):
                b += [(other, sentence, token) for token in range(documents[other][sentence])]
                if len(b) >= target - len(a):
                    break
            index -= len(chunk) - a_end
        while len(a) + len(b) > longest:
            longer = a if len(a) > len(b) else b
            longer.pop(0 if rng.random() < 0.5 else -1)
        instances.append((a, b, is_random))
        chunk = []
    return instances


@pytest.mark.parametrize("length, short_seq_prob", [(128, 0.1), (32, 0.5), (128, 1.0)])
def test_packing_has_the_statistics_of_the_releases_rules(length, short_seq_prob):
    documents = some_documents(400, sentences=(1, 20))
    store = store_of(documents)
    ours = plan(store, max_seq_length=length, short_seq_prob=short_seq_prob)
    rng = random.Random(5)
    theirs = [
        instance
        for document in range(len(documents))
        for instance in reference_pack(document, documents, length - 3, short_seq_prob, rng)
    ]
    a, b = ours["a_length"].astype(int), ours["b_length"].astype(int)
    their_a, their_b = (np.array([len(instance[part]) for instance in theirs]) for part in (0, 1))
    their_random = np.array([instance[2] for instance in theirs])
    assert abs(len(ours) - len(theirs)) < 6 * np.sqrt(len(theirs))
    table = [[ours["is_random"].sum(), (~ours["is_random"]).sum()], [their_random.sum(), (~their_random).sum()]]
    assert stats.chi2_contingency(table).pvalue > UNLIKELY
    for mine, other in ((a, their_a), (b, their_b), (a + b, their_a + their_b)):
        assert stats.ks_2samp(mine, other).pvalue > UNLIKELY
    for drawn in (False, True):
        assert stats.ks_2samp(b[ours["is_random"] == drawn], their_b[their_random == drawn]).pvalue > UNLIKELY


@pytest.mark.parametrize(
    "case, text, length, dupes, short_seq_prob",
    [
        ("speech_128_d2", "uncased", 128, 2, 0.1),
        ("speech_128_d2_wwm", "uncased", 128, 2, 0.1),
        ("speech_512_d1_cased", "cased", 512, 1, 0.1),
        ("speech_64_d1_short50_seed7", "uncased", 64, 1, 0.5),
    ],
)
def test_recorded_packing_is_an_ordinary_one(golden, case, text, length, dupes, short_seq_prob):
    """Each statistic of the recorded run lies among those of 300 of ours, on the same sentences."""
    recorded = np.load(golden / "pretraining_data" / f"{case}.npz")
    lengths = recorded["input_mask"].sum(1)
    b = recorded["segment_ids"].sum(1) - 1

    def statistics(total, a, b, is_random):
        return len(total), 1 - total.mean() / length, (total == length).mean(), is_random.mean(), a.mean(), b.mean()

    theirs = statistics(lengths, lengths - b - 3, b, recorded["next_sentence_labels"])
    store = store_of(_SPEECHES[text])
    ours = []
    for seed in range(300):
        rows = np.concatenate(
            [
                plan(store, seed=1000 * seed + dupe, max_seq_length=length, short_seq_prob=short_seq_prob)
                for dupe in range(dupes)
            ]
        )
        a, b = rows["a_length"].astype(int), rows["b_length"].astype(int)
        ours.append(statistics(a + b + 3, a, b, rows["is_random"]))
    above = (np.array(ours) <= np.array(theirs)).mean(0)
    below = (np.array(ours) >= np.array(theirs)).mean(0)
    assert (np.minimum(above, below) > 0.005).all(), (above, below)


def test_negative_never_comes_from_its_own_document():
    for documents in (some_documents(2), some_documents(50)):
        store = store_of(documents)
        rows = plan(store, dupe_factor=1)
        own, other = documents_at(store, rows["a_start"]), documents_at(store, rows["b_start"])
        np.testing.assert_array_equal(own != other, rows["is_random"])


def test_segments_stay_inside_their_documents():
    store = store_of(some_documents(50))
    rows = plan(store)
    for start, length in (("a_start", "a_length"), ("b_start", "b_length")):
        last = rows[start] + rows[length] - 1
        np.testing.assert_array_equal(documents_at(store, rows[start]), documents_at(store, last))


def test_true_pairs_follow_each_other():
    store = store_of(some_documents(50, tokens=(1, 3)))
    rows = plan(store, max_seq_length=512, short_seq_prob=0)  # long enough that nothing is cut off
    true = rows[~rows["is_random"]]
    assert len(true) > 10
    np.testing.assert_array_equal(true["a_start"] + true["a_length"], true["b_start"])


def test_no_sentence_is_lost():
    """A and true B together are the corpus, once, where nothing is cut off."""
    store = store_of(some_documents(30, tokens=(1, 4)))
    seen = np.zeros(store.sentence_starts[-1], int)
    for row in plan(store, max_seq_length=2000, short_seq_prob=0):
        seen[row["a_start"] : row["a_start"] + row["a_length"]] += 1
        if not row["is_random"]:
            seen[row["b_start"] : row["b_start"] + row["b_length"]] += 1
    assert (seen == 1).all()


def test_lengths_fit_and_no_segment_is_empty():
    for length in (5, 6, 17, 128):
        rows = plan(store_of(some_documents(30)), max_seq_length=length, short_seq_prob=0.5)
        assert rows["a_length"].min() >= 1
        assert rows["b_length"].min() >= 1
        assert (rows["a_length"].astype(int) + rows["b_length"]).max() == length - 3


def test_half_of_the_chunks_of_several_sentences_are_random():
    # Two sentences fill a chunk; each time it is random or not, and then one of the two is used up or both are.
    rows = plan(store_of([[20] * 5000] * 4), max_seq_length=43, short_seq_prob=0)
    inner = rows[: -1 if rows["is_random"][-1] else None]
    assert stats.binomtest(int(inner["is_random"].sum()), len(inner), 0.5).pvalue > UNLIKELY


def test_single_sentences_are_paired_with_random_ones():
    assert plan(store_of([[9]] * 20))["is_random"].all()


def test_negatives_come_from_every_other_document_alike():
    store = store_of([[4]] * 8)
    rows = np.concatenate([plan(store, seed) for seed in range(300)])
    own, other = documents_at(store, rows["a_start"]), documents_at(store, rows["b_start"])
    counts = np.zeros((8, 8))
    np.add.at(counts, (own, other), 1)
    assert stats.chisquare(counts[~np.eye(8, dtype=bool)]).pvalue > UNLIKELY


@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 80))
def test_truncation_takes_from_the_longer_one_token_at_a_time(a, b, limit):
    expected_a, expected_b = a, b
    while expected_a + expected_b > limit:
        if expected_a > expected_b:
            expected_a -= 1
        else:
            expected_b -= 1
    a_front, a_kept, b_front, b_kept = truncate(np.array([a]), np.array([b]), limit, np.random.default_rng(0))
    assert (a_kept[0], b_kept[0]) == (expected_a, expected_b)
    assert 0 <= a_front[0] <= a - expected_a
    assert 0 <= b_front[0] <= b - expected_b


def test_truncation_takes_front_and_back_evenly():
    rows = 4000
    a_front, _, b_front, _ = truncate(np.full(rows, 30), np.full(rows, 30), 45, np.random.default_rng(0))
    for front, cut in ((a_front, 7), (b_front, 8)):
        expected = rows * stats.binom.pmf(np.arange(cut + 1), cut, 0.5)
        assert stats.chisquare(np.bincount(front, minlength=cut + 1), expected).pvalue > UNLIKELY


def test_without_next_sentence_there_is_one_segment():
    store = store_of(some_documents(1, sentences=(200, 200)))
    rows = plan(store, max_seq_length=64, next_sentence=False, short_seq_prob=0)
    assert not rows["b_length"].any()
    assert not rows["is_random"].any()
    assert rows["a_length"].max() == 62
    assert (np.diff(rows["a_start"]) > 0).all()


def test_single_document_is_named_as_the_reason():
    with pytest.raises(BertError, match=r"single document.*--next_sentence=false"):
        plan(store_of([[5, 5, 5]]))


@pytest.mark.parametrize("block_tokens", [1, 100, 10**9])
def test_blocks_cover_all_documents(block_tokens):
    store = store_of(some_documents(40))
    blocks = sentence_pairs.plan_blocks(store, block_tokens)
    assert [document for first, after in blocks for document in range(first, after)] == list(range(40))
    starts = store.sentence_starts[store.document_starts]
    for first, after in blocks:
        assert after == first + 1 or starts[after] - starts[first] <= block_tokens

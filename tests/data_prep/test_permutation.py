"""The shuffle without memory."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
from scipy import stats

from data_prep.permutation import Permutation


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(st.integers(1, 3000), st.integers(0, 1 << 64))
def test_each_item_goes_to_a_place_of_its_own(size, seed):
    places = Permutation(size, [seed])(np.arange(size))
    np.testing.assert_array_equal(np.sort(places), np.arange(size))


def test_places_do_not_depend_on_what_is_asked_together():
    permutation = Permutation(1000, [1])
    whole = permutation(np.arange(1000))
    np.testing.assert_array_equal([permutation(np.array([item]))[0] for item in range(0, 1000, 100)], whole[::100])


def test_huge_sizes_need_no_memory():
    places = Permutation(1 << 40, [1])(np.arange(10_000))
    assert len(np.unique(places)) == 10_000
    assert stats.kstest(places / (1 << 40), "uniform").pvalue > 1e-6


def test_pairs_of_places_are_even_over_keys():
    pairs = np.array([Permutation(6, [key])(np.array([0, 1])) for key in range(6000)])
    table = np.zeros((6, 6))
    np.add.at(table, (pairs[:, 0], pairs[:, 1]), 1)
    assert not table.diagonal().any()
    assert stats.chisquare(table[~np.eye(6, dtype=bool)]).pvalue > 1e-6


def test_neighbours_do_not_stay_neighbours():
    places = Permutation(100_000, [5])(np.arange(100_000))
    assert abs(stats.pearsonr(places[:-1], places[1:]).statistic) < 5 / np.sqrt(100_000)

"""Results in order, errors passed on."""

import pytest

from foundation.parallel import default_num_workers, map_in_order


def test_results_come_in_the_order_of_the_items():
    assert list(map_in_order(abs, range(-20, 0), 2)) == list(range(20, 0, -1))


def test_error_in_the_first_items_is_passed_on():
    results = map_in_order(abs, [-1, "x"], 2)
    assert next(results) == 1
    with pytest.raises(TypeError):
        next(results)


def test_there_is_at_least_one_core():
    assert default_num_workers() >= 1

"""Results in order, errors passed on, workers that stay off the GPU."""

import os
import signal

import pytest

from foundation.errors import BertError
from foundation.parallel import default_num_workers, map_in_order


def end_at_ten(number):
    if number == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_results_come_in_the_order_of_the_items():
    assert list(map_in_order(abs, range(-20, 0), 2)) == list(range(20, 0, -1))


def test_error_in_the_first_items_is_passed_on():
    results = map_in_order(abs, [-1, "x"], 2)
    assert next(results) == 1
    with pytest.raises(TypeError):
        next(results)


def test_a_killed_worker_is_reported():
    with pytest.raises(BertError, match="A worker process was killed"):
        list(map_in_order(end_at_ten, range(12), 2))


def test_workers_see_no_gpu():
    assert list(map_in_order(os.getenv, ["CUDA_VISIBLE_DEVICES"] * 12, 2))[8:] == ["-1"] * 4


def test_there_is_at_least_one_core():
    assert default_num_workers() >= 1

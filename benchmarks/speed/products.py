"""The bound: a large matrix product of each library."""

from collections.abc import Callable

from benchmarks.speed.job import Job

_ROWS, _INNER, _COLUMNS = 4096, 2048, 2048
_REPEATS = 4


def product(library: str, precision: str) -> Job:
    """Products of [4096, 2048] and [2048, 2048].

    Args:
        library: "tensorflow", "torch" or "numpy".
        precision: "float32" or "bfloat16".
    """
    multiply = {"tensorflow": _tensorflow, "torch": _torch, "numpy": _numpy}[library](precision)
    return Job.of([multiply] * _REPEATS, _REPEATS * 2 * _ROWS * _INNER * _COLUMNS, warmups=1)


def _tensorflow(precision: str) -> Callable[[], object]:
    import tensorflow as tf

    left, right = (tf.cast(tf.random.normal(shape), precision) for shape in ((_ROWS, _INNER), (_INNER, _COLUMNS)))
    multiply = tf.function(lambda: tf.matmul(left, right)[0, 0])
    return lambda: multiply().numpy()


def _torch(precision: str) -> Callable[[], object]:
    import torch

    left, right = (torch.randn(shape, dtype=getattr(torch, precision))
                   for shape in ((_ROWS, _INNER), (_INNER, _COLUMNS)))
    return lambda: float((left @ right)[0, 0])


def _numpy(precision: str) -> Callable[[], object]:
    import numpy as np

    if precision != "float32":
        raise RuntimeError("NumPy has no bfloat16 products")
    draw = np.random.default_rng(0)
    left, right = (draw.standard_normal(shape, np.float32) for shape in ((_ROWS, _INNER), (_INNER, _COLUMNS)))
    return lambda: (left @ right)[0, 0]

"""What is printed."""

import statistics
from collections.abc import Mapping

from benchmarks.speed.cells import OURS
from benchmarks.speed.job import Cost
from benchmarks.speed.turns import Result

_HEAD = (f"{'work':12} {'engine':12} {'configuration':30} {'per CPU-s':>10} {'per second':>10} {'of bound':>8} "
         f"{'ours faster':>11} {'in seconds':>10} {'kernel':>6} {'faults':>8}")


def head(title: str, unit: str) -> None:
    """The first lines of a part."""
    print(f"\n{title}: {unit}\n{_HEAD}", flush=True)


def cell(work: str, result: Result, operations: float | None, bound: float | None, units: float) -> float | None:
    """Prints a line for each engine.

    Args:
        work: what was done.
        result: Result.
        operations: useful ones of a unit, where they are known.
        bound: operations per CPU-second of the best matrix product.
        units: a step has; page faults are reported for a step.

    Returns:
        how many times as fast as its fastest peer this project is, in CPU-seconds; None without a peer.
    """
    best = None
    for name in result.rounds:
        cpu, wall = result.median(name, "cpu"), result.median(name, "wall")
        share = f"{operations / cpu / bound:8.0%}" if operations and bound else f"{'':8}"
        ratios = [""] * 2
        if name != OURS:
            medians = [statistics.median(result.ratios(OURS, name, field)) for field in ("cpu", "wall")]
            ratios, best = [f"{each:.2f}" for each in medians], min(best or medians[0], medians[0])
        kernel = result.median(name, "system") / cpu
        print(f"{work:12} {name:12} {result.variant(name):30} {1 / cpu:10,.1f} {1 / wall:10,.1f} {share} "
              f"{ratios[0]:>11} {ratios[1]:>10} {kernel:6.0%} {result.median(name, 'faults') * units:8,.0f}")
    _tried(work, result)
    return best


def _tried(work: str, result: Result) -> None:
    """What the trial said of the variants that were not measured further."""
    left = [(name, variant, cost) for (name, variant), cost in result.trial.items()
            if name not in result.rounds or variant != result.variant(name)]
    for name, variant, cost in left:
        found = f"{1 / cost.cpu:,.1f} per CPU-s in the trial" if isinstance(cost, Cost) else cost
        print(f"{work:12} ({name} {variant}: {found})")
    print(end="", flush=True)


def products(precision: str, result: Result) -> float:
    """Prints the products of each library; returns the best one's operations per CPU-second."""
    for name in result.rounds:
        cpu, wall = result.median(name, "cpu"), result.median(name, "wall")
        print(f"{precision:12} {name:12} {1e-9 / wall:8,.0f} GFLOP/s {1e-9 / cpu:8,.0f} GFLOP per CPU-s", flush=True)
    for (name, _), cost in result.trial.items():
        if isinstance(cost, str):
            print(f"{precision:12} {name:12} {cost}")
    return max(1 / result.median(name, "cpu") for name in result.rounds)


def summary(ratios: Mapping[str, float]) -> None:
    """The ratio over the fastest peer of each line."""
    print("\nfaster than the fastest peer, in CPU-seconds (median of paired rounds):")
    for work, ratio in ratios.items():
        print(f"{work:34} {ratio:5.2f}")

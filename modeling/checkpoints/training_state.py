"""Names in a checkpoint that are not weights: optimizer slots and the step counter."""

from collections.abc import Iterable

from foundation import run_files


def slots_in(names: Iterable[str]) -> set[str]:
    """Optimizer slots: names such as `x/adam_m` where `x` itself is a variable, whatever the optimizer calls them."""
    names = set(names)
    return {name for name in names if name.rpartition("/")[0] in names}


def training_state_in(names: Iterable[str]) -> set[str]:
    """Optimizer slots and the step counter."""
    names = set(names)
    return slots_in(names) | ({run_files.GLOBAL_STEP} & names)


def lines_of(what: str, names: Iterable[str], slots: set[str]) -> list[str]:
    """Lines of a report: names, but optimizer slots only by their number.

    Args:
        what: heads each line.
        names: the names to report.
        slots: those of them that are optimizer slots.
    """
    named = [name for name in names if name not in slots]
    lines = [f"  {what}: {', '.join(named)}"] if named else []
    return lines + ([f"  {what}: {len(slots)} optimizer slots"] if slots else [])

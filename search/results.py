"""Results of a search: the metrics of each run, mean and spread over the seeds, the best run."""

import dataclasses
import glob
import math
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence

from foundation import files
from foundation.errors import BertError
from search.folder import BEST, BEST_LINK, RESULTS
from search.run import Finished, Run
from search.settings import SEED


@dataclasses.dataclass(frozen=True)
class Results:
    """How a search ended.

    Attributes:
        table: a line for each combination of values, over its seeds; empty where no run finished.
        best: the best run, None where no run finished.
        failures: what went wrong, by the name of the run.
        total: number of runs.
        path: of results.tsv.
    """

    table: str
    best: Run | None
    failures: dict[str, str]
    total: int
    path: str

    def summary(self) -> str:
        """What is printed at the end."""
        lines = [self.table] if self.table else []
        if self.best and (finished := self.best.finished):
            lines.append(f"Best on dev: {self.best.name}, {finished.metric} {finished.score:.4f} ({self.best.folder})")
        lines.append(f"Wrote {self.path}")
        return "\n".join(lines)


def write(folder: str, runs: Sequence[Run], failures: dict[str, str]) -> Results:
    """Writes results.tsv, best.json and the link to the best run into the search's folder.

    Args:
        folder: of the search.
        runs: all of its runs.
        failures: what went wrong, by the name of the run.
    """
    finished = _finished(runs)
    best = best_run(runs)
    path = os.path.join(folder, RESULTS)
    files.write_text(path, "".join("\t".join(row) + "\n" for row in _rows(runs, finished, failures, best)))
    if best:
        ended = finished[best.name].to_json()
        files.write_json(os.path.join(folder, BEST), {
            "run": best.name, "folder": best.folder, "values": best.values, "metric": ended["metric"],
            "figures": ended["figures"]})
        if not files.is_remote(folder):
            _link(os.path.join(folder, BEST_LINK), best.name)
    return Results(_table(runs, finished), best, failures, len(runs), path)


def best_run(runs: Sequence[Run]) -> Run | None:
    """The finished run that is best on the dev set, the first of equals; None where none is finished."""
    finished = _finished(runs)
    done = [run for run in runs if run.name in finished]
    return max(done, key=lambda run: _rank(finished[run.name].score, finished[run.name].metric), default=None)


def delete_all_but_best(runs: Sequence[Run]) -> None:
    """Removes the weights of every finished run but the best."""
    best = best_run(runs)
    for run in runs:
        if run is not best and run.finished:
            run.delete_models()


def _finished(runs: Sequence[Run]) -> dict[str, Finished]:
    """How the finished ones of some runs ended, by name."""
    return {run.name: finished for run in runs if (finished := run.finished)}


def _rows(runs: Sequence[Run], finished: Mapping[str, Finished], failures: Mapping[str, str], best: Run | None
          ) -> Iterator[list[str]]:
    """Header and rows of results.tsv, a row for each run."""
    names = sorted({name for ended in finished.values() for name in ended.metrics})
    yield ["run", *runs[0].values, "state", "metric", "score", "seconds", *names]
    for run in runs:
        row = [run.name, *run.values.values()]
        if ended := finished.get(run.name):
            yield [*row, "best" if run is best else "finished", ended.metric, repr(ended.score), repr(ended.seconds),
                   *(repr(ended.metrics.get(name, "")) for name in names)]
        else:
            yield [*row, "failed" if run.name in failures else "not run", *[""] * (3 + len(names))]


def _table(runs: Sequence[Run], finished: Mapping[str, Finished]) -> str:
    """Mean, standard deviation, minimum, maximum and number of seeds of each combination, the best mean marked."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for run in runs:
        if ended := finished.get(run.name):
            key = tuple(value for name, value in run.values.items() if name != SEED)
            groups.setdefault(key, []).append(ended.score)
    if not groups:
        return ""
    metric = next(iter(finished.values())).metric
    means = {key: statistics.fmean(scores) for key, scores in groups.items()}
    best = max(means, key=lambda key: _rank(means[key], metric))
    names = [name for name in runs[0].values if name != SEED]
    rows = [[*names, f"{metric}: mean", "std", "min", "max", "runs", ""]]
    for key, scores in groups.items():
        deviation = statistics.stdev(scores) if len(scores) > 1 else math.nan
        numbers = (means[key], deviation, min(scores), max(scores))
        cells = ["-" if math.isnan(number) else f"{number:.4f}" for number in numbers]
        rows.append([*key, *cells, str(len(scores)), "best" if key == best else ""])
    return _aligned(rows)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def _rank(value: float, metric: str) -> float:
    """Sorts scores: of a loss the lowest is best; NaN comes last."""
    return -math.inf if math.isnan(value) else -value if metric.endswith("loss") else value


def _link(path: str, target: str) -> None:
    """Makes or replaces a link."""
    if os.path.lexists(path) and not os.path.islink(path):
        raise BertError(f"{path}: blocks the link to the best run. Move it.")
    # The search's folder is held by one process: links that a killed one was making are leftovers.
    for leftover in glob.glob(f"{glob.escape(path)}{files.TEMPORARY}*"):
        os.unlink(leftover)
    temporary = f"{path}{files.TEMPORARY}{os.getpid()}"
    os.symlink(target, temporary)
    os.replace(temporary, path)

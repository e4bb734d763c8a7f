"""What a search came to: each run's figures, mean and spread over the seeds, the best run."""

import dataclasses
import math
import os
import statistics

from foundation import files
from foundation.errors import BertError

SEED = "random_seed"


@dataclasses.dataclass
class Results:
    """What a search came to.

    Attributes:
        table: str, a line a combination.
        best: search.search.Run, or None where no run finished.
        failures: dict of run name to what went wrong.
        total: int, runs of the search.
        path: of results.tsv.
    """

    table: str
    best: object
    failures: dict
    total: int
    path: str

    def summary(self):
        """Lines for the person watching."""
        lines = [self.table] if self.table else []
        if self.best:
            finished = self.best.finished
            lines.append(f"Best on dev: {self.best.name}, {finished['metric']} {score(finished):.4f} "
                         f"({self.best.folder})")
        lines.append(f"Wrote {self.path}")
        return "\n".join(lines)


def read_figures(path):
    """Figures of an eval_results.txt, `name = number` a line, dict of str to float. Raises BertError."""
    figures = {}
    for number, line in enumerate(files.read_text(path).splitlines(), 1):
        name, _, value = line.partition(" = ")
        try:
            figures[name] = float(value)
        except ValueError:
            raise BertError(f"{path}, line {number}: not `name = number`.") from None
    return figures


def score(finished):
    """The figure that decides, of what a run noted."""
    return finished["figures"][finished["metric"]]


def best_run(runs):
    """The finished run that is best on the dev set, the first of equals; None where none is finished."""
    done = [each for each in runs if each.finished]
    return max(done, key=lambda each: _rank(score(each.finished), each.finished["metric"]), default=None)


def delete_all_but_best(runs):
    """Removes the weights of every finished run but the best."""
    best = best_run(runs)
    for each in runs:
        if each is not best and each.finished:
            each.delete_models()


def write(settings, runs, failures):
    """Writes results.tsv and best.json into the search's folder, and the link `best`.

    Args:
        settings: search.search.SearchSettings.
        runs: list of search.search.Run.
        failures: dict of name to message.

    Returns:
        Results.
    """
    path = os.path.join(settings.output_dir, "results.tsv")
    best = best_run(runs)
    files.write_text(path, "".join("\t".join(row) + "\n" for row in _rows(runs, failures, best)))
    if best:
        finished = best.finished
        files.write_json(os.path.join(settings.output_dir, "best.json"), {
            "run": best.name, "folder": best.folder, "values": best.values, "metric": finished["metric"],
            "figures": finished["figures"]})
        if not files.is_remote(settings.output_dir):
            _link(os.path.join(settings.output_dir, "best"), best.name)
    return Results(_table(runs), best, failures, len(runs), path)


def _rows(runs, failures, best):
    """Header and a row a run."""
    figures = sorted({name for each in runs if each.finished for name in each.finished["figures"]})
    yield ["run", *runs[0].values, "state", "metric", "score", "seconds", *figures]
    for each in runs:
        finished = each.finished
        row = [each.name, *each.values.values()]
        if finished:
            yield [*row, "best" if each is best else "finished", finished["metric"], repr(score(finished)),
                   repr(finished["seconds"]), *(repr(finished["figures"].get(name, "")) for name in figures)]
        else:
            state = "failed" if each.name in failures else "not run"
            yield [*row, state, *[""] * (3 + len(figures))]


def _table(runs):
    """Mean, spread, extremes and number of seeds of each combination, the best mean marked."""
    groups = {}
    for each in runs:
        if finished := each.finished:
            key = tuple(value for name, value in each.values.items() if name != SEED)
            groups.setdefault(key, []).append(score(finished))
    if not groups:
        return ""
    metric = next(each.finished["metric"] for each in runs if each.finished)
    means = {key: statistics.fmean(scores) for key, scores in groups.items()}
    best = max(means, key=lambda key: _rank(means[key], metric))
    names = [name for name in runs[0].values if name != SEED]
    rows = [[*names, f"{metric}: mean", "std", "min", "max", "runs", ""]]
    for key, scores in groups.items():
        spread = statistics.stdev(scores) if len(scores) > 1 else math.nan
        figures = (means[key], spread, min(scores), max(scores))
        numbers = ["-" if math.isnan(number) else f"{number:.4f}" for number in figures]
        rows.append([*key, *numbers, str(len(scores)), "best" if key == best else ""])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def _rank(value, metric):
    """Sorts scores: of a loss the least is best, and what is not a number comes last."""
    return -math.inf if math.isnan(value) else -value if metric.endswith("loss") else value


def _link(path, target):
    if os.path.lexists(path) and not os.path.islink(path):
        raise BertError(f"{path}: in the way of the link to the best run. Move it.")
    temporary = f"{path}.tmp-{os.getpid()}"
    os.symlink(target, temporary)
    os.replace(temporary, path)

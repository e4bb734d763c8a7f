"""One run of a search: its command line, its folder, and the metrics it ended with."""

import contextlib
import dataclasses
import itertools
import os
import re
import sys
from typing import Any

from foundation import files, run_files, state
from foundation.errors import BertError
from search.folder import FINISHED, LOG
from search.script import Script
from search.settings import SEED, SearchSettings

# The search sets this flag; those of _DEFAULTS only where the command does not.
OUTPUT_DIR = "output_dir"
_DEFAULTS = {"do_train": "true", "do_eval": "true", "keep_checkpoint_max": "1"}
_SHORT = {"learning_rate": "lr", "train_batch_size": "batch", "num_train_epochs": "epochs", SEED: "seed"}
_FINISHED_SCHEMA = {"metric": str, "figures": {str: float}, "seconds": float}
_WEIGHTS = (f"{run_files.RUN_CHECKPOINT}-*", f"{run_files.FINAL_MODEL}/{run_files.RELEASED_CHECKPOINT}.*",
            f"{run_files.BEST_MODEL}/{run_files.RELEASED_CHECKPOINT}*")


@dataclasses.dataclass(frozen=True)
class Finished:
    """How a run ended.

    Attributes:
        metric: name of the metric that is compared between runs.
        metrics: all of eval_results.txt, by name.
        seconds: that the process took; of a run that was interrupted, its last process.
    """

    metric: str
    metrics: dict[str, float]
    seconds: float

    @property
    def score(self) -> float:
        """The value of `metric`."""
        return self.metrics[self.metric]

    # The file's key for the metrics is `figures`, there and in best.json.
    def to_json(self) -> dict[str, Any]:
        """What finished.json holds."""
        return {"metric": self.metric, "figures": self.metrics, "seconds": self.seconds}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Finished":
        """The reverse of `to_json`."""
        return cls(value["metric"], value["figures"], value["seconds"])


@dataclasses.dataclass(frozen=True)
class Run:
    """One point of the grid with one seed.

    Attributes:
        settings: of the search.
        script: what it runs.
        values: of the flags that are varied, by name.
    """

    settings: SearchSettings
    script: Script
    values: dict[str, str]

    @property
    def name(self) -> str:
        """Name of its folder: the values, without characters that have a meaning in paths and globs."""
        return "_".join(f"{_SHORT.get(name, name)}{re.sub(r'[^-+.0-9A-Za-z]', '-', value)}"
                        for name, value in self.values.items())

    @property
    def folder(self) -> str:
        """Its folder, inside of the search's."""
        return os.path.join(self.settings.output_dir, self.name)

    @property
    def log(self) -> str:
        """Path of its console output."""
        return os.path.join(self.folder, LOG)

    @property
    def cost(self) -> float:
        """How long it takes, relative to the other runs."""
        with contextlib.suppress(ValueError):
            return float(self.values.get("num_train_epochs", 1.0)) or 1.0
        return 1.0

    def command(self) -> list[str]:
        """The command line of its process."""
        defaults = {"cache_dir": os.path.join(self.settings.output_dir, run_files.FEATURES), **_DEFAULTS}
        flags = {name: value for name, value in defaults.items() if name not in self.script.given}
        flags |= {**self.values, OUTPUT_DIR: self.folder}
        return [sys.executable, self.script.path, *self.script.flags,
                *(f"--{name}={value}" for name, value in flags.items())]

    @property
    def finished(self) -> Finished | None:
        """How it ended, None before that."""
        path = os.path.join(self.folder, FINISHED)
        if not files.exists(path):
            return None
        noted = state.read(path, _FINISHED_SCHEMA, "Remove it to make this run again.")
        if noted["metric"] not in noted["figures"]:
            raise BertError(f"{path}: holds no {noted['metric']!r}. Remove it to make this run again.")
        return Finished.from_json(noted)

    def finish(self, seconds: float) -> Finished:
        """Reads the metrics that the process left, and marks the run as finished.

        Args:
            seconds: that the process took.

        Raises:
            BertError: there are no metrics, or not the one that selects the best run.
        """
        path = os.path.join(self.folder, run_files.EVAL_RESULTS)
        metrics = read_metrics(path)
        if not metrics:
            raise BertError(f"{path}: holds no metrics.")
        metric = self.settings.metric or self._metric_of_task(metrics)
        if metric not in metrics:
            raise BertError(f"{path}: holds no {metric!r}. Give another --metric: {', '.join(metrics)}.")
        finished = Finished(metric, metrics, round(seconds, 1))
        files.write_json(os.path.join(self.folder, FINISHED), finished.to_json())
        return finished

    def _metric_of_task(self, metrics: dict[str, float]) -> str:
        """The main metric that the task noted, or else the only one that is not a loss."""
        path = os.path.join(self.folder, run_files.TASK)
        noted = state.read(path, {str: state.ANY}).get("metric") if files.exists(path) else None
        choices = [name for name in metrics if name != run_files.GLOBAL_STEP and not name.endswith("loss")]
        if isinstance(noted, str) or len(choices) == 1:
            return noted if isinstance(noted, str) else choices[0]
        raise BertError(f"Which metric selects the best run? Give --metric, one of {', '.join(metrics)}.")

    def delete_models(self) -> None:
        """Removes weights and training checkpoints; metrics and predictions stay."""
        for pattern in _WEIGHTS:
            for path in files.glob(os.path.join(self.folder, pattern)):
                files.remove(path)


def runs_of(settings: SearchSettings, script: Script) -> list[Run]:
    """The runs of a search, one for each combination of values; the seeds of one point follow each other.

    Raises:
        BertError: values or flags that make no sense, or two runs with the same folder.
    """
    grid = settings.grid()
    script.check((*grid, OUTPUT_DIR))
    names = sorted(grid, key=lambda name: name == SEED)
    runs: dict[str, Run] = {}
    for values in itertools.product(*(grid[name] for name in names)):
        run = Run(settings, script, dict(zip(names, values)))
        if run.name in runs:
            raise BertError(f"Two runs would have the folder {run.folder}. Spell their values differently.")
        runs[run.name] = run
    return list(runs.values())


def read_metrics(path: str) -> dict[str, float]:
    """Metrics of an eval_results.txt, which has `name = number` in each line, by name.

    Raises:
        BertError: naming a line of another form.
    """
    metrics = {}
    for number, line in enumerate(files.read_text(path).splitlines(), 1):
        name, _, value = line.partition(" = ")
        try:
            metrics[name] = float(value)
        except ValueError:
            raise BertError(f"{path}, line {number}: not `name = number`.") from None
    return metrics

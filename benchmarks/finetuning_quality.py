"""Quality and speed of fine-tuning next to a plain PyTorch loop over the same weights, features, settings and seeds.

    python -m benchmarks.finetuning_quality --init_checkpoint=minilm --cola_dir=glue/CoLA --wnut_dir=wnut17 \\
        --peer_python=peers/bin/python

The checkpoint is a Hugging Face folder, which both sides read. They run in turns, once per seed, each run in a process
of its own whose whole time counts: importing, loading, compiling, training, predicting. Both correct Adam's bias, as
PyTorch does. This project's tasks score the dev set for both.
"""

import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from foundation import command, files, run_files
from foundation.settings import DATA, EVALUATION, MODEL, OTHER, TRAINING, Settings, setting
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tasks.ner.files import NerSettings
from tasks.ner.task import NerTask
from tasks.task import Predicted, Task
from training import initial_model
from training.settings import InitialModelSettings

if TYPE_CHECKING:
    from inputs.features import Features
    from tokenization.tokenizer import Tokenizer

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SEQ = 128
_SIDES = ("ours", "peer")


@dataclasses.dataclass(frozen=True, kw_only=True)
class QualitySettings(Settings):
    """One command. What belongs to training applies to both sides."""

    cola_dir: str | None = setting(None, group=DATA, help="GLUE's folder of CoLA.")
    wnut_dir: str | None = setting(None, group=DATA, help="Folder with WNUT-17's train.txt and dev.txt.")
    init_checkpoint: str = setting(group=MODEL, help="Folder of a Hugging Face BERT with its vocabulary.")
    train_batch_size: int = setting(32, at_least=1, group=TRAINING, help="Examples of one update.")
    num_train_epochs: float = setting(3.0, at_least=0.0, group=TRAINING, help="Passes over the training set.")
    learning_rate: float = setting(1e-4, group=TRAINING, help="Learning rate at the end of warm-up.")
    peer_schedule: str = setting(
        "release", choices=("release", "transformers"), group=TRAINING,
        help="The peer's learning rate after warm-up: that of the release and this project, or that of transformers, "
             "one ninth higher.")
    bfloat16: bool = setting(True, group=TRAINING, help="Compute in bfloat16.")
    seeds: tuple[str, ...] = setting(("1", "2", "3"), group=EVALUATION, help="Seeds, separated by commas.")
    peer_python: str = setting(group=OTHER, help="Python interpreter that has torch and transformers.")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A data set to compare on.

    Attributes:
        name: of the data set.
        task: of this project.
        labels: of the task.
        script: trains it here.
        flags: of the script.
        metric: to report.
    """

    name: str
    task: Task
    labels: tuple[str, ...]
    script: str
    flags: tuple[str, ...]
    metric: str


@dataclasses.dataclass(frozen=True)
class Data:
    """What both sides of a comparison read.

    Attributes:
        folder: of train.npz and dev.npz, the peer's data, and of all results.
        dev_features: Features of the dev set.
        tokenizer: Tokenizer.
    """

    folder: str
    dev_features: "Features"
    tokenizer: "Tokenizer"


@dataclasses.dataclass(frozen=True)
class Result:
    """A run's metric, seconds, and CPU-seconds of all its threads."""

    metric: float
    seconds: float
    cpu_seconds: float


def comparisons(settings: QualitySettings) -> Iterator[Comparison]:
    """The data sets given."""
    if settings.cola_dir:
        cola = ClassificationTask(ClassificationSettings(
            task_name="cola", data_dir=settings.cola_dir, max_seq_length=_SEQ))
        yield Comparison("cola", cola, cola.data.labels or (), "run_classifier.py",
                         ("--task_name=cola", f"--data_dir={settings.cola_dir}"), "matthews")
    if settings.wnut_dir:
        train_file, dev_file = (os.path.join(settings.wnut_dir, f"{split}.txt") for split in ("train", "dev"))
        ner = NerTask(NerSettings(train_file=train_file, dev_file=dev_file, max_seq_length=_SEQ))
        yield Comparison("ner", ner, tuple(ner.data.labels), "run_ner.py",
                         (f"--train_file={train_file}", f"--dev_file={dev_file}"), "f1")


def make_data(comparison: Comparison, tokenizer: "Tokenizer", folder: str) -> Data:
    """Writes the features of both splits, with labels, for the peer."""
    task, found = comparison.task, {}
    for split in ("train", "dev"):
        found[split] = task.features(task.read(split), tokenizer, True)
        with open(os.path.join(folder, f"{split}.npz"), "wb") as file:
            found[split].save(file)
    return Data(folder, found["dev"], tokenizer)


def run_ours(comparison: Comparison, settings: QualitySettings, data: Data, seed: str) -> Result:
    """Trains and evaluates with this project."""
    output = os.path.join(data.folder, f"ours-{seed}")
    times = _timed([
        sys.executable, comparison.script, *comparison.flags, f"--init_checkpoint={settings.init_checkpoint}",
        "--do_train=true", "--do_eval=true", f"--max_seq_length={_SEQ}", f"--output_dir={output}",
        "--eval_batch_size=64", f"--train_batch_size={settings.train_batch_size}", f"--random_seed={seed}",
        f"--learning_rate={settings.learning_rate}", f"--num_train_epochs={settings.num_train_epochs}",
        "--adam_bias_correction=true", f"--precision={'bfloat16' if settings.bfloat16 else 'float32'}"])
    lines = files.read_text(os.path.join(output, run_files.EVAL_RESULTS)).splitlines()
    return Result(float(dict(line.split(" = ") for line in lines)[comparison.metric]), *times)


def run_peer(comparison: Comparison, settings: QualitySettings, data: Data, seed: str) -> Result:
    """Trains and predicts with the peer, and scores its logits here."""
    output = os.path.join(data.folder, f"peer-{seed}.npy")
    times = _timed([settings.peer_python, "-m", "benchmarks.finetuning_peer", json.dumps({
        "family": comparison.name, "model": settings.init_checkpoint, "num_labels": len(comparison.labels),
        "features": data.folder, "output": output, "seed": int(seed), "learning_rate": settings.learning_rate,
        "num_train_epochs": settings.num_train_epochs, "train_batch_size": settings.train_batch_size,
        "bfloat16": settings.bfloat16, "schedule": settings.peer_schedule})])
    return Result(peer_metric(comparison, data, np.load(output)), *times)


def peer_metric(comparison: Comparison, data: Data, logits: np.ndarray) -> float:
    """Scores logits of the dev set, [rows, labels], or of all its word pieces, [total, labels]."""
    task = comparison.task
    of_tokens = "logits" in task.token_outputs
    outputs = {"logits": np.split(logits, data.dev_features.row_splits[1:-1]) if of_tokens else logits}
    predicted = Predicted(task.read("dev"), data.dev_features, outputs, data.tokenizer)
    return float(task.score("dev", predicted)[comparison.metric])


def _timed(arguments: Sequence[str]) -> tuple[float, float]:
    """Runs a process; returns its seconds and CPU-seconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, cpu


def report(comparison: Comparison, side: str, seed: str, result: Result, note: str = "") -> None:
    """Prints a line."""
    print(f"{comparison.name:6} {side:6} {seed:>4} {result.metric:10.4f} {result.seconds:8.0f} "
          f"{result.cpu_seconds:8.0f}{note}", flush=True)


def main(settings: QualitySettings) -> None:
    """Prints one line per run, then means."""
    tokenizer = initial_model.find(InitialModelSettings(init_checkpoint=settings.init_checkpoint)).tokenizer()
    print(f"{'data':6} {'side':6} {'seed':>4} {'metric':>10} {'s':>8} {'CPU-s':>8}")
    for comparison in comparisons(settings):
        with tempfile.TemporaryDirectory() as folder:
            data = make_data(comparison, tokenizer, folder)
            results: dict[str, list[Result]] = {side: [] for side in _SIDES}
            for seed in settings.seeds:
                for side, run in zip(_SIDES, (run_ours, run_peer)):
                    results[side].append(run(comparison, settings, data, seed))
                    report(comparison, side, seed, results[side][-1])
            for side, runs in results.items():
                rows = np.array([dataclasses.astuple(run) for run in runs])
                deviation = rows[:, 0].std(ddof=1) if len(rows) > 1 else 0.0
                report(comparison, side, "mean", Result(*rows.mean(axis=0)),
                       f"  {comparison.metric}, standard deviation {deviation:.4f}")


if __name__ == "__main__":
    command.run_with(main, QualitySettings, __doc__)

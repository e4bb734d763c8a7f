"""What packed rows save where XLA compiles: operations for each real token by XLA's cost analysis, time on this CPU.

    python -m benchmarks.packing --records_128='r128.tfrecord-*' --records_512='r512.tfrecord-*' \\
        --cola_dir=glue/CoLA --sst2_dir=glue/SST-2 --squad_file=train-v1.1.json --vocab_file=vocab.txt \\
        --costs_python=jaxenv/bin/python

For pre-training and for fine-tuning, batches are drawn from the program's own input in each way: every sequence in a
row of the maximum length (padded), batches of similar length (fine-tuning only, GPUs' default before packing), packed.
The program counted is the one that `--xla=true` compiles, forward and backward; the analysis needs jax (`pip install -r
benchmarks/requirements-peers.txt`) in an environment of its own. Then whole updates are timed on this CPU, padded and
packed in turns, and reading the records both ways.
"""

import dataclasses
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from foundation import command, files
from foundation.settings import DATA, EVALUATION, MODEL, OTHER, TRAINING, Settings, setting
from modeling.config import PRESETS
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tasks.squad.files import SquadSettings
from tasks.squad.task import SquadTask
from tasks.task import Task
from training.settings import HardwareSettings, OptimizationSettings

if TYPE_CHECKING:
    from inputs.batching import Plan
    from inputs.features import Features
    from training.devices import Placement
    from training.step import Objective, TrainStep

Batch = Mapping[str, np.ndarray]

_PREDICTIONS = {128: 20, 512: 77}
_COSTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packing_costs.py")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackingSettings(Settings):
    """One command."""

    records_128: str | None = setting(None, group=DATA, help="Pre-training records of 128 positions, 20 predictions.")
    records_512: str | None = setting(None, group=DATA, help="Pre-training records of 512 positions, 77 predictions.")
    cola_dir: str | None = setting(None, group=DATA, help="GLUE's folder of CoLA.")
    sst2_dir: str | None = setting(None, group=DATA, help="GLUE's folder of SST-2.")
    squad_file: str | None = setting(None, group=DATA, help="Training file of SQuAD v1.1.")
    vocab_file: str = setting(group=DATA, help="The vocabulary of the records.")
    size: str = setting("mini", choices=tuple(PRESETS), group=MODEL, help="The model.")
    batch_size: int = setting(32, at_least=1, group=TRAINING, help="Sequences of a batch.")
    batches: int = setting(12, at_least=1, group=EVALUATION, help="Batches to draw in each way.")
    rounds: int = setting(3, at_least=0, group=EVALUATION, help="Turns of each way to time; 0: only count.")
    steps: int = setting(2, at_least=1, group=EVALUATION, help="Updates of a turn.")
    costs_python: str = setting(group=OTHER, help="Python interpreter that has jax.")


@dataclasses.dataclass(frozen=True)
class Case:
    """What is trained.

    Attributes:
        name: for the table.
        objective: makes model and loss, in a strategy's scope.
        ways: batches by way.
    """

    name: str
    objective: "Callable[[Placement], Objective]"
    ways: dict[str, list[Batch]]


def pretraining(length: int, pattern: str, settings: PackingSettings) -> Case:
    """Masked words and next sentence on records; prints how fast the records are read."""
    from data_prep.records import PretrainingSchema
    from modeling.models import PretrainingModel
    from training import input_pipeline, packing
    from training.pretraining_objective import PretrainingObjective

    config, size = PRESETS[settings.size], settings.batch_size
    schema = PretrainingSchema(length, _PREDICTIONS[length], config.vocab_size, config.type_vocab_size)
    source = input_pipeline.RecordSource(tuple(files.match(pattern, f"records_{length}")), schema)
    rows = packing.measure(source, size, 1, 1000, 1).rows
    datasets = {"padded": input_pipeline.training_batches(source, size, 1),
                "packed": packing.training_batches(source, rows, 1)}
    for way, dataset in datasets.items():
        print(f"reading at {length}, {way}: {reading_rate(dataset, 4 * packing.WINDOW):,.0f} records/CPU-s", flush=True)
    return Case(f"pre-training {length}",
                lambda placement: PretrainingObjective(PretrainingModel(config, dtype=placement.dtype)),
                {way: drawn(dataset, settings.batches) for way, dataset in datasets.items()})


def finetuning(name: str, task: Task, settings: PackingSettings) -> Case:
    """A task's training set."""
    from finetuning.objective import TaskObjective
    from inputs import batching, packing
    from tokenization.tokenizer import Tokenizer
    from tokenization.vocabulary import Vocabulary

    features = task.features(task.read("train"), Tokenizer(Vocabulary.from_file(settings.vocab_file), True), True)
    size, length, count = settings.batch_size, task.max_seq_length, settings.batches
    plans = {way: batching.training_plan(features.lengths, size, len(features) // size, 0, length, static)
             for way, static in (("padded", True), ("similar", False))}
    ways = {"padded": drawn(batching.batches(features, plans["padded"]), count),
            "similar": [one_batch(features, plans["similar"], number) for number in range(count)]}
    ways["packed"] = drawn(packing.batches(features, packing.training_plan(features, size, 1.0, 0, length)), count)
    network = task.network()
    return Case(name, lambda placement: TaskObjective(network, network.model(
        PRESETS[settings.size], placement.dtype, False)), ways)


def cases(settings: PackingSettings) -> Iterator[Case]:
    """The cases whose data is given."""
    for length, pattern in ((128, settings.records_128), (512, settings.records_512)):
        if pattern:
            yield pretraining(length, pattern, settings)
    for name, folder in (("cola", settings.cola_dir), ("sst-2", settings.sst2_dir)):
        if folder:
            yield finetuning(name, ClassificationTask(ClassificationSettings(
                task_name=name, data_dir=folder, max_seq_length=128)), settings)
    if settings.squad_file:
        yield finetuning("squad", SquadTask(SquadSettings(train_file=settings.squad_file, max_seq_length=384)),
                         settings)


def drawn(dataset: Callable[..., Any], count: int) -> list[Batch]:
    """The first batches of one worker."""
    import tensorflow as tf

    return list(dataset(tf.distribute.InputContext()).take(count).as_numpy_iterator())


def one_batch(features: "Features", plan: "Plan", number: int) -> Batch:
    """A batch of a plan, whose shape is known."""
    from inputs import batching

    part = slice(number, number + 1)
    return drawn(batching.batches(features, batching.Plan(plan.rows[part], plan.lengths[part])), 1)[0]


def reading_rate(dataset: Callable[..., Any], records: int) -> float:
    """Records a CPU-second, once the pipeline runs."""
    import tensorflow as tf

    batches = iter(dataset(tf.distribute.InputContext()))
    for _ in range(4):
        next(batches)
    read, started = 0, time.process_time()
    while read < records:
        read += int(next(batches)["input_mask"].numpy().max(axis=1).sum())
    return read / (time.process_time() - started)


def make_step(case: Case) -> "TrainStep":
    """The training step under XLA."""
    import keras

    from training import devices
    from training.optimizers.optimizer import make_optimizer
    from training.step import TrainStep

    placement = devices.create(HardwareSettings(strategy="one_device", xla="true", precision="float32"))
    optimization = OptimizationSettings()
    with placement.strategy.scope():
        keras.utils.set_random_seed(0)
        objective = case.objective(placement)
        optimizer = make_optimizer(optimization)
        optimizer.build(objective.variables)
    return TrainStep(placement, objective, optimizer, lambda step: 1e-5, optimization, seed=0)


def operations(step: "TrainStep", batches: Sequence[Batch], python: str) -> float:
    """The operations of forward and backward pass over batches, one program for each of their shapes."""
    import tensorflow as tf

    shapes = [batch["input_ids"].shape for batch in batches]
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for shape, batch in dict(zip(shapes, batches)).items():
            tensors = {name: tf.constant(value) for name, value in batch.items()}
            program = step._gradients.experimental_get_compiler_ir(
                tensors, step.objective.denominators(tensors), tf.constant([0, 0]))
            paths[shape] = os.path.join(folder, f"{len(paths)}.hlo")
            with open(paths[shape], "wb") as file:
                file.write(program(stage="hlo_serialized"))
        done = subprocess.run([python, _COSTS, *paths.values()], capture_output=True, text=True, check=True)
    costs = dict(zip(paths, json.loads(done.stdout)))
    return sum(costs[shape] for shape in shapes)


def timed(step: "TrainStep", batches: Sequence[Batch]) -> Callable[[int], tuple[float, float, int]]:
    """A function that makes a number of updates and returns seconds, CPU-seconds and real tokens of a turn."""
    import tensorflow as tf

    stacked = {name: np.stack([batch[name] for batch in batches]) for name in batches[0]}
    iterator = iter(step.placement.strategy.distribute_datasets_from_function(
        lambda _: tf.data.Dataset.from_tensor_slices(stacked).repeat()))
    tokens, done = [int((batch["input_mask"] > 0).sum()) for batch in batches], 0

    def turn(count: int) -> tuple[float, float, int]:
        nonlocal done
        started = time.perf_counter(), time.process_time()
        step.call(iterator, tf.constant(done, tf.int64), tf.constant(count, tf.int64)).numpy()
        ended = time.perf_counter(), time.process_time()
        read = sum(tokens[(done + each) % len(tokens)] for each in range(count))
        done += count
        return ended[0] - started[0], ended[1] - started[1], read

    return turn


def report(case: Case, settings: PackingSettings) -> None:
    """Prints a case's lines."""
    step = make_step(case)
    turns = {way: timed(step, case.ways[way]) for way in ("padded", "packed") if settings.rounds}
    for turn in turns.values():
        turn(1)  # compiles
    rates: dict[str, list[float]] = {way: [] for way in turns}
    for _ in range(settings.rounds):
        for way, turn in turns.items():
            _, cpu, read = turn(settings.steps)
            rates[way].append(read / cpu)
    base = 0.0
    for way, batches in case.ways.items():
        real = sum(int((batch["input_mask"] > 0).sum()) for batch in batches)
        positions = sum(batch["input_mask"].size for batch in batches)
        sequences = sum(_sequences(batch) for batch in batches) / len(batches)
        each = operations(step, batches, settings.costs_python) / real
        base = base or each
        speed = f"{statistics.median(rates[way]):11,.0f}" if way in rates else f"{'':11}"
        print(f"{case.name:16} {way:8} {sequences:13.1f} {real / positions:8.1%} {each / 1e6:12.2f} {base / each:7.2f} "
              f"{speed}", flush=True)
    if rates:
        ratios = [packed / padded for packed, padded in zip(rates["packed"], rates["padded"])]
        print(f"{case.name:16} real tokens a CPU-second, packed to padded: {statistics.median(ratios):.2f} "
              f"({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


def _sequences(batch: Batch) -> int:
    if "part_starts" in batch:
        return int(batch["input_mask"].max(axis=1).sum())
    return len(batch["input_mask"])


def main(settings: PackingSettings) -> None:
    """Prints the lines of each case."""
    print(f"{'':16} {'way':8} {'sequences':>13} {'real':>8} {'MFLOP/token':>12} {'fewer':>7} {'tokens/CPU-s':>11}")
    for case in cases(settings):
        report(case, settings)


if __name__ == "__main__":
    command.run_with(main, PackingSettings, __doc__)

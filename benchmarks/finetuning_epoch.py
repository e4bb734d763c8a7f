"""Cost of an epoch of fine-tuning in batches of sequences of similar length, next to batches padded to the maximum.

    python -m benchmarks.finetuning_epoch --init_checkpoint=minilm --cola_dir=glue/CoLA --sst2_dir=glue/SST-2 \\
        --squad_file=train-v1.1.json

For each data set, batches drawn at random from an epoch's plan are trained in both ways, in turns, in one process. An
epoch costs the mean of a way's batches times their number; "share" is the cost of similar lengths divided by that of
padding. Then rows are predicted both ways, and the largest difference of an output is reported.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from foundation import command
from foundation.settings import DATA, EVALUATION, TRAINING, Settings, nested, setting
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tasks.squad.files import SquadSettings
from tasks.squad.task import SquadTask
from tasks.task import Task
from training import initial_model
from training.initial_model import InitialModel
from training.settings import HardwareSettings, InitialModelSettings, OptimizationSettings

if TYPE_CHECKING:
    from inputs.batching import Plan
    from inputs.features import Features
    from training.devices import Placement
    from training.step import PredictionStep, TrainStep

_LEARNING_RATE = 1e-5


@dataclasses.dataclass(frozen=True, kw_only=True)
class EpochSettings(Settings):
    """One command."""

    cola_dir: str | None = setting(None, group=DATA, help="GLUE's folder of CoLA.")
    sst2_dir: str | None = setting(None, group=DATA, help="GLUE's folder of SST-2.")
    squad_file: str | None = setting(None, group=DATA, help="Training file of SQuAD v1.1.")
    initial_model: InitialModelSettings = nested(InitialModelSettings)
    batch_size: int = setting(32, at_least=1, group=TRAINING, help="Rows of a batch.")
    rounds: int = setting(5, at_least=1, group=EVALUATION, help="Turns of each way.")
    steps: int = setting(
        4, at_least=1, group=EVALUATION, help="Padded batches of a turn; there are four times as many of the others.")
    predicted_rows: int = setting(256, at_least=1, group=EVALUATION, help="Rows to predict both ways.")
    hardware: HardwareSettings = nested(HardwareSettings)


def tasks(settings: EpochSettings) -> Iterator[tuple[str, Task]]:
    """The data sets given, by name."""
    for name, folder in (("cola", settings.cola_dir), ("sst-2", settings.sst2_dir)):
        if folder:
            yield name, ClassificationTask(ClassificationSettings(
                task_name=name, data_dir=folder, max_seq_length=128))
    if settings.squad_file:
        yield "squad", SquadTask(SquadSettings(train_file=settings.squad_file, max_seq_length=384))


class Way:
    """One way of batching.

    Args:
        placement: Placement.
        features: of the training set.
        train_step, prediction_step: over a model of this way's own.
        plan: of an epoch.
        prediction_plan: of the rows to predict.
        static_shapes: whether every batch is padded to the maximum.
    """

    def __init__(self, placement: "Placement", features: "Features", train_step: "TrainStep",
                 prediction_step: "PredictionStep", plan: "Plan", prediction_plan: "Plan", static_shapes: bool) -> None:
        self.placement, self.features = placement, features
        self.train_step, self.prediction_step = train_step, prediction_step
        self.plan, self.prediction_plan, self.static_shapes = plan, prediction_plan, static_shapes
        self.order = np.random.default_rng(1).permutation(len(plan.rows))
        self.used = 0

    def turn(self, count: int) -> np.ndarray:
        """Trains `count` batches; returns CPU-seconds and seconds per batch."""
        import tensorflow as tf

        chosen = self.order[self.used : self.used + count]
        self.used += count
        plan = dataclasses.replace(self.plan, rows=self.plan.rows[chosen], lengths=self.plan.lengths[chosen])
        batches = iter(self._dataset(plan))
        started, cpu = time.perf_counter(), time.process_time()
        self.train_step.call(batches, tf.constant(0, tf.int64), tf.constant(count, tf.int64)).numpy()
        return np.array([time.process_time() - cpu, time.perf_counter() - started]) / count

    def predictions(self) -> dict[int, np.ndarray]:
        """The model's outputs by row, without those of padding."""
        found, plan = {}, self.prediction_plan
        for numbers, outputs in zip(plan.rows, self.prediction_step.run(self._dataset(plan), len(plan.rows))):
            for place, row in enumerate(numbers):
                if row >= 0:
                    length = self.features.lengths[row]
                    found[int(row)] = np.stack([value[place][..., :length] for value in outputs.values()])
        return found

    def _dataset(self, plan: "Plan") -> Any:
        from inputs import batching

        # The lengths are left open even where a turn has one only: all turns share a trace.
        batches: Callable[..., Any] = batching.batches(self.features, plan, lengths_vary=not self.static_shapes)
        return self.placement.strategy.distribute_datasets_from_function(batches)


def make_way(task: Task, features: "Features", initial: InitialModel, settings: EpochSettings, static_shapes: bool
             ) -> Way:
    """Builds a model and its steps."""
    import keras

    from finetuning.objective import TaskObjective
    from inputs import batching
    from training import devices
    from training.optimizers.optimizer import make_optimizer
    from training.step import PredictionStep, TrainStep

    placement = devices.create(settings.hardware)
    network, optimization = task.network(), OptimizationSettings(learning_rate=_LEARNING_RATE)
    with placement.strategy.scope():
        keras.utils.set_random_seed(0)
        model = network.model(initial.config, placement.dtype, placement.unpads and not static_shapes)
        objective = TaskObjective(network, model)
        optimizer = make_optimizer(optimization)
        optimizer.build(objective.variables)
    initial.load(model, new_head=True)
    size, length = settings.batch_size, task.max_seq_length
    return Way(
        placement, features,
        TrainStep(placement, objective, optimizer, lambda step: _LEARNING_RATE, optimization, seed=0),
        PredictionStep(placement, objective),
        batching.training_plan(features.lengths, size, len(features) // size, 0, length, static_shapes),
        batching.prediction_plan(features.lengths[: settings.predicted_rows], size, length, static_shapes),
        static_shapes)


def compare(name: str, task: Task, initial: InitialModel, settings: EpochSettings) -> None:
    """Prints one data set's line."""
    features = task.features(task.read("train"), initial.tokenizer(), True)
    padded, similar = (make_way(task, features, initial, settings, static_shapes) for static_shapes in (True, False))
    expected, found = padded.predictions(), similar.predictions()
    difference = max(float(np.abs(expected[row] - found[row]).max()) for row in expected)
    padded.turn(1), similar.turn(2)  # compiles
    turns = [(similar.turn(4 * settings.steps), padded.turn(settings.steps)) for _ in range(settings.rounds)]
    shares = np.array([of_similar / of_padded for of_similar, of_padded in turns])
    of_similar, of_padded = np.mean(turns, axis=0)
    steps, share = len(padded.plan.rows), of_similar / of_padded
    print(f"{name:8} {task.max_seq_length:6} {features.lengths.mean():11.1f} {of_padded[0] * steps:12,.0f} "
          f"{of_similar[0] * steps:13,.0f} {share[0]:8.2f} ({shares[:, 0].min():.2f} to {shares[:, 0].max():.2f}) "
          f"{share[1]:10.2f} {difference:12.1e}", flush=True)


def main(settings: EpochSettings) -> None:
    """Prints one line per data set."""
    initial = initial_model.find(settings.initial_model)
    print(f"{'data':8} {'length':>6} {'word pieces':>11} {'padded CPU-s':>12} {'similar CPU-s':>13} "
          f"{'share of CPU-s':>23} {'of seconds':>10} {'difference':>12}")
    for name, task in tasks(settings):
        compare(name, task, initial, settings)


if __name__ == "__main__":
    command.run_with(main, EpochSettings, __doc__)

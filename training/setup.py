"""What pre-training and fine-tuning set up alike: devices, folder, model, what the weights start from, updates."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import keras

from foundation.errors import BertError
from modeling.models import all_variables
from training import devices, input_pipeline, run_directory
from training.devices import Placement
from training.initial_model import InitialModel
from training.loop import TrainLoop
from training.optimizers.optimizer import Optimizer, make_optimizer
from training.record_counter import RecordCounter
from training.reporting import Reporter
from training.run_directory import RunDirectory
from training.schedule import WarmupLinearDecay
from training.settings import HardwareSettings, LoopSettings, OptimizationSettings
from training.step import Objective, TrainStep

AnyObjective = TypeVar("AnyObjective", bound=Objective, covariant=True)


@dataclasses.dataclass(frozen=True)
class Setup(Generic[AnyObjective]):
    """Where a run computes and saves, and what it computes.

    Attributes:
        placement: Placement.
        directory: RunDirectory.
        model: a Keras model of `modeling.models`.
        objective: Objective over the model.
    """

    placement: Placement
    directory: RunDirectory
    model: keras.Model
    objective: AnyObjective


def place(hardware: HardwareSettings, loop: LoopSettings, batch_sizes: Mapping[str, int], parts: int
          ) -> tuple[Placement, RunDirectory]:
    """Chooses the devices and makes the run's folder.

    Args:
        hardware: HardwareSettings.
        loop: LoopSettings.
        batch_sizes: flag name to rows of a batch, each of which must divide among the replicas.
        parts: micro-batches of a training batch.

    Raises:
        BertError: devices that cannot be reached, a batch that does not divide, a folder that cannot be made.
    """
    placement = devices.create(hardware)
    for flag, size in batch_sizes.items():
        placement.check_batch(size, flag, parts if flag == "train_batch_size" else 1)
    directory = RunDirectory(loop.output_dir, loop.keep_checkpoint_max, placement.is_chief)
    directory.make()
    return placement, directory


def make_setup(placement: Placement, directory: RunDirectory, seed: int, make_model: Callable[[], keras.Model],
               make_objective: Callable[[Any], AnyObjective]) -> Setup[AnyObjective]:
    """Makes the model, its initial weights drawn from the seed, and the objective on the devices."""
    with placement.strategy.scope():
        keras.utils.set_random_seed(seed)
        model = make_model()
        return Setup(placement, directory, model, make_objective(model))


def build_optimizer(setup: Setup, settings: OptimizationSettings) -> Optimizer:
    """Makes the optimizer and its slots on the devices."""
    with setup.placement.strategy.scope():
        optimizer = make_optimizer(settings)
        optimizer.build(setup.objective.variables)
    return optimizer


def initial_weights(setup: Setup, initial: InitialModel, state: Mapping[str, Any], *, new_head: bool = False,
                    keep_optimizer: bool = False) -> tuple[int, str]:
    """Gives a run that trains its first weights. The first line that applies decides:

        1. --output_dir has a checkpoint:   weights, optimizer and step of the newest that can be read (resume)
        2. --init_checkpoint,
           with --keep_optimizer:           weights, optimizer and step of that checkpoint
        3. --init_checkpoint:               its weights; with `new_head` those of encoder and pooler only
        4. neither:                         random weights

    Variables that are not trained, as a frozen encoder, are in no checkpoint of a run: they come from --init_checkpoint
    in the first case too. A run that only evaluates or predicts starts from `trained_weights`.

    Args:
        setup: Setup.
        initial: InitialModel.
        state: dict of name to variable: trained weights and optimizer slots.
        new_head: the head belongs to another task than the checkpoint's.
        keep_optimizer: see the second case.

    Returns:
        the step; a line for the console.

    Raises:
        BertError: a checkpoint that does not fit, or checkpoints of which none can be read.
    """
    directory, frozen = setup.directory, len(all_variables(setup.model)) > len(setup.objective.variables)
    loaded = None
    if initial.checkpoint and not keep_optimizer and (frozen or not directory.checkpoints()):
        loaded = initial.load(setup.model, new_head)
    step = directory.restore(state)
    _check_same_step(setup.placement, step)
    if step is not None:
        if step == directory.checkpoints()[-1][0]:
            directory.settle()
        return step, f"Resuming from step {step:,} in {directory.path}."
    if directory.checkpoints():
        raise BertError(f"{directory.path}: none of its checkpoints can be read. Remove them to start over.")
    if keep_optimizer:
        if not initial.checkpoint:
            raise BertError("--keep_optimizer needs --init_checkpoint, a checkpoint of a training run.")
        step = run_directory.take_all(state, initial.checkpoint)
        return step, f"{initial.checkpoint.path}: weights, optimizer and step {step:,} loaded."
    if initial.checkpoint and loaded:
        return 0, f"{initial.checkpoint.path}: {loaded.summary()}"
    return 0, "No --init_checkpoint: the model starts from random weights."


def _check_same_step(placement: Placement, step: int | None) -> None:
    """Machines that start from different steps would average the gradients of different models."""
    steps = placement.gather_from_machines(-1 if step is None else step)
    if len(set(steps)) > 1:
        shown = ", ".join("none" if each < 0 else f"{each:,}" for each in steps)
        raise BertError(f"The machines have different checkpoints (steps {shown}). --output_dir must be on a file "
                        f"system that all of them share.")


def trained_weights(setup: Setup, initial: InitialModel) -> tuple[int, str]:
    """Gives a pre-training model that is only evaluated its weights. The first line that applies decides:

        1. --output_dir has a checkpoint:   the newest that can be read
        2. --init_checkpoint

    Returns:
        the step, 0 where unknown; a line for the console.

    Raises:
        BertError: neither, or weights that do not fit.
    """
    step = setup.directory.restore(setup.objective.variables)
    if step is not None:
        return step, f"Step {step:,} of {setup.directory.path}."
    if not initial.checkpoint:
        raise BertError(f"{setup.directory.path} has no checkpoint to evaluate. Train first, or pass "
                        f"--init_checkpoint.")
    return 0, f"{initial.checkpoint.path}: {initial.load(setup.model).summary()}"


@dataclasses.dataclass(frozen=True)
class Training:
    """What it takes to make updates, besides the Setup.

    Attributes:
        optimizer: Optimizer, built.
        schedule: of the learning rate.
        optimization: OptimizationSettings.
        loop: LoopSettings.
    """

    optimizer: Optimizer
    schedule: WarmupLinearDecay
    optimization: OptimizationSettings
    loop: LoopSettings

    @property
    def last_step(self) -> int:
        """The step at which this command stops."""
        return min(self.schedule.num_train_steps, self.loop.stop_at_step or self.schedule.num_train_steps)

    def state(self, setup: Setup) -> dict[str, Any]:
        """Name to variable of all that a checkpoint holds besides the step."""
        return {**setup.objective.variables, **self.optimizer.slots()}

    def decisive_settings(self) -> dict[str, Any]:
        """The part of `run.json` that follows from these."""
        return {**dataclasses.asdict(self.optimization), "num_train_steps": self.schedule.num_train_steps,
                "num_warmup_steps": self.schedule.num_warmup_steps}


def train(setup: Setup, training: Training, reporter: Reporter, dataset: input_pipeline.Dataset, first_step: int,
          describe_error: Callable[[BaseException], BaseException] = lambda error: error,
          evaluate: Callable[[int], bool] | None = None, counter: RecordCounter | None = None) -> int:
    """Makes the updates from `first_step` on.

    Args:
        setup, training: above.
        reporter: Reporter.
        dataset: of the batches, beginning with number `first_step`.
        first_step: updates made before.
        describe_error, evaluate, counter: see TrainLoop; `evaluate` is called where --eval_every is given.

    Returns:
        the step at which it ended.
    """
    step = TrainStep(setup.placement, setup.objective, training.optimizer, training.schedule, training.optimization,
                     training.optimization.random_seed)
    loop = TrainLoop(setup.placement, step, training.state(setup), setup.directory, reporter, training.loop,
                     describe_error, evaluate if training.loop.eval_every_steps else None, counter)
    return loop.run(dataset, first_step, training.last_step)

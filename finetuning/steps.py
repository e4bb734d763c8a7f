"""The steps of a fine-tuning run, in the order in which `finetuning.driver` takes them."""

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from finetuning import description, packing
from finetuning.best_model import BestModel, best_of, read_evaluations
from finetuning.evaluation import Evaluator
from finetuning.objective import TaskObjective
from finetuning.prediction import RowPredictor, load_weights
from finetuning.settings import FineTuningSettings
from finetuning.splits import Splits
from foundation import run_files
from foundation.errors import BertError
from inputs import batching
from inputs import packing as packed_inputs
from inputs.features import Features
from inputs.packing import PackedPlan
from modeling.checkpoints import load
from modeling.config import BertConfig
from modeling.models import all_variables
from tasks.labels import LabelOrder
from tasks.task import Task
from training import curve, setup
from training.initial_model import InitialModel
from training.reporting import Reporter
from training.schedule import WarmupLinearDecay
from training.setup import Setup, Training


@dataclasses.dataclass(frozen=True)
class Run:
    """A run that is set up.

    Attributes:
        task: Task.
        settings: FineTuningSettings.
        models: InitialModel, one or those of an ensemble.
        splits: Splits.
        config: BertConfig, with the casing in force.
        static_shapes: whether every batch is padded to the task's max_seq_length.
        plan: of packed training batches; None where a row is an example.
        setup: Setup.
        evaluator: Evaluator.
        reporter: Reporter.
        best: BestModel.
        features: of the training set, None where nothing is trained; and so for
        training: Training.
        label_orders: LabelOrder of each model, where a trained one is used.
    """

    task: Task
    settings: FineTuningSettings
    models: list[InitialModel]
    splits: Splits
    config: BertConfig
    static_shapes: bool
    plan: PackedPlan | None
    setup: Setup[TaskObjective]
    evaluator: Evaluator
    reporter: Reporter
    best: BestModel
    features: Features | None
    training: Training | None
    label_orders: list[LabelOrder]

    @property
    def initial(self) -> InitialModel:
        """The first of `models`."""
        return self.models[0]


def prepare(task: Task, settings: FineTuningSettings, models: list[InitialModel], splits: Splits,
            label_orders: list[LabelOrder]) -> Run:
    """Chooses devices, makes the features of the training set, builds model and optimizer."""
    placement, directory = setup.place(settings.hardware, settings.loop, _batch_sizes(settings),
                                       settings.optimization.gradient_accumulation_steps)
    # After the devices: several machines must be connected before TensorFlow runs anything, a tokenizer included.
    tokenizer = models[0].tokenizer()
    features = _training_features(task, splits, tokenizer, placement.is_chief) if settings.do_train else None
    static_shapes = {"auto": placement.platform == "tpu"}.get(settings.static_shapes, settings.static_shapes == "true")
    for member in models:
        member.check_sizes()
        if member.checkpoint and not settings.do_train:
            task.check_weights(member.checkpoint.path, member.checkpoint.reader.shapes)
    config = models[0].config.replace(do_lower_case=models[0].do_lower_case)
    network = task.network()
    packs = packing.is_on(settings, placement, network)
    plan = packing.training_plan(features, settings, task.max_seq_length, placement) if packs and features else None
    made = setup.make_setup(
        placement, directory, settings.optimization.random_seed,
        lambda: network.model(config, placement.dtype, placement.unpads and (packs or not static_shapes)),
        lambda model: TaskObjective(network, model, task.terms_per_row(features) if features else 1.0))

    training = _training(made, settings, _steps(settings, features, plan)) if features else None
    tokens = float(np.diff(features.row_splits).mean()) * features.sequences_per_row if features else 1.0
    reporter = Reporter(directory, training.last_step if training else 0,
                        plan.examples_per_batch if plan else settings.train_batch_size, tokens)
    members = [functools.partial(load_weights, task, made.model, member)
               for member in models] if settings.ensemble else []
    evaluator = Evaluator(task, splits, tokenizer, RowPredictor(task, placement, made.objective, static_shapes, packs),
                          members, placement.is_chief, label_orders)
    best = BestModel(directory, task.metric, settings.early_stop)
    return Run(task, settings, models, splits, config, static_shapes, plan, made, evaluator, reporter, best, features,
               training, label_orders)


def is_finished(run: Run) -> bool:
    """Whether the folder holds this run, trained to its end. Raises BertError where it holds another one."""
    training, directory = run.training, run.setup.directory
    assert training
    directory.claim(_decisive_settings(run, training))
    finished_at = directory.finished_at()
    return finished_at is not None and finished_at >= training.last_step


def reload(run: Run) -> tuple[int, dict[str, float] | None, str]:
    """Loads the final model of a finished run; returns its step, its metrics where they are known, and its folder."""
    directory, settings = run.setup.directory, run.settings
    folder = directory.join(run_files.FINAL_MODEL)
    load.load_into(run.setup.model, folder)
    run.best.evaluations = read_evaluations(directory.path)
    step = int(run.best.best["step"]) if run.best.best else directory.finished_at() or 0
    run.reporter.print(f"{directory.path} holds this run, finished; its model is that of step {step:,}.")
    metrics = run.best.at(step)
    if settings.do_eval and not metrics:
        metrics = evaluate(run, step)
    return step, metrics, folder


def start(run: Run) -> int:
    """Claims the folder and gives the model its first weights; returns the step."""
    directory, features, training = run.setup.directory, run.features, run.training
    assert features and training
    directory.write_model_files(run.config, run.initial.vocab_file)
    _describe(run, directory.path, {})
    step, line = setup.initial_weights(run.setup, run.initial, training.state(run.setup), new_head=True)
    directory.drop_reports_after(step)
    run.best.evaluations = read_evaluations(directory.path, step)
    parameters = sum(math.prod(variable.shape) for variable in run.setup.model.weights)
    run.reporter.print(f"{run.task.name}: {len(features):,} rows, {training.schedule.num_train_steps:,} steps; "
                       f"{parameters:,} parameters; {run.setup.placement.describe()}.")
    run.reporter.print(line)
    if run.plan:
        run.reporter.print(packing.describe(run.plan))
    return step


def train(run: Run, first_step: int) -> int:
    """Makes the updates; returns the step at which it ended."""
    features, training = run.features, run.training
    assert features and training
    if first_step >= training.last_step or run.best.given_up:
        return first_step
    if run.plan:
        batches = packed_inputs.batches(features, run.plan, first_step)
    else:
        plan = batching.training_plan(
            features.lengths, run.settings.train_batch_size, training.schedule.num_train_steps,
            run.settings.optimization.random_seed, run.task.max_seq_length, run.static_shapes)
        batches = batching.batches(features, plan, first_step)
    return setup.train(run.setup, training, run.reporter, batches, first_step,
                       evaluate=functools.partial(_evaluate_and_keep, run))


def keep_best(run: Run, step: int) -> tuple[int, dict[str, float] | None]:
    """Evaluates the last weights where evaluations are wanted, and goes back to the best ones.

    Returns:
        the step of the weights that the model has now; their metrics, None without evaluations.
    """
    if not (run.settings.do_eval or run.settings.loop.eval_every_steps):
        return step, None
    if not run.best.at(step):
        _evaluate_and_keep(run, step)
    run.best.remove_others()
    best = run.best.best
    assert best
    metrics = run.best.at(step)
    if best["step"] != step:
        step = int(best["step"])
        load.load_into(run.setup.model, run.best.prefix)
        run.evaluator.forget()
        run.reporter.print(f"The weights of step {step:,} are the best.")
        metrics = evaluate(run, step)
    run.reporter.print(run.best.table())
    return step, metrics


def finish(run: Run, last_step: int, metrics: dict[str, float] | None) -> str:
    """Writes the final model and the learning curve, and removes what only training needs; returns the model's folder.

    Args:
        run: Run.
        last_step: at which training ended.
        metrics: of the weights that the model has.
    """
    directory, metric, training = run.setup.directory, run.task.metric, run.training
    assert training
    run.reporter.flush()
    folder = directory.write_final(all_variables(run.setup.model), run.config, run.initial.vocab_file)
    _describe(run, folder, metrics or {})
    if run.setup.placement.is_chief:
        curve.draw(directory.path, directory.join(run_files.LEARNING_CURVE), run.task.name,
                   (curve.LOSS, curve.Panel(metric, {metric: metric})))
    if last_step >= training.schedule.num_train_steps or run.best.given_up:
        directory.finish(training.schedule.num_train_steps, run.settings.keep_checkpoints)
    return folder


def load_trained(run: Run) -> int:
    """Loads weights that are evaluated or used to predict; returns the step they are of, 0 where unknown."""
    for member in run.models:
        if member.config.replace(do_lower_case=None) != run.config.replace(do_lower_case=None):
            raise BertError(f"{member.config_file} differs from {run.initial.config_file}: the models of an ensemble "
                            f"need the same configuration.")
        loaded = load_weights(run.task, run.setup.model, member)
        assert member.checkpoint
        run.reporter.print(f"{member.checkpoint.path}: {len(loaded.read)} tensors loaded.")
    for order in run.label_orders:
        if order.note:
            run.reporter.print(order.note)
    # The metric that the run selected by: the task at hand may be another, such as AX with MNLI's model.
    folder = run.setup.directory.path
    best = best_of(read_evaluations(folder), description.metric(folder) or run.task.metric)
    return int(best["step"]) if best else 0


def evaluate(run: Run, step: int) -> dict[str, float]:
    """Metrics of the dev splits, reported and written to eval_results.txt."""
    metrics = run.evaluator.metrics(run.settings.eval_batch_size)
    run.reporter.evaluation(step, metrics)
    run.reporter.flush()
    return metrics


def predict(run: Run, metrics: dict[str, float] | None) -> tuple[str, ...]:
    """Writes the prediction files of the test splits; returns their paths."""
    return run.evaluator.write_predictions(run.settings.predict_batch_size, run.setup.directory, metrics or {})


def _batch_sizes(settings: FineTuningSettings) -> dict[str, int]:
    sizes = {"eval_batch_size": settings.eval_batch_size, "predict_batch_size": settings.predict_batch_size}
    return {"train_batch_size": settings.train_batch_size, **sizes} if settings.do_train else sizes


def _training_features(task: Task, splits: Splits, tokenizer: Any, is_chief: bool) -> Features:
    features = splits.features("train", True, tokenizer, is_chief)
    if not len(features):
        raise BertError(f"{', '.join(task.files('train'))}: holds no example to train on.")
    return features


def _steps(settings: FineTuningSettings, features: Features, plan: PackedPlan | None) -> int:
    if plan:
        return len(plan.examples)
    return max(1, int(len(features) / settings.train_batch_size * settings.num_train_epochs))


def _training(made: Setup, settings: FineTuningSettings, steps: int) -> Training:
    schedule = WarmupLinearDecay(
        settings.optimization.learning_rate, steps, int(steps * settings.warmup_proportion))
    return Training(setup.build_optimizer(made, settings.optimization), schedule, settings.optimization, settings.loop)


def _evaluate_and_keep(run: Run, step: int) -> bool:
    """Evaluates the weights of a step, where that has not been done; returns whether to stop training."""
    if run.best.at(step):
        return run.best.given_up
    run.evaluator.forget()
    return run.best.add(step, evaluate(run, step), all_variables(run.setup.model))


def _describe(run: Run, folder: str, metrics: dict[str, float]) -> None:
    if run.setup.directory.writable:
        description.write(folder, run.task, metrics)


def _decisive_settings(run: Run, training: Training) -> dict[str, Any]:
    """What decides the final weights, for run.json."""
    settings = run.settings
    return {
        **{f"config.{key}": value for key, value in dataclasses.asdict(run.config).items()},
        **training.decisive_settings(),
        "train_batch_size": settings.train_batch_size, "num_train_epochs": settings.num_train_epochs,
        "init_checkpoint": settings.initial_model.init_checkpoint,
        "static_shapes": run.static_shapes, "data": run.splits.key("train", training=True),
        **({"packed_rows": [run.plan.examples.shape[1], run.plan.length]} if run.plan else {}),
    }

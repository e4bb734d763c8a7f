"""Fine-tuning: a task and settings in; a trained model, its figures and its predictions out (paper, section 3.2).

The same strategies, precision, resume and reports as in pre-training; what differs is a Task (`tasks.task`).
"""

import dataclasses
import functools
import math
import os

import keras
import numpy as np

from finetuning.best_model import BestModel
from finetuning.evaluation import Evaluator
from finetuning.objective import TaskObjective
from finetuning.prediction import Predictor
from finetuning.splits import Splits
from foundation import files
from foundation.errors import BertError
from inputs import batching
from inputs.feature_cache import FeatureCache
from modeling.checkpoints import load
from modeling.models import named_variables
from training import curve, run_directory, strategy
from training.initial_model import StartingPoint
from training.loop import TrainLoop
from training.optimization import make_optimizer, warmup_linear_decay
from training.reporting import Reporter
from training.step import TrainStep
from training.tokenizers import tokenizer_of


@dataclasses.dataclass
class Report:
    """What a run came to.

    Attributes:
        step: updates made.
        evaluation: figures of the last evaluation, of the model that is kept, or None.
        predictions: paths of the prediction files.
        final_model: folder of the model, or None where nothing was trained.
    """

    step: int = 0
    evaluation: dict | None = None
    predictions: tuple = ()
    final_model: str | None = None

    def summary(self):
        """Lines for the person watching."""
        lines = [f"Wrote {path}" for path in self.predictions]
        return "\n".join([*lines, f"Done. Model: {self.final_model}" if self.final_model else "Done."])


def run(task, settings):
    """Trains, evaluates, predicts, or all of it.

    Args:
        task: Task.
        settings: FineTuningSettings.

    Returns:
        Report.

    Raises:
        BertError: what the user can mend; see each part.
    """
    return FineTuningRun(task, settings).run()


def description(output_dir):
    """What the task of a finished (or begun) run said of itself: labels, lengths, columns; {} where there is no run."""
    for folder in (os.path.join(output_dir, "final_model"), output_dir):
        path = os.path.join(folder, load.TASK_FILE)
        if files.exists(path):
            return files.read_json(path)
    return {}


class FineTuningRun:
    """One command's work, from settings to report.

    Args:
        task: Task.
        settings: FineTuningSettings.
    """

    def __init__(self, task, settings):
        self.task, self.settings = task, settings
        if not (settings.do_train or settings.do_eval or settings.do_predict):
            raise BertError("Nothing to do: give --do_train=true, --do_eval=true, --do_predict=true, or several.")
        if settings.early_stop and not settings.loop.eval_every_steps:
            raise BertError("--early_stop counts evaluations during training: give --eval_every, a number of steps.")
        self.members = [StartingPoint(each) for each in self._start_settings()]
        self.start = self.members[0]
        self.start.check_length(task.max_seq_length)
        self.vocab_file, self.tokenizer = tokenizer_of(self.start)
        task.tokenizer = self.tokenizer
        self.config = self.start.config.replace(do_lower_case=self.start.do_lower_case)
        self.placement = strategy.create(settings.hardware)
        self._check_batches()
        self.static_shapes = {"auto": self.placement.platform == "tpu"}.get(
            settings.static_shapes, settings.static_shapes == "true")
        self.directory = run_directory.RunDirectory(
            settings.loop.output_dir, settings.loop.keep_checkpoint_max, self.placement.is_chief)
        self.cache = FeatureCache(settings.cache_dir or self.directory.join("features"), self.tokenizer,
                                  self.placement.is_chief)
        with self.placement.strategy.scope():
            keras.utils.set_random_seed(settings.random_seed)
            # Packing saves what padding costs wherever shapes may depend on data.
            packs = self.placement.platform == "cpu" and not self.placement.xla and not self.static_shapes
            self.model = task.model(self.config, self.placement.dtype, packs)
            self.objective = TaskObjective(task, self.model)
        self.splits = Splits(task, self.cache, self.placement.is_chief)
        self.evaluator = Evaluator(
            task, self.splits, Predictor(task, self.placement, self.objective, self.static_shapes),
            [functools.partial(self._load_member, member) for member in self.members] if settings.ensemble else ())

    def run(self):
        """Does what the settings say."""
        settings = self.settings
        report = Report()
        self._read_ahead()
        if settings.do_train:
            self._train(report)
        else:
            report.step = self._load_trained()
        if settings.do_eval and not settings.do_train:
            self.reporter = Reporter(self.directory, 0, 1, 1, report.step, continues=True)
            report.evaluation = self._evaluate(report.step)
            self.reporter.flush()
        if settings.do_predict:
            report.predictions = self.evaluator.write_predictions(settings.predict_batch_size, self.directory)
            if report.final_model:
                # Predicting a file with answers may tune a threshold.
                self._write_description(report.final_model)
        return report

    def _train(self, report):
        settings = self.settings
        features = self.splits.features("train", training=True)
        if not len(features):
            raise BertError(f"{', '.join(self.task.files('train'))}: no example to train on.")
        self.objective.terms_per_row = self.task.terms_per_row(features)
        steps = max(1, int(len(features) / settings.train_batch_size * settings.num_train_epochs))
        optimization = dataclasses.replace(
            settings.optimization, num_train_steps=steps, num_warmup_steps=int(steps * settings.warmup_proportion))
        with self.placement.strategy.scope():
            optimizer = make_optimizer(optimization)
            optimizer.build(self.objective.variables)
        state = {**self.objective.variables, **optimizer.slots()}
        last = min(steps, settings.loop.stop_at_step or steps)
        first = self._begin(state, optimization, features, last)

        def rate(step):
            return warmup_linear_decay(step, optimization.learning_rate, steps, optimization.num_warmup_steps)

        plan = batching.training_plan(features.lengths, settings.train_batch_size, steps, settings.random_seed,
                                      self.task.max_seq_length, self.static_shapes)
        step = TrainStep(self.placement, self.objective, optimizer, rate, optimization, settings.random_seed)
        loop = TrainLoop(self.placement, step, state, self.directory, self.reporter, settings.loop, _as_it_is,
                         self._evaluate_in_passing if settings.loop.eval_every_steps else None)
        reached = first
        if first < last and not self.best.given_up:
            reached = loop.run(batching.batches(features, plan, first), first, last)
        self._finish_training(report, reached)

    def _begin(self, state, optimization, features, last_step):
        """Claims the folder, loads what there is to go on from, reports; returns the step."""
        settings, directory = self.settings, self.directory
        directory.claim(self._decisive_settings(optimization))
        directory.note_model(self.config, self.vocab_file)
        self._write_description(directory.path)
        # A run's checkpoints hold what it trains: a frozen encoder always comes from --init_checkpoint.
        frozen = len(self.model.weights) > len(self.objective.variables)
        loaded = None
        if self.start.checkpoint and (frozen or not directory.checkpoints()):
            loaded = self.start.load(self.model, new_head=True)
        first = directory.restore(state)
        parameters = sum(int(np.prod(variable.shape)) for variable in self.model.weights)
        self.reporter = Reporter(directory, last_step, settings.train_batch_size,
                                 float(np.diff(features.row_splits).mean()) * features.sequences_per_row, first or 0)
        self.best = BestModel(directory, self.task.metric, settings.early_stop, first or 0)
        say = self.reporter.say
        say(f"{self.task.name}: {len(features):,} rows, {optimization.num_train_steps:,} steps; {parameters:,} "
            f"parameters; {self.placement.describe()}.")
        if first is not None:
            say(f"Going on from step {first:,} in {directory.path}.")
            return first
        if loaded:
            say(f"{self.start.checkpoint.path}: {loaded.summary()}")
        elif self.start.checkpoint:
            raise BertError(f"{directory.path}: none of its checkpoints can be read. Remove them to start again.")
        else:
            say("warning: no --init_checkpoint: the model starts from random weights.")
        return 0

    def _finish_training(self, report, step):
        """Evaluates, goes back to the best weights, writes the final model."""
        settings = self.settings
        report.step = step
        if settings.do_eval or settings.loop.eval_every_steps:
            report.evaluation = self.best.at(step)
            if not report.evaluation:
                self._evaluate_in_passing(step)
                report.evaluation = self.best.at(step)
            best = self.best.best
            if best["step"] != step:
                load.load_into(self.model, self.best.prefix)
                self.evaluator.forget()
                self.reporter.say(f"The best weights are those of step {best['step']:,}.")
                report.step, report.evaluation = best["step"], self._evaluate(best["step"])
            self.reporter.say(self.best.table())
        self.reporter.flush()
        report.final_model = self.directory.write_final(self._weights(), self.config, self.vocab_file)
        self._write_description(report.final_model)
        if self.placement.is_chief:
            curve.draw(self.directory.path, self.directory.join("learning_curve.png"), self.task.name,
                       (curve.LOSS, curve.Panel(self.task.metric, {self.task.metric: self.task.metric})))

    def _load_trained(self):
        """Weights of the finished run, or of --init_checkpoint; returns the step they are of, 0 where unknown."""
        for member in self.members:
            if member.config.replace(do_lower_case=None) != self.config.replace(do_lower_case=None):
                raise BertError(f"{member.config_file} differs from {self.start.config_file}: an ensemble is of models "
                                f"of one configuration.")
            loaded = self._load_member(member)
            if self.placement.is_chief:
                print(f"{member.checkpoint.path}: {len(loaded.read)} tensors read.", flush=True)
        # The figure that the run chose by: the task at hand may be another, as AX with MNLI's model.
        metric = description(self.directory.path).get("metric", self.task.metric)
        best = BestModel(self.directory, metric, first_step=math.inf).best
        return best["step"] if best else 0

    def _load_member(self, member):
        loaded = member.load(self.model)
        lacking = [name for name in loaded.initial if not name.startswith("bert/pooler/")]
        if lacking:
            raise BertError(f"{member.checkpoint.path}: holds no trained {self.task.name} model "
                            f"({lacking[0]} is not there). Train first: --do_train=true.")
        return loaded

    def _evaluate_in_passing(self, step):
        self.evaluator.forget()
        return self.best.note(step, self._evaluate(step), self._weights())

    def _evaluate(self, step):
        figures = self.evaluator.figures(self.settings.eval_batch_size)
        self.reporter.evaluation(step, figures)
        return figures

    def _read_ahead(self):
        """Reads what is evaluated and predicted before anything is trained, to hear of mistakes there in time."""
        settings = self.settings
        evaluates = settings.do_eval or settings.loop.eval_every_steps
        if evaluates and not self.task.dev_splits:
            raise BertError(f"{self.task.name} has no dev set to evaluate.")
        for split in (*(self.task.dev_splits if evaluates else ()),
                      *(self.task.test_splits if settings.do_predict else ())):
            self.splits.examples(split)

    def _weights(self):
        return named_variables(self.model, trainable=False)

    def _write_description(self, folder):
        if self.directory.writable:
            files.write_json(os.path.join(folder, load.TASK_FILE), {
                "task_name": self.task.name, "metric": self.task.metric,
                "max_seq_length": self.task.max_seq_length, **self.task.describe()})

    def _start_settings(self):
        """What to start from: where nothing is trained, the run in --output_dir if there is one, as in the release, or
        --init_checkpoint; or all runs of an ensemble."""
        settings = self.settings
        output_dir = settings.loop.output_dir
        if settings.ensemble:
            if settings.do_train:
                raise BertError("--ensemble averages finished runs: give it with --do_eval or --do_predict alone.")
            return [dataclasses.replace(settings.start, init_checkpoint=member) for member in settings.ensemble]
        if settings.do_train:
            return [settings.start]
        if not run_directory.holds_weights(output_dir):
            if settings.start.init_checkpoint:
                return [settings.start]
            raise BertError(f"{output_dir}: holds no trained model. Train first (--do_train=true), or give "
                            f"--init_checkpoint.")
        return [dataclasses.replace(settings.start, init_checkpoint=output_dir)]

    def _check_batches(self):
        settings, placement = self.settings, self.placement
        if settings.do_train:
            placement.check_batch(settings.train_batch_size, "train_batch_size",
                                  settings.optimization.gradient_accumulation_steps)
        placement.check_batch(settings.eval_batch_size, "eval_batch_size")
        placement.check_batch(settings.predict_batch_size, "predict_batch_size")

    def _decisive_settings(self, optimization):
        """What decides the weights a run ends with, for run.json."""
        settings = self.settings
        return {
            **{f"config.{key}": value for key, value in dataclasses.asdict(self.config).items()},
            **dataclasses.asdict(optimization),
            **{name: getattr(settings, name) for name in ("train_batch_size", "num_train_epochs", "random_seed")},
            "init_checkpoint": settings.start.init_checkpoint, "static_shapes": self.static_shapes,
            "data": self.cache.key(self.task, "train", training=True),
        }


def _as_it_is(error):
    return error

"""Pre-training: settings in, a trained and evaluated BERT out (paper, section 3.1 and appendix A.2)."""

import dataclasses
import math
import os

import keras
import numpy as np
import tensorflow as tf

from data_prep import records
from foundation import files
from foundation.errors import BertError
from modeling import objective
from modeling.models import PretrainingModel, named_variables
from training import curve, input_pipeline, run_directory, strategy
from training.initial_model import StartingPoint
from training.loop import TrainLoop
from training.optimizers.optimizer import make_optimizer
from training.schedule import WarmupLinearDecay
from training.reporting import Reporter
from training.step import EvaluationStep, TrainStep


class PretrainingObjective:
    """Masked words and the next sentence, as an objective of `training.step`."""

    def __init__(self, model):
        self.model = model
        self.variables = {name: variable.value for name, variable in named_variables(model).items()}
        self.next_sentence = model.cls.seq_relationship is not None
        self.sum_names = ("masked_lm_loss", "masked_lm_correct", "masked_lm_weight", "examples")
        if self.next_sentence:
            self.sum_names += ("next_sentence_loss", "next_sentence_correct")

    def weights(self, features):
        """Predictions and rows that count."""
        return {"masked_lm_weight": tf.reduce_sum(features["masked_lm_weights"]),
                "examples": tf.reduce_sum(tf.cast(features["input_mask"][:, 0], tf.float32))}

    def loss(self, features, weights, dropout_seed):
        """The release's total loss, as this part's share of the whole batch's."""
        sums = objective.pretraining_sums(self.model(features, dropout_seed=dropout_seed), features)
        return objective.total_loss(sums, **weights), sums

    def summarize(self, sums):
        """Mean losses and accuracies, by the release's names."""
        predictions, examples = max(sums["masked_lm_weight"], 1e-5), max(sums["examples"], 1e-5)
        figures = {"masked_lm_loss": sums["masked_lm_loss"] / predictions,
                   "masked_lm_accuracy": sums["masked_lm_correct"] / predictions}
        if "next_sentence_loss" in sums:
            figures["next_sentence_loss"] = sums["next_sentence_loss"] / examples
            figures["next_sentence_accuracy"] = sums["next_sentence_correct"] / examples
        return {"loss": figures["masked_lm_loss"] + figures.get("next_sentence_loss", 0.0), **figures}


@dataclasses.dataclass
class Report:
    """What a run came to.

    Attributes:
        step: updates made in all.
        evaluation: the last evaluation's figures, or None.
        final_model: folder of the model, or None where nothing was trained.
    """

    step: int
    evaluation: dict | None = None
    final_model: str | None = None

    def summary(self):
        """A line for the person watching."""
        return f"Done at step {self.step:,}." + (f" Model: {self.final_model}" if self.final_model else "")


def run(settings):
    """Trains, evaluates, or both.

    Args:
        settings: PretrainingSettings.

    Returns:
        Report.

    Raises:
        BertError: what the user can mend; see each part.
    """
    return PretrainingRun(settings).run()


class PretrainingRun:
    """One command's work, from settings to report.

    Args:
        settings: PretrainingSettings.
    """

    def __init__(self, settings):
        self.settings = settings
        if not (settings.do_train or settings.do_eval):
            raise BertError("Nothing to do: give --do_train=true, --do_eval=true, or both.")
        self.start = StartingPoint(settings.start, training=settings.keep_optimizer)
        self.config = self._config()
        schema = records.PretrainingSchema(settings.max_seq_length, settings.max_predictions_per_seq)
        self.train_source = self._source(settings.input_file, "input_file", schema)
        held_out = settings.eval_input_file
        self.eval_source = self._source(held_out, "eval_input_file", schema) if held_out else self.train_source
        self._check_manifest()
        self.vocab_file = self._vocab_file()
        self.placement = strategy.create(settings.hardware)
        self.placement.check_batch(settings.train_batch_size, "train_batch_size",
                                   settings.optimization.gradient_accumulation_steps)
        self.placement.check_batch(settings.eval_batch_size, "eval_batch_size")
        self.directory = run_directory.RunDirectory(
            settings.loop.output_dir, settings.loop.keep_checkpoint_max, self.placement.is_chief)
        with self.placement.strategy.scope():
            keras.utils.set_random_seed(settings.random_seed)
            self.model = PretrainingModel(
                self.config, next_sentence=settings.next_sentence, dtype=self.placement.dtype,
                skip_padding=self.placement.platform == "cpu" and not self.placement.xla)
            self.objective = PretrainingObjective(self.model)
            self.optimizer = make_optimizer(settings.optimization)
            self.optimizer.build(self.objective.variables)
        self.state = {**self.objective.variables, **self.optimizer.slots()}

    def run(self):
        """Trains and evaluates as told."""
        settings = self.settings
        report = Report(self._start())
        if settings.do_train:
            self._train(report)
        if settings.do_eval:
            report.evaluation = self._evaluate(report.step)
            self.reporter.flush()
        if settings.do_train and self.placement.is_chief:
            curve.draw(self.directory.path, self.directory.join("learning_curve.png"), "Pre-training",
                       (curve.MASKED_LM_LOSS, curve.PRETRAINING_ACCURACY))
        return report

    def _start(self):
        """Loads what there is to go on from; returns the step."""
        settings = self.settings
        if settings.do_train:
            self.directory.claim(self._decisive_settings())
            self.directory.note_model(self.config, self.vocab_file)
        step = self.directory.restore(self.state if settings.do_train else self.objective.variables)
        resumed = step is not None
        if not resumed:
            step = self._initialise()
        self.reporter = Reporter(
            self.directory, self._last_step(), settings.train_batch_size, settings.max_seq_length, step)
        parameters = sum(math.prod(variable.shape) for variable in self.objective.variables.values())
        self.reporter.say(f"BERT of {self.config.num_hidden_layers} layers, hidden {self.config.hidden_size}, "
                          f"{parameters:,} parameters; {self.placement.describe()}.")
        if resumed:
            self.reporter.say(f"Going on from step {step:,} in {self.directory.path}.")
        return step

    def _initialise(self):
        """Weights from --init_checkpoint, or random ones; returns the step to start at."""
        settings = self.settings
        if not self.start.checkpoint:
            if settings.keep_optimizer:
                raise BertError("--keep_optimizer needs --init_checkpoint, a checkpoint of a training run.")
            if not settings.do_train:
                raise BertError(f"{self.directory.path} holds no checkpoint to evaluate. Train first, or give "
                                f"--init_checkpoint.")
            return 0
        if settings.keep_optimizer:
            return run_directory.take_all(self.state, self.start.checkpoint)
        loaded = self.start.load(self.model)
        if self.placement.is_chief:
            print(f"{self.start.checkpoint.path}: {loaded.summary()}", flush=True)
        return 0

    def _train(self, report):
        settings, optimization = self.settings, self.settings.optimization

        def rate(step):
            return warmup_linear_decay(step, optimization.learning_rate, optimization.num_train_steps,
                                       optimization.num_warmup_steps)

        step = TrainStep(self.placement, self.objective, self.optimizer, rate, optimization, settings.random_seed)
        batches = input_pipeline.training_batches(
            self.train_source, settings.train_batch_size, settings.random_seed, first_batch=report.step,
            shuffle_buffer=settings.shuffle_buffer)
        loop = TrainLoop(
            self.placement, step, self.state, self.directory, self.reporter, settings.loop,
            lambda error: input_pipeline.describe_read_error(error, self.train_source.files),
            self._evaluate_in_passing if settings.loop.eval_every_steps else None)
        loop.run(batches, report.step, self._last_step())
        report.step = max(report.step, self._last_step())
        report.final_model = self.directory.write_final(self.objective.variables, self.config, self.vocab_file)
        if not self.vocab_file:
            self.reporter.say("warning: the final model has no vocab.txt; give --vocab_file to have it there.")

    def _evaluate_in_passing(self, step):
        self._evaluate(step)

    def _evaluate(self, step):
        """Held-out figures at a step, reported and written to eval_results.txt."""
        batches = input_pipeline.evaluation_batches(
            self.eval_source, self.settings.eval_batch_size, self.settings.max_eval_steps)
        dataset = self.placement.strategy.distribute_datasets_from_function(batches)
        try:
            figures = EvaluationStep(self.placement, self.objective).run(dataset)
        except tf.errors.OpError as error:
            raise input_pipeline.describe_read_error(error, self.eval_source.files) from None
        figures["masked_lm_perplexity"] = float(np.exp(min(figures["masked_lm_loss"], 700.0)))
        self.reporter.evaluation(step, figures)
        return figures

    def _last_step(self):
        steps = self.settings.optimization.num_train_steps
        return min(steps, self.settings.loop.stop_at_step or steps)

    def _config(self):
        settings = self.settings
        config = self.start.config
        # A left-to-right model stays one when it is read back from its final_model.
        config = config.replace(causal=config.causal or settings.causal)
        self.start.check_length(settings.max_seq_length)
        return config

    def _source(self, patterns, flag, schema):
        names = files.match(patterns, flag)
        records.check(names, schema, self.config.vocab_size)
        blank = {name: np.zeros((1, length), np.int64) for name, length in schema.lengths().items()}
        return input_pipeline.RecordSource(tuple(names), schema.parse, records.encode_pretraining(blank)[0])

    def _check_manifest(self):
        file = self.train_source.files[0]
        noted = records.manifest_of(file)
        if self.settings.next_sentence and noted.get("settings", {}).get("next_sentence") is False:
            raise BertError(f"{file} was made without next sentences: pass --next_sentence=false.")
        size = noted.get("vocabulary", {}).get("size", 0)
        if size > self.config.vocab_size:
            raise BertError(f"{file} was made with a vocabulary of {size}; vocab_size in "
                            f"{self.start.config_file} is {self.config.vocab_size}.")
        theirs = self.start.checkpoint.vocab_file if self.start.checkpoint else None
        made_with = noted.get("vocabulary", {}).get("sha256")
        if theirs and made_with and made_with != files.sha256(theirs):
            print(f"warning: {file} was made with another vocabulary than {theirs}, the checkpoint's: its words are "
                  f"not the model's.", flush=True)

    def _vocab_file(self):
        """--vocab_file, or that of the records' manifest, or the one beside configuration or initial checkpoint."""
        noted = records.manifest_of(self.train_source.files[0]).get("vocabulary", {}).get("path")
        if not self.settings.start.vocab_file and noted and files.exists(noted):
            return noted
        return self.start.vocab_file

    def _decisive_settings(self):
        """What decides the weights a run ends with, for run.json."""
        settings = self.settings
        return {
            **{f"config.{key}": value for key, value in dataclasses.asdict(self.config).items()},
            **dataclasses.asdict(settings.optimization),
            "init_checkpoint": settings.start.init_checkpoint,
            **{name: getattr(settings, name) for name in (
                "keep_optimizer", "max_seq_length", "max_predictions_per_seq", "train_batch_size",
                "next_sentence", "shuffle_buffer", "random_seed")},
            "records": [[os.path.basename(name), files.size(name)] for name in self.train_source.files],
        }

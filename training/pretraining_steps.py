"""The steps of a pre-training run, in the order in which `training.pretraining` takes them."""

import dataclasses
import math
from typing import Any

import numpy as np

from data_prep import records
from foundation import run_files
from foundation.errors import BertError
from modeling.config import BertConfig
from modeling.models import PretrainingModel
from tokenization.vocabulary import Vocabulary
from training import curve, input_pipeline, packing, setup
from training.devices import Placement
from training.input_pipeline import Dataset, RecordSource
from training.packing import Packing
from training.pretraining_inputs import Inputs
from training.pretraining_objective import PretrainingObjective
from training.record_counter import RecordCounter
from training.reporting import Reporter
from training.schedule import WarmupLinearDecay
from training.settings import PretrainingSettings
from training.setup import Setup, Training
from training.step import EvaluationStep


@dataclasses.dataclass(frozen=True)
class Run:
    """A run that is set up.

    Attributes:
        settings: PretrainingSettings.
        inputs: Inputs.
        config: of the model.
        vocab_file: of the records, for the final model; None where unknown.
        train_source, eval_source: RecordSource.
        packing: Packing of the training records; None where a row is a record.
        setup: Setup.
        training: Training.
        evaluation: EvaluationStep, traced at the first evaluation.
        reporter: Reporter; its clock starts with the first update.
    """

    settings: PretrainingSettings
    inputs: Inputs
    config: BertConfig
    vocab_file: str | None
    train_source: RecordSource
    eval_source: RecordSource
    packing: Packing | None
    setup: Setup[PretrainingObjective]
    training: Training
    evaluation: EvaluationStep
    reporter: Reporter


def prepare(settings: PretrainingSettings, inputs: Inputs) -> Run:
    """Checks the records, chooses devices, builds model and optimizer.

    Raises:
        BertError: records that are damaged or belong to another model; see `training.setup.place`.
    """
    config = _config(settings, inputs)
    schema = records.PretrainingSchema(settings.max_seq_length, settings.max_predictions_per_seq, config.vocab_size,
                                       config.type_vocab_size)
    for paths in {tuple(inputs.train_files), tuple(inputs.eval_files)}:
        records.check(paths, schema)
    _check_manifest(settings, inputs, config)

    placement, directory = setup.place(
        settings.hardware, settings.loop,
        {"train_batch_size": settings.train_batch_size, "eval_batch_size": settings.eval_batch_size},
        settings.optimization.gradient_accumulation_steps)
    inputs.initial.check_sizes()
    made = setup.make_setup(
        placement, directory, settings.optimization.random_seed,
        lambda: PretrainingModel(config, settings.next_sentence, unpad=placement.unpads, dtype=placement.dtype),
        PretrainingObjective)
    schedule = WarmupLinearDecay(
        settings.optimization.learning_rate, settings.num_train_steps, settings.num_warmup_steps)
    training = Training(setup.build_optimizer(made, settings.optimization), schedule, settings.optimization,
                        settings.loop)
    train_source = RecordSource(tuple(inputs.train_files), schema)
    packed = _packing(settings, train_source, placement) if settings.do_train else None
    records_per_step = packed.records if packed else settings.train_batch_size
    positions = packed.rows * settings.max_seq_length / packed.records if packed else settings.max_seq_length
    reporter = Reporter(directory, training.last_step, records_per_step, positions)
    return Run(settings, inputs, config, _vocab_file(inputs), train_source,
               RecordSource(tuple(inputs.eval_files), schema), packed, made, training,
               EvaluationStep(placement, made.objective), reporter)


def start(run: Run) -> int:
    """Claims the folder and gives the model its first weights; returns the step."""
    initial, directory = run.inputs.initial, run.setup.directory
    if run.settings.do_train:
        directory.claim(_decisive_settings(run))
        directory.write_model_files(run.config, run.vocab_file)
        step, line = setup.initial_weights(run.setup, initial, run.training.state(run.setup),
                                           keep_optimizer=run.settings.keep_optimizer)
        directory.drop_reports_after(step)
    else:
        step, line = setup.trained_weights(run.setup, initial)
    parameters = sum(math.prod(variable.shape) for variable in run.setup.objective.variables.values())
    run.reporter.print(f"BERT with {run.config.num_hidden_layers} layers, hidden size {run.config.hidden_size}, "
                       f"{parameters:,} parameters; {run.setup.placement.describe()}.")
    run.reporter.print(line)
    if run.packing:
        run.reporter.print(run.packing.describe(run.settings.max_seq_length))
    return step


def train(run: Run, first_step: int) -> tuple[int, str]:
    """Makes the updates and writes the final model; returns the last step and the model's folder."""
    counter = _counter(run, first_step)
    batches = _training_batches(run, first_step, counter)

    def describe_error(error: BaseException) -> BaseException:
        return input_pipeline.describe_read_error(error, run.train_source)

    def evaluate_in_passing(step: int) -> bool:
        if not run.setup.directory.has_evaluation(step):
            evaluate(run, step)
        return False

    step = setup.train(run.setup, run.training, run.reporter, batches, first_step, describe_error,
                       evaluate_in_passing, counter)
    return step, run.setup.directory.write_final(run.setup.objective.variables, run.config, run.vocab_file)


def evaluate(run: Run, step: int) -> dict[str, float]:
    """Metrics of the evaluation records, reported and written to eval_results.txt."""
    batches = _evaluation_batches(run)
    dataset = run.setup.placement.distribute(batches)
    try:
        metrics = run.evaluation.run(dataset)
    except input_pipeline.ERRORS as error:
        raise input_pipeline.describe_read_error(error, run.eval_source) from None
    metrics["masked_lm_perplexity"] = float(np.exp(min(metrics["masked_lm_loss"], 700.0)))
    run.reporter.evaluation(step, metrics)
    run.reporter.flush()
    return metrics


def draw_curve(run: Run) -> None:
    """Draws learning_curve.png."""
    if run.setup.placement.is_chief:
        directory = run.setup.directory
        held_out = "held out" if run.settings.eval_input_file else "training records"
        curve.draw(directory.path, directory.join(run_files.LEARNING_CURVE), "Pre-training",
                   (curve.MASKED_LM_LOSS, curve.PRETRAINING_ACCURACY), held_out)


def _config(settings: PretrainingSettings, inputs: Inputs) -> BertConfig:
    """The configuration, with what flags add: a left-to-right model stays one when its final_model is read back."""
    config = inputs.initial.config
    if settings.initial_model.do_lower_case is not None:
        config = config.replace(do_lower_case=inputs.initial.do_lower_case)
    return config.replace(causal=config.causal or settings.causal)


def _packing(settings: PretrainingSettings, source: RecordSource, placement: Placement) -> Packing | None:
    if not packing.is_on(settings.pack, placement):
        return None
    return packing.measure(source, settings.train_batch_size, settings.optimization.random_seed,
                           settings.shuffle_buffer,
                           placement.num_replicas * settings.optimization.gradient_accumulation_steps)


def _counter(run: Run, first_step: int) -> RecordCounter | None:
    """Counts the records of a packed run, from where its checkpoint ends."""
    if not run.packing:
        return None
    prefix = dict(run.setup.directory.checkpoints()).get(first_step)
    # Without one, its first start: --keep_optimizer continues the step count on other records.
    return RecordCounter.of_checkpoint(prefix) if prefix else RecordCounter()


def _training_batches(run: Run, first_step: int, counter: RecordCounter | None) -> Dataset:
    settings, seed = run.settings, run.settings.optimization.random_seed
    if run.packing and counter:
        return packing.training_batches(run.train_source, run.packing.rows, seed, first_record=counter.records,
                                        shuffle_buffer=settings.shuffle_buffer)
    return input_pipeline.training_batches(run.train_source, settings.train_batch_size, seed, first_batch=first_step,
                                           shuffle_buffer=settings.shuffle_buffer)


def _evaluation_batches(run: Run) -> Dataset:
    settings = run.settings
    if packing.is_on(settings.pack, run.setup.placement):
        return packing.evaluation_batches(run.eval_source, settings.eval_batch_size,
                                          settings.eval_batch_size * settings.max_eval_steps)
    return input_pipeline.evaluation_batches(run.eval_source, settings.eval_batch_size, settings.max_eval_steps)


def _check_manifest(settings: PretrainingSettings, inputs: Inputs, config: BertConfig) -> None:
    """Compares the records' manifest, where they have one, with the settings and the model."""
    path, manifest = inputs.train_files[0], records.manifest_of(inputs.train_files[0])
    if settings.next_sentence and manifest.get("settings", {}).get("next_sentence") is False:
        raise BertError(f"{path} was made without next sentences: pass --next_sentence=false.")
    vocabulary = manifest.get("vocabulary", {})
    if vocabulary.get("size", 0) > config.vocab_size:
        raise BertError(f"{path} was made with a vocabulary of {vocabulary['size']}; vocab_size in "
                        f"{inputs.initial.config_file} is {config.vocab_size}.")
    checkpoint = inputs.initial.checkpoint
    own = checkpoint.vocab_file if checkpoint else None
    if own and vocabulary.get("sha256") and vocabulary["sha256"] != _vocabulary_sha256(own):
        print(f"warning: {path} was made with another vocabulary than the checkpoint's, {own}: its ids mean other "
              f"words to the model.", flush=True)


def _vocab_file(inputs: Inputs) -> str | None:
    """--vocab_file, or that of the records' manifest, or the one next to the configuration or checkpoint.

    The manifest's path counts only where the very vocabulary of the records is there: it may have changed since, and a
    manifest from elsewhere could name any file.
    """
    vocabulary = records.manifest_of(inputs.train_files[0]).get("vocabulary", {})
    path, sha256 = vocabulary.get("path"), vocabulary.get("sha256")
    if not inputs.initial.settings.vocab_file and path and sha256:
        if _vocabulary_sha256(path) == sha256:
            return path
        print(f"warning: {path} is not the vocabulary of the records any more. Pass --vocab_file to have one in the "
              f"final model.", flush=True)
    return inputs.initial.vocab_file


def _vocabulary_sha256(path: str) -> str | None:
    """The hash of a vocabulary's words; None where there is no vocabulary."""
    try:
        return Vocabulary.from_file(path).sha256
    except BertError:
        return None


def _decisive_settings(run: Run) -> dict[str, Any]:
    """What decides the final weights, for run.json."""
    settings = run.settings
    return {
        **{f"config.{key}": value for key, value in dataclasses.asdict(run.config).items()},
        **run.training.decisive_settings(),
        "init_checkpoint": settings.initial_model.init_checkpoint,
        **{name: getattr(settings, name) for name in (
            "keep_optimizer", "max_seq_length", "max_predictions_per_seq", "train_batch_size", "next_sentence",
            "shuffle_buffer")},
        "records": run.inputs.sizes(),
        **({"packed_rows": run.packing.rows} if run.packing else {}),
    }

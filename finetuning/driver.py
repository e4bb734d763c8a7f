"""Fine-tuning: a task and settings in; a trained model, its metrics and its predictions out (paper, section 3.2).

The devices, precision, resume and reports are those of pre-training; what differs is a Task (`tasks.task`).
"""

import dataclasses
import os
from collections.abc import Sequence

from finetuning.settings import FineTuningSettings
from finetuning.splits import Splits
from foundation import run_files
from foundation.errors import BertError
from inputs.feature_cache import FeatureCache
from tasks import labels
from tasks.labels import LabelOrder
from tasks.task import Task
from training import initial_model
from training.initial_model import InitialModel


@dataclasses.dataclass
class Report:
    """The result of a run.

    Attributes:
        step: updates of the weights that are kept.
        evaluation: their metrics, or None.
        predictions: paths of the prediction files.
        final_model: folder of the model, or None where nothing was trained.
    """

    step: int = 0
    evaluation: dict[str, float] | None = None
    predictions: tuple[str, ...] = ()
    final_model: str | None = None

    def summary(self) -> str:
        """Lines for the console."""
        lines = [f"Wrote {path}" for path in self.predictions]
        return "\n".join([*lines, f"Done. Model: {self.final_model}" if self.final_model else "Done."])


def run(task: Task, settings: FineTuningSettings) -> Report:
    """Trains, evaluates, predicts, or all of it.

    Args:
        task: Task.
        settings: FineTuningSettings.

    Returns:
        Report.

    Raises:
        BertError: anything the user can fix; see each step.
    """
    check(settings)
    models = initial_models(settings)
    models[0].check_length(task.max_seq_length)
    splits = read_ahead(task, models[0], settings)
    # A head that is trained is new: it has the order of the data.
    orders = [] if settings.do_train else label_orders(task, models)
    # Imported here: TensorFlow takes seconds, and mistakes in flags and files have been reported by now.
    from finetuning import steps

    run = steps.prepare(task, settings, models, splits, orders)
    report = Report()
    with run.setup.directory.held():
        if settings.do_train and steps.is_finished(run):
            report.step, report.evaluation, report.final_model = steps.reload(run)
        elif settings.do_train:
            last_step = steps.train(run, steps.start(run))
            report.step, report.evaluation = steps.keep_best(run, last_step)
            report.final_model = steps.finish(run, last_step, report.evaluation)
        else:
            report.step = steps.load_trained(run)
            if settings.do_eval:
                report.evaluation = steps.evaluate(run, report.step)
        if settings.do_predict:
            report.predictions = steps.predict(run, report.evaluation)
    return report


def check(settings: FineTuningSettings) -> None:
    """Raises BertError for flags that make no sense together."""
    if not (settings.do_train or settings.do_eval or settings.do_predict):
        raise BertError("Nothing to do: pass --do_train=true, --do_eval=true, --do_predict=true, or several.")
    if settings.early_stop and not settings.loop.eval_every_steps:
        raise BertError("--early_stop counts evaluations during training: pass --eval_every, a number of steps.")
    if settings.ensemble and settings.do_train:
        raise BertError("--ensemble averages finished runs: use it with --do_eval or --do_predict alone.")


def initial_models(settings: FineTuningSettings) -> list[InitialModel]:
    """The models a command starts from, one or those of an ensemble. The first line that applies decides:

        1. it trains:                       --init_checkpoint, or random weights of --bert_config_file
                                            (`training.setup.initial_weights` resumes the run in --output_dir)
        2. --ensemble:                      each of its runs
        3. --output_dir holds a run:        its final model or newest checkpoint, as in the release
        4. --init_checkpoint

    Raises:
        BertError: none of these, or a model without a configuration or vocabulary.
    """
    initial, output_dir = settings.initial_model, settings.loop.output_dir
    if settings.do_train:
        paths = [initial.init_checkpoint]
    elif settings.ensemble:
        paths = list(settings.ensemble)
    elif initial_model.holds_weights(output_dir):
        paths = [output_dir]
    elif initial.init_checkpoint:
        paths = [initial.init_checkpoint]
    else:
        raise BertError(f"{output_dir}: no trained model there. Train first (--do_train=true), or pass "
                        f"--init_checkpoint.")
    return [initial_model.find(dataclasses.replace(initial, init_checkpoint=path)) for path in paths]


def read_ahead(task: Task, initial: InitialModel, settings: FineTuningSettings) -> Splits:
    """Reads the data before anything is trained, so that errors in any of its files are reported at once."""
    evaluates = settings.do_eval or settings.loop.eval_every_steps > 0
    if evaluates and not task.dev_splits:
        raise BertError(f"{task.name} has no dev set to evaluate.")
    folder = settings.cache_dir or os.path.join(settings.loop.output_dir, run_files.FEATURES)
    splits = Splits(task, FeatureCache(folder), initial)
    if settings.do_train and not splits.has_features("train", training=True):
        splits.examples("train")
    for split in (*(task.dev_splits if evaluates else ()), *(task.test_splits if settings.do_predict else ())):
        splits.examples(split)
    return splits


def label_orders(task: Task, models: Sequence[InitialModel]) -> list[LabelOrder]:
    """Where each trained model's outputs have the task's labels; empty where outputs have no labels.

    Raises:
        BertError: a model has other labels.
    """
    if task.labels is None:
        return []
    checkpoints = [each.checkpoint for each in models if each.checkpoint]
    return [labels.order(task.labels, each.labels(), each.path) for each in checkpoints]

"""What a pre-training run reads: its initial model and its records, found without TensorFlow."""

import dataclasses
import os

from foundation import files
from foundation.errors import BertError
from training import initial_model
from training.initial_model import InitialModel
from training.settings import PretrainingSettings


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What a run reads.

    Attributes:
        initial: InitialModel.
        train_files: TFRecords to train on.
        eval_files: TFRecords to evaluate on.
    """

    initial: InitialModel
    train_files: list[str]
    eval_files: list[str]

    def sizes(self) -> list[list[str | int]]:
        """Name and bytes of each training file: another set of records is another run."""
        return [[os.path.basename(path), files.size(path)] for path in self.train_files]


def find(settings: PretrainingSettings) -> Inputs:
    """Finds the configuration, the checkpoint and the records. Raises BertError where one of them is missing."""
    if not (settings.do_train or settings.do_eval):
        raise BertError("Nothing to do: pass --do_train=true, --do_eval=true, or both.")
    initial = initial_model.find(settings.initial_model, training=settings.keep_optimizer)
    initial.check_length(settings.max_seq_length)
    if settings.keep_optimizer and not initial.checkpoint:
        raise BertError("--keep_optimizer needs --init_checkpoint, a checkpoint of a training run.")
    train_files = files.match(settings.input_file, "input_file")
    held_out = settings.eval_input_file
    return Inputs(initial, train_files, files.match(held_out, "eval_input_file") if held_out else train_files)

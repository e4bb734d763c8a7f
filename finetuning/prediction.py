"""A trained model over all rows of a data set: the outputs of each row, in the order of the rows."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
from tqdm import tqdm

from foundation.errors import BertError
from inputs import batching, packing
from inputs.features import Features
from modeling.checkpoints.load import LoadReport
from tasks.task import Task
from training import step
from training.devices import Placement
from training.initial_model import InitialModel
from training.step import PredictionStep


def load_weights(task: Task, model: keras.Model, initial: InitialModel) -> LoadReport:
    """Loads trained weights, head included, into a task's model. Raises BertError where the checkpoint lacks some."""
    loaded = initial.load(model)
    lacking = [name for name in loaded.initial if not name.startswith("bert/pooler/")]
    if lacking:
        assert initial.checkpoint
        raise BertError(f"{initial.checkpoint.path}: not a trained {task.name} model ({lacking[0]} is missing). "
                        f"Train first: --do_train=true.")
    return loaded


def as_arrays(task: Task, outputs: Mapping[str, list[Any]]) -> dict[str, Any]:
    """The outputs of rows (`RowPredictor.outputs`) as `tasks.task.Predicted` holds them."""
    return {name: values if name in task.token_outputs else np.stack(values) for name, values in outputs.items()}


class RowPredictor:
    """Runs a model over features, in batches of similar lengths or in packed ones.

    Args:
        task: Task.
        placement: Placement.
        predictor: runs the model.
        static_shapes: whether every batch is padded to the task's max_seq_length.
        packs: whether a row holds several examples, whatever `static_shapes` is.
    """

    def __init__(self, task: Task, placement: Placement, predictor: step.Predictor, static_shapes: bool,
                 packs: bool = False) -> None:
        self.task, self.placement, self.static_shapes, self.packs = task, placement, static_shapes, packs
        self.step = PredictionStep(placement, predictor)

    def outputs(self, features: Features, batch_size: int, description: str) -> dict[str, list[Any]]:
        """The model's outputs for every row.

        Args:
            features: Features, at least one row.
            batch_size: rows of a batch, over all devices.
            description: for the progress bar.

        Returns:
            dict of lists, an array per row; of the task's token outputs only the row's own positions.
        """
        found: dict[str, list[Any]] = {}
        with tqdm(total=len(features), desc=description, unit="row", leave=False, disable=None,
                  mininterval=1.0) as bar:
            for places, outputs in self._batches(features, batch_size):
                for name, values in outputs.items():
                    column = found.setdefault(name, [None] * len(features))
                    for each in places:
                        column[each.example] = (values[each.row, each.start : each.end]
                                                if name in self.task.token_outputs else values[each.slot])
                bar.update(len(places))
        return found

    def _batches(self, features: Features, batch_size: int
                 ) -> Iterator[tuple[list[packing.Place], dict[str, np.ndarray]]]:
        """The outputs of each batch, and where in them those of its examples are."""
        longest, tokens = self.task.max_seq_length, packing.tokens_of(features)
        if self.packs:
            plan = packing.prediction_plan(features, batch_size, longest, self.placement.num_replicas)
            batches, rows = packing.batches(features, plan), plan.examples
        else:
            unpacked = batching.prediction_plan(features.lengths, batch_size, longest, self.static_shapes)
            batches = batching.batches(features, unpacked, lengths_vary=not self.static_shapes)
            rows = unpacked.rows[:, :, None]
        dataset = self.placement.distribute(batches)
        for examples, outputs in zip(rows, self.step.run(dataset, len(rows))):
            yield packing.places(examples, tokens), outputs

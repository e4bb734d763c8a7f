"""What a fine-tuning family is to the driver (`finetuning.driver`): its files, features, network, scores and outputs.

A family implements Task once, in a folder of its own; a data set of the family is then a few values
(`tasks.classification.glue`). Nothing here imports TensorFlow: a mistake in a file is reported before it is needed.
"""

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from inputs.features import Features
from tasks.labels import Labels

if typing.TYPE_CHECKING:
    import keras
    import tensorflow as tf

    from modeling.config import BertConfig
    from tokenization.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class Predicted:
    """A model's outputs for a split, with what they belong to.

    Attributes:
        examples: the task's own kind, as `Task.read` returns them.
        features: of the examples.
        outputs: dict of arrays [rows, ...]; of the task's token outputs a list of [length, ...], one a row.
        tokenizer: the features were made with it.
    """

    examples: Sequence[Any]
    features: Features
    outputs: Mapping[str, Any]
    tokenizer: "Tokenizer"


class Network(typing.Protocol):
    """The part of a task that computes: its model and its loss. Made by `Task.network`, which imports TensorFlow.

    A batch is a dict of int [rows, seq] (or [rows, choices, seq]) `input_ids`, `input_mask`, `segment_ids`, other
    token columns, the features' values, and `is_real_example`, 0 for rows that only complete a batch.

    A network whose attribute `packs` is true takes packed batches too: with `part_starts`, values and `is_real_example`
    of int [rows, slots], for which outputs and terms of examples are [rows * slots] (docs/packing.md).
    """

    def model(self, config: "BertConfig", dtype: str, unpad: bool) -> "keras.Model":
        """A Keras model: `model(batch, dropout_seed=None)` returns a dict of float32 [rows, ...]."""
        ...

    def term_weights(self, batch: "Mapping[str, tf.Tensor]") -> "tf.Tensor":
        """Float32 [n]: how much each term of the loss counts; 0 in rows that are not real."""
        ...

    def losses(self, outputs: "Mapping[str, tf.Tensor]", batch: "Mapping[str, tf.Tensor]") -> "tf.Tensor":
        """Float32 [n], the terms. Their weighted sum, divided by rows times `terms_per_row`, is a batch's loss."""
        ...


class FileTask:
    """Base of a family's Task: what is alike in all families.

    Attributes:
        settings: the family's, with max_seq_length.
        data: finds and reads the files of a split: `path(split)` and `read(split)`.
    """

    settings: Any
    data: Any

    @property
    def max_seq_length(self) -> int:
        """The longest row."""
        return self.settings.max_seq_length

    def files(self, split: str) -> list[str]:
        """The file of a split."""
        return [self.data.path(split)]

    def read(self, split: str) -> list[Any]:
        """Examples of a split; those to be predicted may have no labels."""
        return self.data.read(split)

    def terms_per_row(self, features: Features) -> float:
        """A row is one term of the loss."""
        return 1.0

    def check_weights(self, place: str, shapes: Mapping[str, Sequence[int]]) -> None:
        """The configuration and the labels give all sizes, and are compared by themselves."""


class Task(typing.Protocol):
    """One data set, or one family on the user's own files.

    Attributes:
        name: as in --task_name.
        metric: the metric of the first dev split that selects the best checkpoint; higher is better.
        dev_splits: names of the splits to evaluate, such as ("dev",) or ("dev_matched", "dev_mismatched").
        test_splits: names of the splits to predict. The training split is "train".
        token_outputs: the model's outputs whose second axis is the sequence.
        max_seq_length: the longest row.
        labels: names of the last axis of all outputs; None where it has none, such as scores or choices.
    """

    @property
    def name(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def dev_splits(self) -> tuple[str, ...]: ...
    @property
    def test_splits(self) -> tuple[str, ...]: ...
    @property
    def token_outputs(self) -> tuple[str, ...]: ...
    @property
    def max_seq_length(self) -> int: ...
    @property
    def labels(self) -> Labels | None: ...

    def files(self, split: str) -> list[str]:
        """Paths that a split is read from. Raises BertError where one is missing, naming its flag."""
        ...

    def read(self, split: str) -> list[Any]:
        """Examples, of the family's own kind. Raises BertError naming file, line and column of a mistake."""
        ...

    def fingerprint(self) -> dict[str, Any]:
        """JSON-able dict of what features depend on besides files, vocabulary and casing, such as max_seq_length."""
        ...

    def features(self, examples: Sequence[Any], tokenizer: "Tokenizer", training: bool) -> Features:
        """Features of examples; with labels where `training` (a row that cannot be trained on may be left out)."""
        ...

    def terms_per_row(self, features: Features) -> float:
        """Mean weight of a row's loss terms over a training set; 1 where a row is one term."""
        ...

    def network(self) -> Network:
        """The model and its loss."""
        ...

    def check_weights(self, place: str, shapes: Mapping[str, Sequence[int]]) -> None:
        """Compares sizes that are the family's own with trained weights, before a model is built, however large.

        Args:
            place: the weights' path, for the message.
            shapes: name to shape.

        Raises:
            BertError: they are not of the same model.
        """
        ...

    def score(self, split: str, predicted: Predicted) -> dict[str, float]:
        """Metrics of a dev split, with anything that the scoring tuned, such as a threshold."""
        ...

    def write(self, split: str, predicted: Predicted, folder: str, metrics: Mapping[str, float]) -> list[str]:
        """Writes the family's prediction files into a folder.

        Args:
            split: one of `test_splits`.
            predicted: Predicted.
            folder: the run's folder.
            metrics: of the last evaluation of these weights, or empty.

        Returns:
            paths of the files.
        """
        ...

    def describe(self, metrics: Mapping[str, float]) -> dict[str, Any]:
        """JSON-able dict for final_model/task.json: what prediction needs beyond the weights, such as labels.

        Keys are `described` of the task's settings: a later command without these flags takes the values from here.

        Args:
            metrics: of the evaluation of these weights, or empty.
        """
        ...

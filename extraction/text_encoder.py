"""A pre-trained encoder that gives lines of text their vectors."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from extraction.lines import split_pair
from extraction.settings import ExtractionSettings
from foundation.errors import BertError
from inputs import batching
from inputs.features import Features, runs
from inputs.text_pairs import pair_features
from modeling.encoder import BertEncoder
from tokenization.tokenizer import Tokenizer
from training import devices
from training.devices import Placement
from training.initial_model import InitialModel
from training.step import Batch, PredictionStep

# Maximum size of the vectors of one chunk.
_CHUNK_BYTES = 1 << 28


def load(settings: ExtractionSettings, model: InitialModel) -> "TextEncoder":
    """Makes the encoder on its devices and reads its weights.

    Args:
        settings: what to compute, where.
        model: with a checkpoint.

    Raises:
        BertError: the checkpoint lacks weights that are needed, or there is no such device.
    """
    placement = devices.create(settings.hardware)
    model.check_sizes()
    with placement.strategy.scope():
        encoder = BertEncoder(model.config, unpad=placement.unpads, dtype=placement.dtype)
    loaded = model.load(encoder)
    path = model.checkpoint.path if model.checkpoint else ""
    if settings.pooling == "pooler" and loaded.initial:
        raise BertError(f"{path}: has no pooler. --pooling=mean and --pooling=cls need none.")
    print(f"{path}: {len(loaded.read)} tensors read; {placement.describe()}.", flush=True)
    return TextEncoder(settings, model.tokenizer(), encoder, placement)


class ChosenVectors:
    """The vectors of an encoder that are asked for (a Predictor of `training.step`).

    Args:
        encoder: BertEncoder.
        settings: which layers, pooled how.
    """

    def __init__(self, encoder: BertEncoder, settings: ExtractionSettings) -> None:
        self.encoder = encoder
        self.settings = settings

    def predict(self, batch: Batch) -> dict[str, tf.Tensor]:
        """The vectors of a batch by name, float32 [rows, length, hidden], or [rows, hidden] where pooled."""
        encoded = self.encoder(batch["input_ids"], batch["input_mask"], batch["segment_ids"])
        if self.settings.pooling == "pooler":
            return {self.settings.names[0]: tf.cast(encoded["pooled_output"], tf.float32)}
        layers = {name: tf.cast(encoded["layer_outputs"][index], tf.float32)
                  for name, index in zip(self.settings.names, self.settings.different_layers)}
        if self.settings.pooling == "cls":
            return {name: values[:, 0] for name, values in layers.items()}
        if self.settings.pooling == "mean":
            mask = tf.cast(batch["input_mask"], tf.float32)[:, :, None]
            # A row that only completes a batch has no token.
            count = tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
            return {name: tf.reduce_sum(values * mask, axis=1) / count for name, values in layers.items()}
        return layers


class TextEncoder:
    """Lines of text to vectors.

    Args:
        settings: which vectors, and the sizes of rows and batches.
        tokenizer: Tokenizer.
        encoder: BertEncoder, with its weights.
        placement: the devices that it was made on.
    """

    def __init__(self, settings: ExtractionSettings, tokenizer: Tokenizer, encoder: BertEncoder,
                 placement: Placement) -> None:
        self.settings = settings
        self.tokenizer = tokenizer
        self.placement = placement
        self.hidden_size = encoder.config.hidden_size
        self.step = PredictionStep(placement, ChosenVectors(encoder, settings))

    def chunks(self, lines: Sequence[str]) -> Iterator[Features]:
        """Features of lines, divided so that the vectors of each part fit into memory.

        Args:
            lines: each one sentence or two.

        Returns:
            Features of some of the lines at a time, in their order.
        """
        first, second = zip(*map(split_pair, lines))
        return self.chunks_of_pairs(list(first), list(second) if any(second) else None)

    def chunks_of_pairs(self, first: list[str], second: list[str] | None) -> Iterator[Features]:
        """As `chunks`, of texts that are already apart.

        Args:
            first: at least one text.
            second: the second text of each, "" for none; or None.
        """
        tokens, row_splits = pair_features(self.tokenizer, first, second, self.settings.max_seq_length)
        most_tokens = _CHUNK_BYTES // (4 * self.hidden_size * len(self.settings.names))
        begin = 0
        while begin < len(first):
            end = int(np.searchsorted(row_splits, row_splits[begin] + most_tokens, side="right")) - 1
            end = min(max(end, begin + 1), len(first))
            span = slice(row_splits[begin], row_splits[end])
            yield Features({name: column[span] for name, column in tokens.items()},
                           row_splits[begin : end + 1] - row_splits[begin], {})
            begin = end

    def vectors(self, features: Features, progress: Callable[[np.ndarray], object] = lambda rows: None
                ) -> dict[str, np.ndarray]:
        """Runs the encoder.

        Args:
            features: the sequences.
            progress: called with the row numbers of each batch.

        Returns:
            The vectors by name, float32 [tokens, hidden], or [rows, hidden] where pooled.
        """
        by_token = self.settings.by_token
        size = int(features.row_splits[-1]) if by_token else len(features)
        vectors = {name: np.empty((size, self.hidden_size), np.float32) for name in self.settings.names}
        for rows, outputs in self._batches(features):
            lengths = features.lengths[rows]
            places = runs(features.row_splits[rows], lengths) if by_token else rows
            for name, values in outputs.items():
                values = values[: len(rows)]
                if by_token:
                    values = values[np.arange(values.shape[1]) < lengths[:, None]]
                vectors[name][places] = values
            progress(rows)
        return vectors

    def _batches(self, features: Features) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Row numbers and outputs of each batch; outputs may have rows behind them that only complete the batch."""
        static_shapes = self.placement.platform == "tpu"
        replicas = self.placement.num_replicas
        batch_size = -(-self.settings.batch_size // replicas) * replicas
        plan = batching.prediction_plan(features.lengths, batch_size, self.settings.max_seq_length, static_shapes)
        batches = self.placement.distribute(batching.batches(features, plan, lengths_vary=not static_shapes))
        for rows, outputs in zip(plan.rows, self.step.run(batches, len(plan.rows))):
            yield rows[rows >= 0], outputs

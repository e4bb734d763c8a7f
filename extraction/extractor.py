"""Vectors of text from a pre-trained encoder: chosen layers for each token, or one vector a line (paper, section 5.3).

Lines are read, computed and written a chunk at a time, so memory does not grow with the input; inside a chunk batches
are made of sequences of like length.
"""

import dataclasses
import time

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from extraction import vector_files
from foundation import files
from foundation.errors import BertError
from inputs import batching
from inputs.features import Features, runs
from inputs.text_pairs import pair_features
from modeling.encoder import BertEncoder
from training import strategy
from training.initial_model import StartingPoint
from training.settings import HardwareSettings, StartSettings
from training.step import PredictionStep
from training.tokenizers import tokenizer_of

POOLING = ("none", "pooler", "cls", "mean")
# What stands between the two sentences of a line, as in the release.
SEPARATOR = " ||| "

# Lines read at once, and the most that the vectors of one chunk may take.
_LINES = 4096
_CHUNK_BYTES = 1 << 28


@dataclasses.dataclass(frozen=True)
class ExtractionSettings:
    """One `extract_features.py` command.

    Attributes:
        start: StartSettings: the model.
        hardware: HardwareSettings.
        input_file: a sequence a line: `text` or `text ||| text`.
        output_file: path.
        layers: numbers of layers, 0 for the first and -1 for the last.
        pooling: "none": every token's vectors. One vector a line: "pooler": the model's own (tanh of a dense layer
            on [CLS]); "cls": that of [CLS], of each layer; "mean": the mean over the tokens, [CLS] and [SEP] included,
            of each layer.
        output_format: "jsonl" as the release writes it, "npz", "arrow", or "auto": by the ending of the name, jsonl
            where it says nothing.
        output_dtype: "float32" or "float16", for npz and arrow.
        max_seq_length: most positions of a row.
        batch_size: rows of a batch, over all devices.
    """

    start: StartSettings
    hardware: HardwareSettings
    input_file: str
    output_file: str
    layers: tuple = (-1, -2, -3, -4)
    pooling: str = "none"
    output_format: str = "auto"
    output_dtype: str = "float32"
    max_seq_length: int = 128
    batch_size: int = 32


@dataclasses.dataclass
class Report:
    """What was written.

    Attributes:
        path: the file.
        lines, tokens: int, sequences and their positions.
        seconds: float, from the first line read to the file complete.
    """

    path: str
    lines: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def summary(self):
        """One line for the person watching."""
        return f"Wrote {self.path}: {self.lines:,} lines, {self.tokens:,} tokens, in {self.seconds:.1f} s."


def run(settings):
    """Reads lines, writes vectors, in the order of the lines.

    Args:
        settings: ExtractionSettings.

    Returns:
        Report.

    Raises:
        BertError: what the user can mend: no such file or layer, not UTF-8, a checkpoint without what is asked for.
    """
    make_writer = vector_files.writer(settings.output_format, settings.output_file)
    if not files.exists(settings.input_file) or files.is_folder(settings.input_file):
        raise BertError(f"{settings.input_file}: no such file (--input_file).")
    extractor = Extractor(settings)
    report = Report(settings.output_file)
    started = time.monotonic()
    bar = tqdm(total=files.size(settings.input_file), desc="extract", unit="B", unit_scale=True,
               disable=None, leave=False, mininterval=1.0)
    with files.atomic(settings.output_file) as temporary, bar:
        layout = vector_files.Layout(extractor.names, extractor.config.hidden_size, settings.pooling == "none",
                                     np.dtype(settings.output_dtype), extractor.tokenizer.vocabulary.tokens)
        with make_writer(temporary, layout) as output:
            for lines, sizes in _blocks(settings.input_file):
                for features in extractor.chunks(lines):
                    first = report.lines % _LINES
                    vectors = extractor.vectors(
                        features, lambda rows, sizes=sizes[first:]: bar.update(int(sizes[rows].sum())))
                    output.write(report.lines, features, vectors)
                    report.lines += len(features)
                    report.tokens += int(features.row_splits[-1])
            if not report.lines:
                raise BertError(f"{settings.input_file}: empty. It holds a sequence a line.")
    report.seconds = time.monotonic() - started
    return report


class Extractor:
    """An encoder, and lines of text through it.

    Args:
        settings: ExtractionSettings; files are not looked at.

    Attributes:
        config: BertConfig.
        tokenizer: Tokenizer.
        names: tuple of str: of the vectors that come out: `layer_-1` and so on, or `pooled_output`.

    Raises:
        BertError: see `run`.
    """

    def __init__(self, settings):
        self.settings = settings
        start = StartingPoint(settings.start)
        self.config = start.config
        self.names = _names(settings, self.config)
        start.check_length(settings.max_seq_length)
        _, self.tokenizer = tokenizer_of(start)
        if not start.checkpoint:
            raise BertError("Which weights? Give --init_checkpoint.")
        self.placement = strategy.create(settings.hardware)
        self.static_shapes = self.placement.platform == "tpu"
        with self.placement.strategy.scope():
            # Packing saves what padding costs wherever shapes may depend on data.
            packs = self.placement.platform == "cpu" and not self.placement.xla
            self.encoder = BertEncoder(self.config, skip_padding=packs, dtype=self.placement.dtype)
        loaded = start.load(self.encoder)
        if settings.pooling == "pooler" and loaded.initial:
            raise BertError(f"{start.checkpoint.path}: holds no pooler. --pooling=mean or cls needs none.")
        print(f"{start.checkpoint.path}: {len(loaded.read)} tensors read; {self.placement.describe()}.", flush=True)
        self.predictor = PredictionStep(self.placement, self)
        replicas = self.placement.num_replicas
        self.batch_size = -(-settings.batch_size // replicas) * replicas

    def chunks(self, lines):
        """Features of lines, cut so that their vectors fit into memory.

        Args:
            lines: list of str.

        Yields:
            Features of some of the lines, in their order.
        """
        first, second = zip(*map(split_pair, lines))
        tokens, row_splits = pair_features(
            self.tokenizer, list(first), list(second) if any(second) else None, self.settings.max_seq_length)
        most = _CHUNK_BYTES // (4 * self.config.hidden_size * len(self.names))
        begin = 0
        while begin < len(lines):
            end = int(np.searchsorted(row_splits, row_splits[begin] + most, side="right")) - 1
            end = min(max(end, begin + 1), len(lines))
            span = slice(row_splits[begin], row_splits[end])
            yield Features({name: column[span] for name, column in tokens.items()},
                           row_splits[begin : end + 1] - row_splits[begin], {})
            begin = end

    def vectors(self, features, progress=lambda rows: None):
        """Runs the encoder.

        Args:
            features: Features.
            progress: called with the row numbers of each batch.

        Returns:
            dict of `names` to float32 [tokens, hidden], or [rows, hidden] where pooled.
        """
        pooled = self.settings.pooling != "none"
        size = len(features) if pooled else int(features.row_splits[-1])
        vectors = {name: np.empty((size, self.config.hidden_size), np.float32) for name in self.names}
        plan = batching.prediction_plan(
            features.lengths, self.batch_size, self.settings.max_seq_length, self.static_shapes)
        dataset = self.placement.strategy.distribute_datasets_from_function(
            batching.batches(features, plan, lengths_vary=not self.static_shapes))
        for rows, outputs in zip(plan.rows, self.predictor.run(dataset, len(plan.rows))):
            rows = rows[rows >= 0]
            places = rows if pooled else runs(features.row_splits[rows], features.lengths[rows])
            sizes = features.lengths[rows]
            for name, values in outputs.items():
                values = values[: len(rows)]
                if not pooled:
                    values = values[np.arange(values.shape[1]) < sizes[:, None]]
                vectors[name][places] = values
            progress(rows)
        return vectors

    def predict(self, batch):
        """The chosen vectors of a batch, in graph (an objective's `predict`, see training.step)."""
        encoded = self.encoder(batch["input_ids"], batch["input_mask"], batch["segment_ids"])
        if self.settings.pooling == "pooler":
            return {self.names[0]: tf.cast(encoded["pooled_output"], tf.float32)}
        layers = {name: tf.cast(encoded["layer_outputs"][index], tf.float32)
                  for name, index in zip(self.names, _different(self.settings.layers))}
        if self.settings.pooling == "cls":
            return {name: values[:, 0] for name, values in layers.items()}
        if self.settings.pooling == "mean":
            mask = tf.cast(batch["input_mask"], tf.float32)[:, :, None]
            # A row that only completes a batch has no token.
            count = tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
            return {name: tf.reduce_sum(values * mask, axis=1) / count for name, values in layers.items()}
        return layers


def split_pair(line):
    """The two texts of a line, the second empty where there is one (as the release splits: at the last separator)."""
    first, separator, second = line.strip().rpartition(SEPARATOR)
    return (first, second) if separator else (second, "")


def _blocks(path):
    """Yields lists of lines and the bytes of each, int64 [lines]. Raises BertError naming a byte that is not UTF-8."""
    lines, sizes, before, number = [], [], 0, 0
    with files.open_file(path, "rb") as file:
        while data := file.readline():
            number += 1
            try:
                lines.append(data.decode("utf-8"))
            except UnicodeDecodeError as error:
                raise BertError(f"{path}, line {number}: byte {before + error.start} is not UTF-8 "
                                f"(0x{data[error.start]:02x}). Re-encode the file.") from None
            sizes.append(len(data))
            before += len(data)
            if len(lines) == _LINES:
                yield lines, np.array(sizes)
                lines, sizes = [], []
    if lines:
        yield lines, np.array(sizes)


def _names(settings, config):
    """Names of the vectors asked for. Raises BertError where the model has no such layer."""
    if settings.pooling == "pooler":
        return ("pooled_output",)
    count = config.num_hidden_layers
    for layer in settings.layers:
        if not -count <= layer < count:
            there = f"0 to {count - 1}, or -1 (the last) to -{count}" if count else "none"
            raise BertError(f"--layers: there is no layer {layer}. The model has {count} layers: {there}.")
    return tuple(f"layer_{layer}" for layer in _different(settings.layers))


def _different(layers):
    return tuple(dict.fromkeys(layers))

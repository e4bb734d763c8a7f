"""Vectors of text from a pre-trained encoder: chosen layers for each token, or one vector a line (paper, section 5.3).

Lines are read, computed and written a chunk at a time, so memory does not grow with the input; inside a chunk batches
hold sequences of similar length.
"""

import dataclasses
import functools
import os
import time
from typing import TYPE_CHECKING

import numpy as np

from extraction import lines, vector_files
from extraction.settings import ExtractionSettings
from foundation import files
from foundation.errors import BertError
from training import initial_model
from training.initial_model import InitialModel

if TYPE_CHECKING:
    import tqdm

    from extraction.text_encoder import TextEncoder

# Lines read at once.
_BLOCK_LINES = 4096


@dataclasses.dataclass(frozen=True)
class Report:
    """What was written.

    Attributes:
        path: the file.
        lines: number of lines, that is of sequences.
        tokens: number of their word pieces.
        seconds: from the first line read to the last one written.
    """

    path: str
    lines: int
    tokens: int
    seconds: float

    def summary(self) -> str:
        """One line for the console."""
        return f"Wrote {self.path}: {self.lines:,} lines, {self.tokens:,} tokens, in {self.seconds:.1f} s."


def run(settings: ExtractionSettings) -> Report:
    """Reads lines and writes their vectors in the same order.

    Raises:
        BertError: what the user can mend: a missing file or layer, text that is not UTF-8, a checkpoint without the
            weights asked for.
    """
    output_format = vector_files.format_of(settings.output_format, settings.output_file)
    lines.check(settings.input_file)
    _check_output(settings.output_file)
    model = _initial_model(settings)
    layout = vector_files.Layout(settings.names, model.config.hidden_size, settings.by_token,
                                 np.dtype(settings.output_dtype), model.vocabulary.tokens)
    # Imported here: TensorFlow takes seconds, and the mistakes above are reported without it.
    from extraction import text_encoder

    encoder = text_encoder.load(settings, model)
    with files.atomic(settings.output_file) as temporary, output_format.open(temporary, layout) as output:
        return _extract(settings, encoder, output)


def _check_output(path: str) -> None:
    """Raises BertError where a local file cannot be written."""
    if files.is_remote(path):
        return
    if files.is_folder(path):
        raise BertError(f"{path}: is a folder. --output_file names a file.")
    parent = os.path.dirname(os.path.abspath(path))
    while not files.exists(parent):
        parent = os.path.dirname(parent)
    if not files.is_folder(parent):
        raise BertError(f"{path}: cannot be written, {parent} is not a folder (--output_file).")
    if not os.access(parent, os.W_OK):
        raise BertError(f"{path}: cannot be written, no permission to write to {parent} (--output_file).")


def _initial_model(settings: ExtractionSettings) -> InitialModel:
    """The model, checked against the settings as far as that needs no weights."""
    if not settings.initial_model.init_checkpoint:
        raise BertError("No weights given: --init_checkpoint is required.")
    model = initial_model.find(settings.initial_model)
    settings.check_layers(model.config)
    model.check_length(settings.max_seq_length)
    return model


def _extract(settings: ExtractionSettings, encoder: "TextEncoder", output: vector_files.VectorWriter) -> Report:
    """Every line through the encoder, a block at a time."""
    # Imported here: the checks above do not need it.
    import tqdm

    started, number, tokens = time.monotonic(), 0, 0
    with tqdm.tqdm(total=files.size(settings.input_file), desc="extract", unit="B", unit_scale=True, disable=None,
                   leave=False, mininterval=1.0) as bar:
        for block, sizes in lines.blocks(settings.input_file, _BLOCK_LINES):
            for features in encoder.chunks(block):
                row_sizes, sizes = np.split(sizes, [len(features)])
                progress = functools.partial(_advance, bar, row_sizes)
                output.write(number, features, encoder.vectors(features, progress))
                number += len(features)
                tokens += int(features.row_splits[-1])
    if not number:
        raise lines.empty(settings.input_file)
    return Report(settings.output_file, number, tokens, time.monotonic() - started)


def _advance(bar: "tqdm.tqdm", row_sizes: np.ndarray, rows: np.ndarray) -> None:
    """Moves a progress bar on by the bytes of some rows."""
    bar.update(int(row_sizes[rows].sum()))

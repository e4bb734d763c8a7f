"""Writes a folder that Hugging Face's `from_pretrained` loads."""

import dataclasses
import json
import os

import numpy as np

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import huggingface_config, tokenizer_files
from modeling.checkpoints import huggingface_names as names
from modeling.checkpoints.format import CheckpointReader, Contents
from modeling.checkpoints.huggingface_shards import WEIGHTS
from modeling.checkpoints.sizes import check_sizes


@dataclasses.dataclass(frozen=True)
class Written:
    """Report of `write`.

    Attributes:
        architecture: the class of `transformers` that loads the folder.
        left_out: names that this class has no tensor for, such as the pooler or an optimizer's slots.
    """

    architecture: str
    left_out: tuple[str, ...]


def write(folder: str, contents: Contents) -> Written:
    """Writes a folder that `from_pretrained` of one class loads with no key missing and none too many.

    Only one tensor is in memory at a time.

    Args:
        folder: made where it does not exist.
        contents: labels None numbers the classes.

    Raises:
        BertError: a tensor that the class needs is missing, sizes are not the configuration's or the labels', or the
            disk is full.
    """
    reader, config = contents.reader, contents.config
    architecture = names.architecture_of(set(reader.names), config.causal)
    pairs = _pairs(folder, reader, architecture, config.num_hidden_layers)
    check_sizes(folder, reader.shapes, config)
    labels = _labels(folder, architecture, contents)
    files.make_folder(folder)
    _write_tensors(os.path.join(folder, WEIGHTS), pairs, reader)
    tokenizer_files.write(folder, config, contents.tokens)
    values = huggingface_config.values_of(config, architecture, labels)
    files.write_json(os.path.join(folder, huggingface_config.CONFIG), values)
    written = {pair.ours for pair in pairs}
    return Written(architecture, tuple(name for name in reader.names if name not in written))


def _pairs(folder: str, reader: CheckpointReader, architecture: str, layers: int) -> list[names.Pair]:
    """The tensors of the class, all of which the reader has."""
    pairs = names.pairs(range(layers), architecture)
    if architecture == "BertModel":
        # This class alone has no prefix, and may be without a pooler.
        pairs = [pair._replace(theirs=pair.theirs.removeprefix("bert.")) for pair in pairs
                 if pair.ours in reader.shapes or "/pooler/" not in pair.ours]
    missing = [pair.ours for pair in pairs if pair.ours not in reader.shapes]
    if missing:
        raise BertError(f"{folder}: {architecture} needs {missing[0]}, which the checkpoint does not hold"
                        f"{f' ({len(missing)} are missing)' if len(missing) > 1 else ''}.")
    return pairs


def _labels(folder: str, architecture: str, contents: Contents) -> list[str] | None:
    """The classes' names; None for a head without classes."""
    head = names.head_of(architecture)
    if head is None or not head.has_labels:
        return None
    name = f"{head.scope}output_weights"
    count, labels = contents.reader.shapes[name][0], contents.labels
    if labels is not None and len(labels) != count:
        raise BertError(f"{folder}: {name} has {count} rows for {len(labels)} labels.")
    return [f"LABEL_{index}" for index in range(count)] if labels is None else list(labels)


def _write_tensors(path: str, pairs: list[names.Pair], reader: CheckpointReader) -> None:
    """Writes a safetensors file a tensor at a time: length of the header, header (JSON), values."""
    header: dict[str, dict] = {"__metadata__": {"format": "pt"}}
    end = 0
    for pair in pairs:
        shape = [int(size) for size in reader.shapes[pair.ours]]
        start, end = end, end + 4 * int(np.prod(shape))
        header[pair.theirs] = {"dtype": "F32", "shape": shape[::-1] if pair.transposed else shape,
                               "data_offsets": [start, end]}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    with files.atomic(path) as temporary, files.open_file(temporary, "wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for pair in pairs:
            value = reader.get(pair.ours).astype("<f4", copy=False)
            file.write((value.T if pair.transposed else value).tobytes())

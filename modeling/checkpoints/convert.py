"""A checkpoint of any format into a folder of any format, every tensor bit for bit."""

import dataclasses
import os

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import google, huggingface, keras_weights, load
from modeling.checkpoints.sizes import check_sizes
from modeling.config import BertConfig

FORMATS = ("google", "huggingface", "keras")


@dataclasses.dataclass(frozen=True)
class Conversion:
    """What a conversion did.

    Attributes:
        source: path of the checkpoint read.
        source_format, format: before and after.
        folder: what was written.
        written: how many tensors.
        left_out: names of the source that the target has no place for.
    """

    source: str
    source_format: str
    format: str
    folder: str
    written: int
    left_out: tuple

    def summary(self):
        """A few lines for the console."""
        return "\n".join([
            f"{self.source} ({self.source_format}): {self.written} tensors written to {self.folder} ({self.format}).",
            *load.lines_of("left out", self.left_out)])


def convert(source, folder, target_format, config_file=None, vocab_file=None, do_lower_case=None):
    """Converts a checkpoint.

    Args:
        source: anything that `--init_checkpoint` takes.
        folder: made where it does not exist; gets configuration, weights and, where known, the vocabulary.
        target_format: of FORMATS.
        config_file: the configuration; None for the one beside the source.
        vocab_file: the vocabulary; None for the one beside the source.
        do_lower_case: casing of the vocabulary; None for what the source says.

    Returns:
        Conversion.

    Raises:
        BertError: no such source, no configuration, another model's, or a format that cannot hold it.
    """
    if target_format not in FORMATS:
        raise BertError(f"--format={target_format}: not one of {', '.join(FORMATS)}.")
    checkpoint = load.find(source)
    config = BertConfig.from_json_file(config_file) if config_file else checkpoint.config()
    if do_lower_case is None:
        do_lower_case = checkpoint.lower_case() if config.do_lower_case is None else config.do_lower_case
    config = config.replace(do_lower_case=do_lower_case)
    check_sizes(checkpoint.path, checkpoint.reader.shapes, config)
    _check_folder(folder)
    tokens = _vocabulary(checkpoint, vocab_file, config)
    reader = checkpoint.reader
    left_out = list(getattr(reader, "unknown", ()))
    if target_format == "huggingface":
        left_out += huggingface.write(folder, reader, config, tokens, labels=checkpoint.labels()).left_out
    else:
        left_out += [name for name in reader.names if load.is_training_state(name)]
        values = {name: reader.get(name) for name in reader.names if not load.is_training_state(name)}
        config.to_json_file(os.path.join(folder, "bert_config.json"))
        if tokens:
            files.write_text(os.path.join(folder, "vocab.txt"), "".join(f"{token}\n" for token in tokens))
        if task := _task(checkpoint):
            files.write_json(os.path.join(folder, load.TASK_FILE), task)
        if target_format == "google":
            google.write(os.path.join(folder, "bert_model.ckpt"), values)
        else:
            left_out += keras_weights.write(os.path.join(folder, keras_weights.FILE_NAME), values)
    total = len(reader.names) + len(getattr(reader, "unknown", ()))
    return Conversion(checkpoint.path, checkpoint.format, target_format, folder, total - len(left_out), tuple(left_out))


def _check_folder(folder):
    """Refuses a folder with something in it: files of two models side by side would be taken for one."""
    if files.exists(folder) and (not files.is_folder(folder) or files.names_in(folder)):
        raise BertError(f"{folder}: is there and not empty. Name a new folder (--output).")


def _vocabulary(checkpoint, vocab_file, config):
    """Word pieces in the order of their ids, or None where there is no vocabulary."""
    if vocab_file:
        tokens = [line.strip() for line in files.read_text(vocab_file).removesuffix("\n").split("\n")]
    else:
        tokens = huggingface.vocabulary_of(checkpoint.folder)
    if tokens and len(tokens) > config.vocab_size:
        raise BertError(f"{vocab_file or checkpoint.folder}: the vocabulary has {len(tokens)} word pieces, the "
                        f"configuration {config.vocab_size} (vocab_size). Is it another model's?")
    return tokens


def _task(checkpoint):
    """What a fine-tuned model's folder says of its task: as it stands beside the source, or the classes' names."""
    if checkpoint.task_file:
        return files.read_json(checkpoint.task_file)
    labels = checkpoint.labels()
    return {"labels": labels} if labels else None

"""Any checkpoint into a model: which format it is, what stands beside it, what was read and what was not."""

import dataclasses
import os
import re

import numpy as np
import tensorflow as tf

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import google, huggingface, keras_weights
from modeling.config import BertConfig
from modeling.models import all_variables

# What a fine-tuned model's folder says of its task.
TASK_FILE = "task.json"
EXTEND_POSITIONS = ("no", "copy", "initialize")

# What a checkpoint must hold of a model; the rest are heads and the pooler, which each task trains anew.
_ENCODER = re.compile(r"bert/(embeddings|encoder)/")
_OPTIMIZER_SLOT = re.compile(r"/adam_[mv]$")
# The release's folders say so, as cased_L-12_H-768_A-12 and wwm_uncased_L-24_H-1024_A-16; their configurations do not.
_CASING_OF_FOLDER = re.compile(r"(?:^|_)(un)?cased_L-\d")
_POSITIONS = "bert/embeddings/position_embeddings"
_WORDS = ("bert/embeddings/word_embeddings", "cls/predictions/output_bias")


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was found and opened.

    Attributes:
        path: what it was found at: a prefix, a file or a folder.
        format: "google", "huggingface" or "keras".
        reader: `shapes`, `names` and `get(name)`, by the release's names.
        folder: where its configuration and vocabulary are.
    """

    path: str
    format: str
    reader: object
    folder: str

    @property
    def config_file(self):
        """Path of the configuration beside it, or None."""
        return self._beside(("config.json",) if self.format == "huggingface" else ("bert_config.json", "config.json"))

    @property
    def vocab_file(self):
        """Path of vocab.txt beside it, or None."""
        return self._beside(("vocab.txt",))

    @property
    def task_file(self):
        """Path of the description of a fine-tuned model beside it, or None."""
        return self._beside((TASK_FILE,))

    def _beside(self, names):
        paths = [os.path.join(self.folder, name) for name in names]
        return next((path for path in paths if files.exists(path)), None)

    def labels(self):
        """Names of the classes of a fine-tuned model, in the order of their numbers, or None."""
        if self.format == "huggingface":
            return huggingface.labels_of(huggingface.config_values(self.folder) or {})
        return files.read_json(self.task_file).get("labels") if self.task_file else None

    def config(self):
        """BertConfig from the file beside it, casing included. Raises BertError where there is none."""
        if not self.config_file:
            raise BertError(f"{self.path}: no bert_config.json or config.json beside it. Give --bert_config_file.")
        config = BertConfig.from_json_file(self.config_file)
        if config.do_lower_case is None:
            config = config.replace(do_lower_case=self._lower_case_of_folder())
        return config

    def lower_case(self):
        """Whether its vocabulary is of lower-cased text, or None where nothing beside it says so."""
        return self.config().do_lower_case if self.config_file else self._lower_case_of_folder()

    def _lower_case_of_folder(self):
        if self.format == "huggingface":
            return huggingface.lower_case_of(self.folder)
        said = _CASING_OF_FOLDER.search(os.path.basename(self.folder))
        return bool(said[1]) if said else None


@dataclasses.dataclass(frozen=True)
class LoadOptions:
    """What may differ between a checkpoint and the model that it is loaded into.

    Attributes:
        allow_missing: whether parts of the encoder that the checkpoint lacks may stay at their initial values.
        extend_positions: what a model's positions beyond the checkpoint's become: "no" is an error, "copy" repeats
            the checkpoint's from the first on, "initialize" leaves them at their initial values.
        extend_vocabulary: whether words beyond the checkpoint's may stay at their initial values.
        new_head: whether everything but encoder and pooler starts anew: another task's head is of no use.
    """

    allow_missing: bool = False
    extend_positions: str = "no"
    extend_vocabulary: bool = False
    new_head: bool = False

    def wants(self, name):
        """Whether a variable of this name is taken from a checkpoint."""
        return not self.new_head or name.startswith("bert/")


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What became of each name when a checkpoint was loaded.

    Attributes:
        read: variables of the model that took their value from the file.
        initial: variables of the model that the file does not hold, left at their initial values.
        unused: names in the file that the model does not have.
        extended: variables that have more rows than the file's.
    """

    read: tuple
    initial: tuple
    unused: tuple
    extended: tuple = ()

    def summary(self):
        """A few lines for the console: counts, then names; optimizer slots are counted and not named."""
        lines = [f"{len(self.read)} tensors read, {len(self.initial)} left at their initial values, "
                 f"{len(self.unused)} unused."]
        lines += lines_of("at initial values", self.initial)
        lines += lines_of("unused", self.unused)
        lines += lines_of("extended", self.extended)
        return "\n".join(lines)


def lines_of(what, names):
    """Names as lines of a report; optimizer slots are counted and not named."""
    others = [name for name in names if not _OPTIMIZER_SLOT.search(name)]
    lines = [f"  {what}: {', '.join(others)}"] if others else []
    slots = len(names) - len(others)
    return lines + ([f"  {what}: {slots} optimizer slots"] if slots else [])


def find(path, training=False):
    """Finds and opens the checkpoint that `--init_checkpoint` means, of whatever format.

    Args:
        path: a prefix of the release (`bert_model.ckpt`), a file of it, a `.safetensors` or `.weights.h5` file, or a
            folder: a release's, Hugging Face's, a training run's of this project, or its final_model.
        training: whether a run's newest checkpoint, with optimizer slots, is meant rather than its final_model.

    Returns:
        Checkpoint.

    Raises:
        BertError: nothing there, nothing that can be read, or a pickled PyTorch file.
    """
    path = re.sub(r"\.(index|data-\d+-of-\d+)$", "", path.rstrip("/"))
    if files.exists(f"{path}.index"):
        return _google(path)
    if files.is_folder(path):
        return _in_folder(path, training)
    if path.endswith((".h5", ".keras")) and files.exists(path):
        return Checkpoint(path, "keras", keras_weights.read(path), os.path.dirname(path))
    if files.exists(path):
        return Checkpoint(path, "huggingface", huggingface.read(path), os.path.dirname(path))
    data = files.glob(f"{path}.data-*")
    if data:
        raise BertError(f"{path}: {os.path.basename(data[0])} is there, {os.path.basename(path)}.index is missing. "
                        f"Copy it too.")
    raise BertError(f"{path}: no checkpoint there. Give a prefix as bert_model.ckpt, a .safetensors or .weights.h5 "
                    f"file, or a folder.")


def _in_folder(folder, training=False):
    saved = [prefix for _, prefix in google.training_checkpoints(folder)]
    final = os.path.join(folder, "final_model")
    newer = saved and (training or _written(f"{saved[-1]}.index") > _written(os.path.join(final, "*.index")))
    if files.is_folder(final) and not newer:
        return _in_folder(final)
    if saved:
        return _google(saved[-1])
    indexes = files.glob(os.path.join(folder, "*.index"))
    # What a killed process was writing is no checkpoint.
    prefixes = sorted(name.removesuffix(".index") for name in indexes if ".tmp-" not in os.path.basename(name))
    if len(prefixes) > 1:
        names = ", ".join(os.path.basename(prefix) for prefix in prefixes)
        raise BertError(f"{folder}: holds several checkpoints ({names}). Name one of them.")
    if prefixes:
        return _google(prefixes[0])
    weights = os.path.join(folder, keras_weights.FILE_NAME)
    if files.exists(weights):
        return Checkpoint(folder, "keras", keras_weights.read(weights), folder)
    if not files.names_in(folder):
        raise BertError(f"{folder}: no checkpoint there, the folder is empty.")
    return Checkpoint(folder, "huggingface", huggingface.read(folder), folder)


def _google(prefix):
    return Checkpoint(prefix, "google", google.read(prefix), os.path.dirname(prefix))


def _written(pattern):
    """When the newest of the files that a pattern matches was written; 0 where there is none."""
    return max((files.modified(name) for name in files.glob(pattern)), default=0)


def is_training_state(name):
    """Whether a name is no weight but an optimizer slot or the step counter."""
    return name == "global_step" or bool(_OPTIMIZER_SLOT.search(name))


def load_into(model, checkpoint, options=LoadOptions()):
    """Gives a model's variables the values that a checkpoint holds under their names, one at a time.

    Args:
        model: a Keras model whose variables have the release's names, or a dict of name to variable.
        checkpoint: Checkpoint, or a path for `find`.
        options: LoadOptions.

    Returns:
        LoadReport.

    Raises:
        BertError: a part of the encoder is missing or a shape differs, and the options do not allow it; before any
            variable is changed.
    """
    checkpoint = find(checkpoint) if isinstance(checkpoint, str) else checkpoint
    variables = model if isinstance(model, dict) else all_variables(model)
    reader = checkpoint.reader
    read = tuple(name for name in variables if name in reader.shapes and options.wants(name))
    report = LoadReport(
        read=read,
        initial=tuple(name for name in variables if name not in read),
        unused=(*(name for name in reader.names if name not in read), *getattr(reader, "unknown", ())),
        extended=tuple(name for name in read if _extends(name, reader.shapes[name], variables[name].shape, options)),
    )
    _check(checkpoint, report, variables, options)
    for name in report.read:
        value = reader.get(name)
        if name in report.extended:
            value = _extended(value, variables[name], name == _POSITIONS and options.extend_positions == "copy")
        variables[name].assign(value)
    return report


def _check(checkpoint, report, variables, options):
    path, shapes = checkpoint.path, checkpoint.reader.shapes
    if not any(map(_ENCODER.match, report.read)) and any(map(_ENCODER.match, variables)):
        raise BertError(f"{path}: holds none of the model's variables (it holds {_some(checkpoint.reader.names)}).")
    for name in report.read:
        there, here = list(shapes[name]), list(variables[name].shape)
        if there == here or name in report.extended:
            continue
        raise BertError(f"{path}: {name} has the shape {there} there and {here} in the model."
                        f"{_advice(name, there, here)}")
    missing = [name for name in report.initial if _ENCODER.match(name)]
    if missing and not options.allow_missing:
        raise BertError(f"{path}: lacks {len(missing)} of the encoder's tensors ({_some(missing)}). Pass "
                        f"--allow_missing_weights=true to leave them at their initial values.")


def _advice(name, there, here):
    if _longer(there, here):
        if name == _POSITIONS:
            return " --extend_positions=copy or initialize makes up the rest."
        if name in _WORDS:
            return " --extend_vocabulary=true leaves the other words at their initial values."
    return " Use the checkpoint's own configuration." if _ENCODER.match(name) else ""


def _extends(name, there, here, options):
    allowed = options.extend_positions != "no" if name == _POSITIONS else name in _WORDS and options.extend_vocabulary
    return allowed and _longer(list(there), list(here))


def _longer(there, here):
    """Whether two shapes differ in nothing but that the second has more rows."""
    return len(there) == len(here) > 0 and there[1:] == here[1:] and here[0] > there[0]


def _extended(value, variable, cyclic):
    """The checkpoint's rows, then those rows again, or the variable's own."""
    if cyclic:
        return np.resize(value, tuple(variable.shape))
    rest = np.asarray(tf.convert_to_tensor(variable)[len(value):])
    return np.concatenate([value, rest])


def _some(names, limit=3):
    return ", ".join(names[:limit]) + (" …" if len(names) > limit else "") if names else "nothing"

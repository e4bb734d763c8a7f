"""Any checkpoint into a model: its format, the files next to it, and what became of each tensor.

Finding a checkpoint and reading its configuration, vocabulary and task import no TensorFlow; `Checkpoint.reader` does
where the format needs it.
"""

import dataclasses
import functools
import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from foundation import files, run_files
from foundation.errors import BertError
from modeling.checkpoints import google, release_folder, tokenizer_files
from modeling.checkpoints.format import CheckpointFormat, CheckpointReader
from modeling.checkpoints.formats import FORMATS
from modeling.checkpoints.sizes import number_of_layers, shapes_of
from modeling.checkpoints.training_state import lines_of, slots_in
from modeling.config import BertConfig

if TYPE_CHECKING:
    import keras

EXTEND_POSITIONS = ("no", "copy", "initialize")

# The part of a model that a checkpoint must hold; the rest is the pooler and heads, which each task trains anew.
_ENCODER = re.compile(r"bert/(embeddings|encoder)/")
_POSITIONS = "bert/embeddings/position_embeddings"
_WORDS = ("bert/embeddings/word_embeddings", "cls/predictions/output_bias")


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was found.

    Attributes:
        path: its file, or the prefix of its files.
        format: the format it is in.
    """

    path: str
    format: CheckpointFormat

    @property
    def folder(self) -> str:
        """The folder with its weights, configuration and vocabulary."""
        return os.path.dirname(self.path)

    @functools.cached_property
    def reader(self) -> CheckpointReader:
        """The open checkpoint. Raises BertError when it is damaged or of another model."""
        return self.format.open(self.path)

    @property
    def config_file(self) -> str | None:
        """Path of the configuration in the same folder, or None."""
        return self._first_of(self.format.config_files)

    @property
    def vocab_file(self) -> str | None:
        """Path of vocab.txt in the same folder, or else of tokenizer.json, or None."""
        return tokenizer_files.vocabulary_in(self.folder)

    @property
    def task_file(self) -> str | None:
        """Path of the description of a fine-tuned model's task in the same folder, or None."""
        return self._first_of((run_files.TASK,))

    def labels(self) -> list[str] | None:
        """Names of the classes of a fine-tuned model, in the order of their numbers, or None.

        From the description of its task, or else from where the format keeps them.

        Raises:
            BertError: the description is damaged.
        """
        return release_folder.labels(self.folder) or self.format.labels(self.folder)

    def config(self) -> BertConfig:
        """The configuration in the same folder, casing included. Raises BertError when there is none."""
        if not self.config_file:
            raise BertError(f"{self.path}: no {' or '.join(self.format.config_files)} in the same folder. Give "
                            "--bert_config_file.")
        config = BertConfig.from_json_file(self.config_file)
        if config.do_lower_case is None:
            config = config.replace(do_lower_case=self.format.lower_case(self.folder))
        return config

    def lower_case(self) -> bool | None:
        """Whether its vocabulary is lower-cased, or None where no file in the folder specifies it."""
        return self.config().do_lower_case if self.config_file else self.format.lower_case(self.folder)

    def _first_of(self, names: tuple[str, ...]) -> str | None:
        paths = (os.path.join(self.folder, name) for name in names)
        return next((path for path in paths if files.exists(path)), None)


@dataclasses.dataclass(frozen=True)
class LoadOptions:
    """Permitted differences between a checkpoint and the model that it is loaded into.

    Attributes:
        allow_missing: whether parts of the encoder that the checkpoint lacks may keep their initial values.
        extend_positions: what becomes of a model's positions beyond the checkpoint's: "no" is an error, "copy" repeats
            the checkpoint's from the first on, "initialize" keeps their initial values.
        extend_vocabulary: whether words beyond the checkpoint's may keep their initial values.
        new_head: whether only encoder and pooler are loaded, because the checkpoint's head is another task's.
    """

    allow_missing: bool = False
    extend_positions: str = "no"
    extend_vocabulary: bool = False
    new_head: bool = False

    def loads(self, name: str) -> bool:
        """Whether a variable of this name is loaded from a checkpoint."""
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

    read: tuple[str, ...]
    initial: tuple[str, ...]
    unused: tuple[str, ...]
    extended: tuple[str, ...] = ()

    def summary(self) -> str:
        """A few lines for the console: counts, then names; optimizer slots are counted and not named."""
        slots = slots_in((*self.read, *self.unused))
        return "\n".join([
            f"{len(self.read)} tensors read, {len(self.initial)} left at their initial values, "
            f"{len(self.unused)} unused.",
            *lines_of("at initial values", self.initial, set()),
            *lines_of("unused", self.unused, slots.intersection(self.unused)),
            *lines_of("extended", self.extended, set())])


def find(path: str, training: bool = False) -> Checkpoint:
    """Finds the checkpoint that `--init_checkpoint` means, in whatever format.

    Args:
        path: a prefix of the release (`bert_model.ckpt`), a file of it, a `.safetensors` or `.weights.h5` file, or a
            folder: a release's, Hugging Face's, a training run's of this project, or its final_model.
        training: whether a run's newest checkpoint, with optimizer slots, is meant rather than its final_model.

    Raises:
        BertError: no checkpoint, several to choose from, or one that is not read, such as a pickled PyTorch file.
    """
    path = _in_run(path.rstrip("/"), training)
    for each in FORMATS.values():
        if found := each.find(path):
            checkpoint = Checkpoint(found, each)
            if files.exists(os.path.join(checkpoint.folder, run_files.UNFINISHED)):
                raise BertError(f"{checkpoint.folder}: its conversion was cut short. Run convert_checkpoint.py again.")
            return checkpoint
    raise BertError(_nothing_at(path))


def check_config(checkpoint: Checkpoint, config: BertConfig, options: LoadOptions = LoadOptions()) -> None:
    """Compares a checkpoint with a configuration before a model of this configuration is built, however large.

    Raises:
        BertError: sizes differ, and the options do not allow it.
    """
    shapes = checkpoint.reader.shapes
    for name, here in shapes_of(config).items():
        if name in shapes and not _extends(name, shapes[name], here, options):
            _check_shape(checkpoint.path, name, shapes[name], here)
    layers = number_of_layers(shapes)
    if 0 < layers < config.num_hidden_layers and not options.allow_missing:
        raise BertError(f"{checkpoint.path}: has {layers} layers, by the configuration {config.num_hidden_layers} "
                        "(num_hidden_layers). Pass --allow_missing_weights=true to leave the rest at their initial "
                        "values.")


def load_into(model: "keras.Layer | dict[str, Any]", checkpoint: Checkpoint | str,
              options: LoadOptions = LoadOptions()) -> LoadReport:
    """Gives a model's variables the values that a checkpoint holds under their names, one at a time.

    Args:
        model: a Keras model whose variables have the release's names, or a dict of name to variable.
        checkpoint: a checkpoint, or a path for `find`.
        options: permitted differences.

    Raises:
        BertError: a part of the encoder is missing or a shape differs, and the options do not allow it; before any
            variable is changed.
    """
    checkpoint = find(checkpoint) if isinstance(checkpoint, str) else checkpoint
    variables = model if isinstance(model, dict) else {variable.path: variable for variable in model.weights}
    reader = checkpoint.reader
    read = tuple(name for name in variables if name in reader.shapes and options.loads(name))
    taken = set(read)
    report = LoadReport(
        read=read,
        initial=tuple(name for name in variables if name not in taken),
        unused=(*(name for name in reader.names if name not in taken), *reader.unknown),
        extended=tuple(name for name in read if _extends(name, reader.shapes[name], variables[name].shape, options)),
    )
    _check(checkpoint, report, variables, options)
    for name in report.read:
        value = reader.get(name)
        if name in report.extended:
            value = _extended(value, variables[name], name == _POSITIONS and options.extend_positions == "copy")
        variables[name].assign(value)
    return report


# --- Finding ---------------------------------------------------------------------------------------------------------


def _in_run(path: str, training: bool) -> str:
    """The checkpoint of a training run's folder: its final model, or its newest checkpoint where that is newer.

    The path itself where it is no run's folder.
    """
    if not files.is_folder(path):
        return path
    saved = [prefix for _, prefix in google.training_checkpoints(path)]
    final = os.path.join(path, run_files.FINAL_MODEL)
    newer = saved and (training or _modified(f"{saved[-1]}.index") > _modified(os.path.join(final, "*.index")))
    if files.is_folder(final) and not newer:
        return final
    return saved[-1] if saved else path


def _modified(pattern: str) -> int:
    """When the newest of the files that a pattern matches was written; 0 where there is none."""
    return max((files.modified(name) for name in files.glob(pattern)), default=0)


def _nothing_at(path: str) -> str:
    """Why there is no checkpoint at a path, as one line."""
    refusals = (each.refusal(path) for each in FORMATS.values())
    if reason := next((refusal for refusal in refusals if refusal), None):
        return reason
    *examples, last = [each.example for each in FORMATS.values()]
    known = f"{', '.join(examples)} or {last}"
    if files.is_folder(path):
        return f"{path}: no checkpoint in this folder ({known})." if files.names_in(path) else \
            f"{path}: no checkpoint, the folder is empty."
    if files.exists(path):
        return f"{path}: not a checkpoint of a known format ({', '.join(FORMATS)})."
    return f"{path}: no such checkpoint. Give a folder, or a path such as {known}."


# --- Loading ---------------------------------------------------------------------------------------------------------


def _check(checkpoint: Checkpoint, report: LoadReport, variables: dict[str, Any], options: LoadOptions) -> None:
    """Raises BertError for a difference that the options do not permit."""
    path, shapes = checkpoint.path, checkpoint.reader.shapes
    if not any(map(_ENCODER.match, report.read)) and any(map(_ENCODER.match, variables)):
        raise BertError(f"{path}: holds none of the model's variables (it holds {_some(checkpoint.reader.names)}).")
    for name in report.read:
        if name not in report.extended:
            _check_shape(path, name, shapes[name], variables[name].shape)
    missing = [name for name in report.initial if _ENCODER.match(name)]
    if missing and not options.allow_missing:
        raise BertError(f"{path}: lacks {len(missing)} of the encoder's tensors ({_some(missing)}). Pass "
                        "--allow_missing_weights=true to leave them at their initial values.")


def _check_shape(path: str, name: str, there: Any, here: Any) -> None:
    there, here = list(there), list(here)
    if there != here:
        raise BertError(f"{path}: {name} has the shape {there} in the checkpoint and {here} in the model."
                        f"{_advice(name, there, here)}")


def _advice(name: str, there: list[int], here: list[int]) -> str:
    if _longer(there, here):
        if name == _POSITIONS:
            return " Pass --extend_positions=copy or initialize to fill the rest."
        if name in _WORDS:
            return " Pass --extend_vocabulary=true to leave the additional words at their initial values."
    return " Use the checkpoint's own configuration." if _ENCODER.match(name) else ""


def _extends(name: str, there: Any, here: Any, options: LoadOptions) -> bool:
    allowed = options.extend_positions != "no" if name == _POSITIONS else name in _WORDS and options.extend_vocabulary
    return allowed and _longer(list(there), list(here))


def _longer(there: list[int], here: list[int]) -> bool:
    """Whether the second shape has more rows and both are otherwise the same."""
    return len(there) == len(here) > 0 and there[1:] == here[1:] and here[0] > there[0]


def _extended(value: np.ndarray, variable: Any, cyclic: bool) -> np.ndarray:
    """The checkpoint's rows, then the same rows again, or the variable's own."""
    if cyclic:
        return np.resize(value, tuple(variable.shape))
    return np.concatenate([value, np.asarray(variable[len(value):])])


def _some(names: list[str], limit: int = 3) -> str:
    return ", ".join(names[:limit]) + (" …" if len(names) > limit else "") if names else "nothing"

"""Fine-tuned models in folders without a task.json, such as Hugging Face's: family and settings by the head."""

from typing import Any

from foundation.errors import BertError
from modeling.checkpoints import huggingface_config, huggingface_names
from modeling.checkpoints.load import Checkpoint
from modeling.head_table import HEADS, TaskHead
from tasks.families import FAMILIES
from tasks.files import CUSTOM
from tasks.squad.files import SquadSettings
from training.initial_model import InitialModel


def settings_of(initial: InitialModel) -> tuple[str, dict[str, Any]] | None:
    """The name of a model's family (`tasks.families`), and the settings that its checkpoint decides.

    Args:
        initial: of the folder.

    Returns:
        None where the checkpoint has no task's head, or not a single one.

    Raises:
        BertError: a head that no family here has.
    """
    checkpoint = initial.checkpoint
    head = _head(checkpoint) if checkpoint else None
    if not checkpoint or not head:
        return None
    units = checkpoint.reader.shapes[f"{head.scope}output_weights"][0]
    found = _SETTINGS[head.name](checkpoint, units, initial.config.max_position_embeddings)
    try:
        FAMILIES[head.name].task(FAMILIES[head.name].settings(**found)).labels  # noqa: B018  (checks them)
    except BertError as error:
        raise BertError(f"{checkpoint.path}: {error}") from None
    return head.name, found


def _head(checkpoint: Checkpoint) -> TaskHead | None:
    shapes = checkpoint.reader.shapes
    found = [HEADS[name] for name in _SETTINGS if len(shapes.get(f"{HEADS[name].scope}output_weights", ())) == 2]
    head = found[0] if len(found) == 1 else None
    if not head or checkpoint.format.name != "huggingface":
        return head
    # Several of its classes call their head the same: only the class's own name tells them apart.
    values = huggingface_config.values_in(checkpoint.folder)
    named = huggingface_names.head_of(huggingface_config.architecture_of(values, checkpoint.folder))
    return head if head is named else None


def _classification(checkpoint: Checkpoint, units: int, positions: int) -> dict[str, Any]:
    problem = huggingface_config.values_in(checkpoint.folder).get("problem_type")
    if problem == "multi_label_classification" or (problem == "regression" and units > 1):
        raise BertError(f"{checkpoint.path}: the model predicts several labels or numbers at once ({problem}); here a "
                        "text has one.")
    return {"task_name": CUSTOM, "regression": units == 1, "max_seq_length": positions,
            "labels": None if units == 1 else _labels(checkpoint, units)}


def _tags(checkpoint: Checkpoint, units: int, positions: int) -> dict[str, Any]:
    return {"labels": _labels(checkpoint, units), "max_seq_length": positions}


def _choices(_: Checkpoint, units: int, positions: int) -> dict[str, Any]:
    # Any of the known data sets: the head scores one choice, however many there are.
    return {"task_name": "swag", "max_seq_length": positions}


def _answers(_: Checkpoint, units: int, positions: int) -> dict[str, Any]:
    """The defaults, or as much of them as a model of few positions takes."""
    length = min(SquadSettings.max_seq_length, positions)
    query = min(SquadSettings.max_query_length, max(1, (length - 3) // 3))
    return {"max_seq_length": length, "max_query_length": query,
            "doc_stride": min(SquadSettings.doc_stride, max(1, (length - 3 - query) // 2))}


def _labels(checkpoint: Checkpoint, units: int) -> tuple[str, ...]:
    """The labels of a model; `transformers` leaves out names that are its own."""
    labels = tuple(checkpoint.labels() or (f"LABEL_{number}" for number in range(units)))
    if len(labels) != units:
        raise BertError(f"{checkpoint.path}: the model has {units} outputs for {len(labels)} labels "
                        f"({', '.join(labels[:5])}).")
    return labels


_SETTINGS = {"classification": _classification, "ner": _tags, "choice": _choices, "squad": _answers}

"""A trained model's labels and a data set's: which output of the model belongs to which label.

A model made elsewhere has its labels in an order of its own. Its outputs are put into the data set's order, so that
metrics, probabilities and prediction files have one order whatever the model's is.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from foundation.errors import BertError

# What transformers calls labels without names.
_UNNAMED = re.compile(r"LABEL_\d+", re.IGNORECASE)


class Labels(NamedTuple):
    """The labels of a data set.

    Attributes:
        names: in the order of their ids.
        spellings: other spellings, to the name.
    """

    names: tuple[str, ...]
    spellings: Mapping[str, str] = {}


@dataclasses.dataclass(frozen=True)
class LabelOrder:
    """Where a model's outputs have the labels of a data set.

    Attributes:
        columns: for each label of the data set the model's output; None where the orders are the same.
        note: a line for the console, or None.
    """

    columns: tuple[int, ...] | None = None
    note: str | None = None

    def arrange(self, outputs: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """Outputs of rows, arrays whose last axis has the labels, in the data set's order."""
        if self.columns is None:
            return {name: list(rows) for name, rows in outputs.items()}
        return {name: [row[..., list(self.columns)] for row in rows] for name, rows in outputs.items()}


def are_named(labels: Sequence[str] | None) -> bool:
    """Whether a model's labels are names, and not `LABEL_0`, `LABEL_1` or nothing."""
    return bool(labels) and not all(_UNNAMED.fullmatch(label) for label in labels or ())


def order(labels: Labels, of_model: Sequence[str] | None, place: str) -> LabelOrder:
    """Finds a data set's labels among a model's, by name; upper and lower case are one where that is not ambiguous.

    Args:
        labels: of the data set.
        of_model: the model's, in the order of its outputs; None where it has none.
        place: the model's path, for messages.

    Raises:
        BertError: they are not the same labels; names both.
    """
    if of_model is None or (not are_named(of_model) and len(of_model) == len(labels.names)):
        return LabelOrder(note=f"{place}: the model's labels have no names; its outputs are taken to be "
                               f"{', '.join(labels.names)}, in this order.")
    ids = _ids(labels)
    folded = _folded(ids)
    found = [ids.get(name.strip(), folded.get(name.strip().casefold())) for name in of_model]
    if len(found) != len(labels.names) or set(found) != set(range(len(labels.names))):
        raise BertError(
            f"{place}: the model's labels are {', '.join(of_model)}; those of the data are {', '.join(labels.names)}. "
            "They do not match by name. Pass --labels with the model's if the data has these; if they only have "
            "other names, rename the model's in its task.json or config.json (id2label).")
    columns = tuple(found.index(number) for number in range(len(found)))
    return LabelOrder(None if columns == tuple(range(len(columns))) else columns)


def _ids(labels: Labels) -> dict[str, int]:
    """The id of each name and spelling."""
    ids = {name: number for number, name in enumerate(labels.names)}
    return {spelling: ids[name] for spelling, name in labels.spellings.items() if name in ids} | ids


def _folded(ids: Mapping[str, int]) -> dict[str, int]:
    """The id of each name without regard to case; names that then stand for several ids are left out."""
    found: dict[str, set[int]] = {}
    for name, number in ids.items():
        found.setdefault(name.casefold(), set()).add(number)
    return {name: numbers.pop() for name, numbers in found.items() if len(numbers) == 1}

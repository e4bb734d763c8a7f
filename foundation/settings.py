"""Settings, each stated once: a dataclass field with its help, range and group is also the flag and its documentation.

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class LoopSettings(Settings):
        output_dir: str = setting(help="Folder for checkpoints, logs and results.", group=SAVING, released=True)
        keep_checkpoint_max: int = setting(5, help="Checkpoints to keep.", group=SAVING, at_least=1)

`foundation.flags` makes flags of such a class and an instance from parsed flags. Python code makes instances directly;
both ways a value that makes no sense is refused with the setting's name.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from foundation.errors import BertError

# Headings of --help and of docs/flags.md, in this order.
DATA, MODEL, TRAINING, EVALUATION, HARDWARE, SAVING, OTHER = GROUPS = (
    "Data", "Model", "Training", "Evaluation and prediction", "Hardware", "Saving and reporting", "Other")

_KEY, _NESTED = "setting", "nested"
# Whole numbers fit into 64 bits.
_LARGEST = 2**63 - 1


@dataclasses.dataclass(frozen=True)
class Description:
    """What `setting` says of a field.

    Attributes:
        help: one or two sentences.
        group: of GROUPS.
        choices: the values allowed; empty where any are.
        at_least, at_most: bounds of a number, inclusive.
        released: whether the original release has a flag of this name.
        alias: a second name of the flag.
        parse: from the flag's text to the value, where the field's type does not say it. Raises ValueError.
        default_text: the default as it is written on the command line, with `parse`.
        repeated: the flag of a tuple may be given several times, an element each, in place of commas.
    """

    help: str
    group: str
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    released: bool = False
    alias: str | None = None
    parse: Callable[[str], Any] | None = None
    default_text: str | None = None
    repeated: bool = False


def setting(default: Any = dataclasses.MISSING, **description: Any) -> Any:
    """A field of a Settings class; without a default it is required. See Description for the other arguments."""
    return dataclasses.field(default=default, metadata={_KEY: Description(**description)})


def nested(kind: "type[Settings]", **defaults: Any) -> Any:
    """A field that holds settings of another class.

    Args:
        kind: the class.
        defaults: defaults of its fields where they differ here.
    """
    metadata = {_NESTED: defaults}
    if any(each.required for each in fields_of(kind, **defaults)):
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default_factory=lambda: kind(**defaults), metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Field:
    """One setting of a class, or of a class nested in it.

    Attributes:
        name: of the field and the flag.
        type: bool, int, float, str or tuple (of str).
        default: None where `required`.
        required: whether a value must be given.
        description: Description.
    """

    name: str
    type: type
    default: Any
    required: bool
    description: Description


def fields_of(kind: "type[Settings]", **defaults: Any) -> Iterator[Field]:
    """The settings of a class, those of nested classes in their place.

    Args:
        kind: a Settings class.
        defaults: in place of the fields' own.

    Yields:
        Field.
    """
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if _NESTED in field.metadata:
            yield from fields_of(hints[field.name], **field.metadata[_NESTED])
        elif _KEY in field.metadata:
            default = defaults.get(field.name, field.default)
            required = default is dataclasses.MISSING
            yield Field(field.name, _plain_type(hints[field.name]), None if required else default, required,
                        field.metadata[_KEY])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of settings classes: refuses values outside of what their fields allow.

    Raises:
        BertError: naming the setting, as `--name=value`.
    """

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if _KEY in field.metadata:
                value = getattr(self, field.name)
                problem = _problem(field.metadata[_KEY], value)
                if problem:
                    raise BertError(f"--{field.name}={value}: {problem}")


def build(kind: "type[Settings]", values: Callable[[str], Any]) -> Any:
    """Makes an instance from values by name.

    Args:
        kind: a Settings class.
        values: function from a field's name to its value.
    """
    hints = typing.get_type_hints(kind)
    return kind(**{field.name: build(hints[field.name], values) if _NESTED in field.metadata else values(field.name)
                   for field in dataclasses.fields(kind) if _NESTED in field.metadata or _KEY in field.metadata})


def _problem(description: Description, value: Any) -> str | None:
    """What is wrong with a value, as a sentence; None where nothing is."""
    if value is None:
        return None
    if description.choices and value not in description.choices:
        return f"not one of {', '.join(description.choices)}."
    if not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number."
    if description.at_least is not None and value < description.at_least:
        return f"must be at least {description.at_least:g}."
    if description.at_most is not None and value > description.at_most:
        return f"must be at most {description.at_most:g}."
    if isinstance(value, int) and not -_LARGEST - 1 <= value <= _LARGEST:
        return "too large."
    return None


def _plain_type(hint: Any) -> type:
    """`int` of `int | None`, `tuple` of `tuple[str, ...]`."""
    if isinstance(hint, types.UnionType):
        hint = next(each for each in typing.get_args(hint) if each is not type(None))
    return typing.get_origin(hint) or hint

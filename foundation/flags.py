"""Flags of settings classes: defined, parsed and explained by `--help`, all from the fields (`foundation.settings`)."""

import difflib
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from absl import flags

from foundation import settings
from foundation.errors import BertError

_HELP = ("--help", "-help", "-h", "--helpfull", "--helpshort")
_WIDTH = 100
_INDENT = " " * 6

AnySettings = TypeVar("AnySettings", bound=settings.Settings)


class CommandLine:
    """Flags of a command line.

    Args:
        kinds: the Settings classes that the script takes. A field that several have is one flag.
    """

    def __init__(self, kinds: Iterable[type[settings.Settings]]) -> None:
        self.fields = {field.name: field for kind in kinds for field in settings.fields_of(kind)}
        self.values = flags.FlagValues()
        for field in self.fields.values():
            _define(field, self.values)

    def parse(self, argv: Sequence[str]) -> None:
        """Parses a command line.

        Raises:
            BertError: an unknown flag, an argument that is no flag, or a value of the wrong kind.
        """
        try:
            rest = self.values(argv)
        except flags.UnrecognizedFlagError as error:
            near = difflib.get_close_matches(error.flagname, self.fields, n=1)
            advice = f"Did you mean --{near[0]}? " if near else ""
            raise BertError(f"--{error.flagname}: no such flag. {advice}See --help.") from None
        except flags.Error as error:
            raise BertError(f"{str(error).removeprefix('flag ').rstrip('.')}. See --help.") from None
        except UnicodeDecodeError as error:
            raise BertError(f"--flagfile: not UTF-8 (0x{error.object[error.start]:02x}). Re-encode the file.") from None
        except RecursionError:  # absl compares a long name with every flag's
            raise BertError("A flag has a name of hundreds of characters. See --help.") from None
        except ValueError as error:  # a file name that no file system takes
            raise BertError(f"--flagfile: {error}.") from None
        if len(rest) > 1:
            raise BertError(f"{rest[1]!r} is not a flag. Flags are written --name=value; see --help.")

    def given(self, name: str) -> bool:
        """Whether the command line has a flag."""
        return bool(self.values[name].present)

    def settings(self, kind: type[AnySettings], recalled: dict[str, Any] | None = None) -> AnySettings:
        """An instance of a settings class.

        Args:
            kind: one of the classes given at construction.
            recalled: values in place of defaults, by name; names that `kind` does not have are passed over.

        Raises:
            BertError: a required flag is missing, or a value is out of range.
        """
        own = {field.name: field for field in settings.fields_of(kind)}

        def value(name: str) -> Any:
            if recalled and name in recalled and not self.given(name):
                return _as_field(own[name], recalled[name])
            found = self.values[name].value
            if found is None and own[name].required:
                raise BertError(f"--{name} is required: {own[name].description.help}")
            return tuple(found) if isinstance(found, list) else found

        return settings.build(kind, value)


def asks_for_help(argv: Sequence[str]) -> bool:
    """Whether a command line asks for help."""
    return any(argument in _HELP for argument in argv[1:])


def help_text(kinds: Iterable[type[settings.Settings]], description: str) -> str:
    """What `--help` prints: the script's description, then its flags by group, the release's first.

    Args:
        kinds: see CommandLine.
        description: the script's docstring.
    """
    lines, groups = [description.strip(), ""], grouped(kinds)
    for group, members in groups:
        lines.append(f"{group}:")
        for field in members:
            lines += textwrap.wrap(f"  --{field.name}{_suffix(field)}", _WIDTH, subsequent_indent=_INDENT,
                                   break_long_words=False, break_on_hyphens=False)
            lines += textwrap.wrap(field.description.help, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
        lines.append("")
    if any(field.description.released for _, members in groups for field in members):
        lines.append("* also a flag of the original release.")
    lines.append("Flags can be read from a file: --flagfile=PATH.")
    return "\n".join(lines)


def grouped(kinds: Iterable[type[settings.Settings]]) -> list[tuple[str, list[settings.Field]]]:
    """The flags of settings classes by group: required ones first, then the release's, then those of this project."""
    fields = {field.name: field for kind in kinds for field in settings.fields_of(kind)}.values()
    by_group = {group: [field for field in fields if field.description.group == group] for group in settings.GROUPS}
    return [(group, sorted(members, key=lambda field: (not field.required, not field.description.released)))
            for group, members in by_group.items() if members]


def default_text(field: settings.Field) -> str:
    """A field's default as it is written on the command line; empty where it has none."""
    if field.description.default_text is not None:
        return field.description.default_text
    if isinstance(field.default, bool):
        return str(field.default).lower()
    if isinstance(field.default, tuple | list):
        return ",".join(map(str, field.default))
    if isinstance(field.default, float):
        return f"{field.default:g}"
    return "" if field.default is None else str(field.default)


def _suffix(field: settings.Field) -> str:
    """What follows a flag's name in --help: required or default, choices, an alias."""
    notes = ["required"] if field.required else [f"default {default_text(field)}"] if default_text(field) else []
    notes += ["|".join(field.description.choices)] if field.description.choices else []
    notes += [f"or --{field.description.alias}"] if field.description.alias else []
    return ("*" if field.description.released else "") + (f"  ({'; '.join(notes)})" if notes else "")


def _define(field: settings.Field, values: flags.FlagValues) -> None:
    """Defines the flag of a field. Ranges and choices are checked by the settings class, for all callers alike."""
    name, description = field.name, field.description
    if description.parse:
        flags.DEFINE(_Parser(description.parse), name, description.default_text, description.help, values)
    elif field.type is bool:
        flags.DEFINE_bool(name, field.default, description.help, flag_values=values)
    elif description.repeated:
        flags.DEFINE_multi_string(name, list(field.default), description.help, flag_values=values)
    elif field.type is tuple:
        flags.DEFINE_list(name, None if field.default is None else list(field.default), description.help,
                          flag_values=values)
    else:
        flags.DEFINE(_Parser(_PARSERS[field.type]), name, field.default, description.help, values)
    if description.alias:
        flags.DEFINE_alias(description.alias, name, flag_values=values)


class _Parser(flags.ArgumentParser):
    """A function from text to value as absl's parser."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def parse(self, argument: Any) -> Any:
        return self.function(argument) if isinstance(argument, str) else argument


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("not a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("not a number") from None


_PARSERS = {int: _whole_number, float: _number, str: str}


def _as_field(field: settings.Field, value: Any) -> Any:
    """A value from JSON as the field's type has it."""
    return tuple(value) if isinstance(value, list) else value

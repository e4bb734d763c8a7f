"""JSON files that a program writes for its own next start: read with a schema, so that a damaged one is one plain line.

A schema is a type (`int`, `float`, `str`, `bool`), a tuple of types of which one must fit, `[schema]` for a list,
`{str: schema}` for an object with any keys, or a dict of keys to schemas; the keys named there must be present, others
are ignored. `float` takes whole numbers too, `None` in a tuple takes null, and ANY takes everything.

    state.read(path, {"step": int, "files": [{"name": str, "bytes": int}]})
"""

import sys
from typing import Any

from foundation import files
from foundation.errors import BertError

ANY = object()


def read(path: str, schema: Any, advice: str = "Remove it to start over.") -> Any:
    """Reads a JSON file that has the form of a schema.

    Args:
        path: local or remote.
        schema: see above.
        advice: what the user can do about a damaged file.

    Raises:
        BertError: the file is not JSON, or has another form; names the file and the first place that differs.
    """
    value = files.read_json(path)
    found = problem(value, schema)
    if found:
        raise BertError(f"{path}: not a state file of this program ({found}). {advice}")
    return value


def problem(value: Any, schema: Any) -> str | None:
    """Where a value from JSON has another form than a schema, as a phrase; None where it has that form."""
    return _problem(value, schema, "")


def _problem(value: Any, schema: Any, place: str) -> str | None:
    """What differs, as a phrase; None where nothing does."""
    if schema is ANY:
        return None
    if isinstance(schema, list):
        return _problem_of_list(value, schema[0], place)
    if isinstance(schema, dict):
        return _problem_of_object(value, schema, place)
    kinds = schema if isinstance(schema, tuple) else (schema,)
    return None if any(_fits(value, kind) for kind in kinds) else f"{place or 'it'} is {_name(value)}"


def _problem_of_list(value: Any, schema: Any, place: str) -> str | None:
    if not isinstance(value, list):
        return f"{place or 'it'} is {_name(value)}, not a list"
    problems = (_problem(each, schema, f"{place}[{index}]") for index, each in enumerate(value))
    return next(filter(None, problems), None)


def _problem_of_object(value: Any, schema: dict[Any, Any], place: str) -> str | None:
    if not isinstance(value, dict):
        return f"{place or 'it'} is {_name(value)}, not an object"
    before = f"{place}." if place else ""
    if set(schema) == {str}:
        problems = (_problem(each, schema[str], f"{before}{key}") for key, each in value.items())
        return next(filter(None, problems), None)
    missing = [key for key in schema if key not in value]
    if missing:
        return f"{before}{missing[0]} is missing"
    return next(filter(None, (_problem(value[key], schema[key], f"{before}{key}") for key in schema)), None)


def _fits(value: Any, kind: Any) -> bool:
    if kind is None or value is None:
        return kind is None and value is None
    if isinstance(value, bool):
        return kind is bool
    if kind is float and isinstance(value, int):
        return abs(value) <= sys.float_info.max
    return isinstance(value, kind)


def _name(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    too_large = isinstance(value, int) and abs(value) > sys.float_info.max
    return "a number too large" if too_large else names.get(type(value), "a number")

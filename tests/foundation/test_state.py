"""State files of another form are one plain line."""

import json

import pytest

from foundation import state
from foundation.errors import BertError

SCHEMA = {"step": int, "score": float, "label": (str, None), "files": [{"name": str}], "metrics": {str: float},
          "more": state.ANY}
GOOD = {"step": 1, "score": 2, "label": None, "files": [{"name": "a", "bytes": 3}], "metrics": {"f1": 0.5},
        "more": [1], "unknown": 0}


def read(tmp_path, value):
    (tmp_path / "state.json").write_text(json.dumps(value))
    return state.read(str(tmp_path / "state.json"), SCHEMA)


def test_value_of_the_schema_is_read(tmp_path):
    assert read(tmp_path, GOOD) == GOOD


@pytest.mark.parametrize(("changes", "problem"), [
    ({"step": "1"}, "step is a string"),
    ({"step": True}, "step is true or false"),
    ({"score": None}, "score is null"),
    ({"files": {}}, "files is an object, not a list"),
    ({"files": [{"name": "a"}, {}]}, r"files\[1\]\.name is missing"),
    ({"metrics": {"f1": []}}, r"metrics\.f1 is a list"),
    ({"score": 10**400}, "score is a number too large"),
])
def test_first_place_that_differs_is_named(tmp_path, changes, problem):
    with pytest.raises(BertError, match=rf"state\.json: not a state file of this program \({problem}.*\)\. Remove it"):
        read(tmp_path, {**GOOD, **changes})


def test_value_that_is_no_object_is_named(tmp_path):
    with pytest.raises(BertError, match="it is a list, not an object"):
        read(tmp_path, [])

"""The script of a search: found in a folder or by path, its flags divided from the search's own."""

import pytest

from foundation.errors import BertError
from search import script


@pytest.fixture
def scripts(tmp_path):
    """A folder with some scripts."""
    for name in ("run_ner.py", "run_poetry.py", "run_search.py", "run_pretraining.py", "convert.py"):
        (tmp_path / name).touch()
    return tmp_path


def test_a_command_line_is_divided():
    assert script.divide(["run_search.py", "run_ner", "--jobs=2", "--", "--data_dir=x", "--", "y"]) == (
        ["run_search.py", "--jobs=2"], "run_ner", ("--data_dir=x", "--", "y"))
    assert script.divide(["run_search.py", "--help"]) == (["run_search.py", "--help"], None, ())


def test_every_fine_tuning_script_of_the_folder_is_found_by_name(scripts):
    assert script.find("run_poetry", str(scripts)) == f"{scripts}/run_poetry.py"
    assert script.find("run_ner.py", str(scripts)) == f"{scripts}/run_ner.py"


def test_a_script_of_your_own_is_found_by_path(scripts):
    assert script.find(f"{scripts}/convert.py", "nowhere") == f"{scripts}/convert.py"


@pytest.mark.parametrize("name", ["run_everything", "run_pretraining", "run_search", "convert"])
def test_an_unknown_script_is_named(name, scripts):
    with pytest.raises(BertError) as caught:
        script.find(name, str(scripts))
    assert str(caught.value) == f"{name!r} is neither run_ner, run_poetry nor the path of a script of your own."


def test_a_missing_script_is_asked_for(scripts):
    with pytest.raises(BertError, match=r"^No script given\. It comes first: python run_search\.py run_ner \.\.\. "):
        script.find(None, str(scripts))

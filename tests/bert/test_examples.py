"""The examples of the docstrings run, on tiny models, and give values of the kind that they show."""

import ast
import doctest
import inspect
import textwrap

import pytest

import bert
from bert import finished, model
from tests.conftest import TINY_CONFIG

EXAMPLES = {test.name: test.examples for module in (model, finished)
            for test in doctest.DocTestFinder().find(module) if test.examples}


@pytest.fixture
def shown(models, tiny_release, monkeypatch, tmp_path):
    """Text of an example with the tiny models in place of the ones that it names."""
    (tmp_path / "uncased_L-12_H-768_A-12").symlink_to(tiny_release)
    monkeypatch.chdir(tmp_path)
    return lambda text: text.replace("/models", str(models.folder)).replace(" 768)", f" {TINY_CONFIG['hidden_size']})")


def kind(value):
    """Types of a value and of what is in it."""
    if isinstance(value, list | tuple):
        return type(value).__name__, [kind(each) for each in value]
    return type(value).__name__


def test_every_public_name_with_work_to_do_has_an_example():
    lacking = [name for name in bert.__all__ if inspect.isfunction(getattr(bert, name)) or (
        "predict" in vars(getattr(bert, name)) and name != "Finished")]
    assert {name for name in lacking if not any(each.endswith(f".{name}") for each in EXAMPLES)} == set()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name, shown):
    names = {}
    for example in EXAMPLES[name]:
        source, want = shown(example.source).strip(), shown(example.want).strip()
        if not want:
            exec(source, names)
            continue
        value = eval(source, names)
        if want.startswith("<"):
            assert repr(value) == want
        elif want.startswith("("):
            assert kind(value) == kind(ast.literal_eval(want))
            assert value == ast.literal_eval(want) or "result" in source
        else:
            assert kind(value) == kind(ast.literal_eval(want))


def test_example_of_the_package_runs(shown):
    lines = [line for line in bert.__doc__.splitlines() if line.startswith("    ")]
    names = {}
    exec(shown(textwrap.dedent("\n".join(lines))), names)
    assert names["vectors"].shape == (2, TINY_CONFIG["hidden_size"]) and len(names["guesses"]) == 1
    assert isinstance(names["results"][0], bert.Label)

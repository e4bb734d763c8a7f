"""The house stands: imports run one way, and only scripts read flags."""

import ast
import pathlib

import pytest

REPOSITORY = pathlib.Path(__file__).parent.parent

# A room may import from the rooms named here, and from itself.
MAY_IMPORT = {
    "foundation": set(),
    "tokenization": {"foundation"},
    "modeling": {"foundation"},
    "data_prep": {"foundation", "tokenization"},
    "inputs": {"foundation", "tokenization"},
    "tasks": {"foundation", "tokenization", "modeling", "inputs"},
    "training": {"foundation", "tokenization", "modeling", "data_prep.records"},
    "finetuning": {"foundation", "tokenization", "modeling", "inputs", "tasks", "training"},
    "extraction": {"foundation", "tokenization", "modeling", "inputs", "training"},
    "search": {"foundation", "modeling", "training"},
}
ROOMS = {*MAY_IMPORT, "bert", "demo", "benchmarks", "tests"}
FILES = sorted(path.relative_to(REPOSITORY) for room in MAY_IMPORT for path in (REPOSITORY / room).rglob("*.py"))


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_run_one_way(file):
    room = file.parts[0]
    allowed = MAY_IMPORT[room] | {room}
    for name in imported(ast.parse((REPOSITORY / file).read_text())):
        if name.split(".")[0] in ROOMS:
            assert any(name == each or name.startswith(f"{each}.") for each in allowed), f"{file} imports {name}"


@pytest.mark.parametrize("file", FILES, ids=str)
def test_library_reads_no_flags(file):
    tree = ast.parse((REPOSITORY / file).read_text())
    is_job = any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)
    if file.parts[0] == "data_prep" and is_job:
        return
    reads = [node.lineno for node in ast.walk(tree) if (isinstance(node, ast.Name) and node.id == "FLAGS")
             or (isinstance(node, ast.Attribute) and node.attr == "FLAGS")]
    assert not reads, f"{file} reads flags in lines {reads}"

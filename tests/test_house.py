"""The house stands: imports run one way, flags and remote files stay in their places, what callers see is typed."""

import ast
import functools
import re
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from tests.light_start import HEAVY

# A room may import from the rooms named here, and from itself.
MAY_IMPORT = {
    "foundation": set(),
    "tokenization": {"foundation"},
    "modeling": {"foundation"},
    "data_prep": {"foundation", "tokenization"},
    "inputs": {"foundation", "tokenization"},
    "tasks": {"foundation", "tokenization", "modeling", "inputs"},
    "training": {"foundation", "tokenization", "modeling", "data_prep.records", "data_prep.record_stream",
                 "inputs.packing"},
    "finetuning": {"foundation", "tokenization", "modeling", "inputs", "tasks", "training"},
    "extraction": {"foundation", "tokenization", "modeling", "inputs", "training"},
    "search": {"foundation"},
}
MAY_IMPORT["bert"] = set(MAY_IMPORT)
OTHER_ROOMS = {"demo", "benchmarks", "tests"}

# These report a mistake at once, so they import no heavy library. The last part of a name may be a pattern.
LIGHT = (
    "foundation.*", "training.settings", "training.initial_model", "training.pretraining", "finetuning.driver",
    "finetuning.command", "finetuning.description", "finetuning.settings", "tasks.*.task", "inputs.features",
    "inputs.tables", "modeling.config", "modeling.checkpoints.load", "modeling.checkpoints.convert", "search.*",
    "extraction.driver", "data_prep.settings", "data_prep.pretraining_job", "data_prep.build_vocab",
    "data_prep.create_pretraining_data", "data_prep.split_sentences", "bert.*", "*",
)
# They turn flags into settings; the scripts and the data jobs call them.
FRAMES = {"foundation/flags.py", "foundation/command.py", "finetuning/command.py"}
LINES = 400


def paths(*folders):
    return sorted(path.relative_to(REPOSITORY) for folder in folders for path in (REPOSITORY / folder).rglob("*.py"))


SCRIPTS = sorted(path.relative_to(REPOSITORY) for path in REPOSITORY.glob("*.py"))
LIBRARY = paths(*MAY_IMPORT)
EVERYTHING = [*SCRIPTS, *LIBRARY, *paths(*OTHER_ROOMS, "docs")]


@functools.cache
def tree_of(file):
    return ast.parse((REPOSITORY / file).read_text())


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name, modules):
    return any(name == each or name.startswith(f"{each}.") for each in modules)


@pytest.mark.parametrize("file", LIBRARY, ids=str)
def test_imports_run_one_way(file):
    room = file.parts[0]
    for name in imported(tree_of(file)):
        if within(name, {*MAY_IMPORT, *OTHER_ROOMS, *(script.stem for script in SCRIPTS)}):
            assert within(name, {*MAY_IMPORT[room], room}), f"{file} imports {name}"


def test_only_scripts_and_data_jobs_take_flags():
    for file in LIBRARY:
        names = set(imported(tree_of(file)))
        assert not within("absl", {name.split(".")[0] for name in names}) or str(file) == "foundation/flags.py", file
        takes = any(within(name, ("foundation.flags", "foundation.command")) for name in names)
        if takes and str(file) not in FRAMES:
            assert file.parts[0] == "data_prep", f"{file} takes flags"
            assert not uses_outside_of(tree_of(file), {"command", "flags"}, {"main", "cli"}), f"{file} takes flags"


def uses_outside_of(tree, names, functions):
    """Lines that use a name outside of some functions."""
    inside = {id(node) for each in tree.body if isinstance(each, ast.FunctionDef) and each.name in functions
              for node in ast.walk(each)}
    return [node.lineno for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id in names and id(node) not in inside]


def test_every_script_and_data_job_has_a_command():
    jobs = [file for file in LIBRARY if '__name__ == "__main__"' in (REPOSITORY / file).read_text()
            and file.parts[0] == "data_prep"]
    commands = set(re.findall(r'^bert-([a-z-]+) = "[\w.]+:cli"$', (REPOSITORY / "pyproject.toml").read_text(), re.M))
    assert {file.stem.replace("_", "-") for file in [*SCRIPTS, *jobs]} == commands
    for file in [*SCRIPTS, *jobs]:
        assert any(isinstance(node, ast.FunctionDef) and node.name == "cli" for node in tree_of(file).body), file


def test_files_are_opened_in_one_place():
    for file in EVERYTHING:
        if file.parts[0] != "tests" and str(file) != "foundation/files.py":
            uses = [node.lineno for node in ast.walk(tree_of(file))
                    if isinstance(node, ast.Attribute) and node.attr == "gfile"]
            assert not uses, f"{file}: tf.io.gfile in lines {uses}; use foundation.files"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_what_callers_see_is_annotated(room):
    lacking = [f"{file}:{line} {name}" for file in LIBRARY if file.parts[0] == room
               for line, name in unannotated(tree_of(file))]
    assert not lacking, "\n".join(["", *lacking])


def unannotated(tree):
    """Line and name of each public function or method without all of its types."""
    for node in tree.body:
        members = [(node, "")] if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            members = [(member, f"{node.name}.") for member in node.body if isinstance(member, ast.FunctionDef)]
        for function, prefix in members:
            if function.name.startswith("_") and function.name not in ("__init__", "__call__"):
                continue
            arguments = function.args
            own = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
                   *filter(None, (arguments.vararg, arguments.kwarg))]
            is_static = any(getattr(each, "id", "") == "staticmethod" for each in function.decorator_list)
            own = own[1:] if prefix and not is_static else own
            if not function.returns or not all(argument.annotation for argument in own):
                yield function.lineno, f"{prefix}{function.name}"


def test_no_file_is_long():
    counts = {file: (REPOSITORY / file).read_text().count("\n") for file in EVERYTHING}
    assert {str(file): count for file, count in counts.items() if count > LINES} == {}


def test_what_reports_mistakes_imports_no_heavy_library():
    modules = [file.parent if file.name == "__init__.py" else file.with_suffix("") for file in [*SCRIPTS, *LIBRARY]]
    patterns = [re.compile(name.replace(".", r"\.").replace("*", r"\w+")) for name in LIGHT]
    names = [".".join(module.parts) for module in modules]
    light = [name for name in names if any(pattern.fullmatch(name) for pattern in patterns)]
    assert all(any(pattern.fullmatch(name) for name in light) for pattern in patterns)
    program = f"""
import importlib, sys
for name in {light}:
    importlib.import_module(name)
    heavy = [each for each in {(*HEAVY, "h5py")} if each in sys.modules]
    if heavy:
        sys.exit(f"{{name}} imports {{', '.join(heavy)}}")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_make_has_what_it_names():
    text = (REPOSITORY / "Makefile").read_text()
    (named,) = re.findall(r"^\.PHONY: (.*)$", text, re.M)
    assert set(named.split()) == set(re.findall(r"^([a-z-]+):", text, re.M))

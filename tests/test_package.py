"""Installed from a wheel, the library and its commands work from any folder; what the files name twice agrees."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile

import pytest

import bert
from tests.conftest import REPOSITORY
from tests.test_house import LIBRARY, MAY_IMPORT, SCRIPTS

IGNORED = (".git", ".venv*", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis", "build", "dist", "tests",
           "demo_output", "runs", "local")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy: setuptools leaves a build folder in the source."""
    source, folder = tmp_path_factory.mktemp("source") / "bert", tmp_path_factory.mktemp("wheel")
    shutil.copytree(REPOSITORY, source, ignore=shutil.ignore_patterns(*IGNORED))
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, source)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def commands(wheel, tmp_path_factory):
    """Folder of the commands of a new environment, which has the wheel and the other packages of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    pip("--python", folder / "bin/python", "install", "--no-deps", "--no-index", wheel)
    packages = pathlib.Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "this_environment.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def pip(*arguments):
    return finished([sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)])


def finished(command, cwd=None):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_wheel_holds_the_library_and_nothing_else(wheel):
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert {name for name in names if name.endswith(".py")} == {str(file) for file in [*SCRIPTS, *LIBRARY]}
    assert {name for name in names if not name.endswith(".py")} == {
        "tokenization/text_rules.npz", *(f"{room}/py.typed" for room in MAY_IMPORT)}


def test_wheel_is_described_by_the_files_that_say_it_first(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = archive.read(name).decode()
    assert f"Version: {bert.__version__}\n" in metadata and "License-Expression: Apache-2.0\n" in metadata
    assert "License-File: LICENSE\n" in metadata and "License-File: NOTICE\n" in metadata
    needed = {requirement.split(";")[0].strip() for requirement in re.findall("Requires-Dist: (.*)", metadata)
              if "extra ==" not in requirement}
    assert {name_of(line) for line in needed} == {name_of(line) for line in requirements("requirements.txt")}


def test_library_is_imported_from_the_installation_in_any_folder(commands, tmp_path):
    rooms = ", ".join([*MAY_IMPORT, "run_classifier"])
    printed = finished([commands / "python", "-c", f"import {rooms}\nfor each in ({rooms}): print(each.__file__)"],
                       tmp_path)
    assert all(line.startswith(f"{commands.parent}{os.sep}") for line in printed.splitlines()), printed


def test_commands_run_in_any_folder(commands, tmp_path):
    named = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]
    assert set(os.listdir(commands)) >= set(named)
    for name in ("bert-run-classifier", "bert-build-vocab"):
        assert "Flags can be read from a file" in finished([commands / name, "--help"], tmp_path)


def test_requirements_of_tpus_differ_only_where_tensorflow_does():
    plain, tpu = (set(requirements(f"requirements{kind}.txt")) for kind in ("", "-tpu"))
    assert {name_of(line) for line in plain ^ tpu} == {
        "tensorflow", "tensorflow-tpu", "tensorflow-text", "tensorboard", "libtpu"}


def test_requirements_have_upper_bounds():
    for kind in ("", "-test", "-tpu"):
        for line in requirements(f"requirements{kind}.txt"):
            assert re.search("<|==", line), line


def requirements(name):
    lines = [line.split("#")[0].strip() for line in (REPOSITORY / name).read_text().splitlines()]
    return [line for line in lines if line]


def name_of(requirement):
    return re.match(r"[\w.-]+", requirement).group().lower()

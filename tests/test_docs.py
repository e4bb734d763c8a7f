"""README and docs: links lead somewhere, flags and commands are those of the scripts, docs/flags.md is up to date."""

import re
import shlex

import pytest

from docs import make_flags
from foundation.flags import CommandLine
from search import script as search_script
from tasks.classification import glue
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tests.test_house import MAY_IMPORT

PAGES = sorted([*make_flags.REPOSITORY.glob("*.md"), *make_flags.REPOSITORY.glob("docs/*.md")])

# Settings of `python -m benchmarks...` and `python -m demo.run`, and flags by argparse of the peers' programs.
_DEFINITION = re.compile(r"^    (\w+): .* = setting\(|add_argument\(\s*[\"']--(\w+)[\"']", re.MULTILINE)
# Flags of other programs that the pages mention.
_OTHER_PROGRAMS = {
    "command", "flagfile", "gpus", "help", "init", "location", "logdir", "member", "name", "rm", "role", "runtime",
    "scopes", "spot", "version", "worker", "zone",
}


def ids(page):
    return str(page.relative_to(make_flags.REPOSITORY))


def headings(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {make_flags.anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)}


def test_page_of_flags_is_up_to_date():
    assert make_flags.PAGE.read_text(encoding="utf-8") == make_flags.page(), "Run `make docs`."


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_to_files_and_headings(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: no such file"
        if heading:
            assert heading in headings(target), f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_files_named_in_code_exist(page):
    """`tasks/classification/glue.py`, `docs/flags.md` and so on; names with a placeholder or without folder aside."""
    for path in re.findall(r"`((?:[a-z_]+/)+[a-z0-9_]+\.(?:py|md|sh))`", page.read_text(encoding="utf-8")):
        assert (make_flags.REPOSITORY / path).exists(), f"{path}: no such file"


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_flags_exist(page, all_flags):
    text = page.read_text(encoding="utf-8")
    for name in set(re.findall(r"(?<![\w-])--([a-z]\w*)(?![\w-])", text)):
        assert name in all_flags, f"--{name}: no script has this flag"


@pytest.fixture(scope="module")
def all_flags():
    names = set(_OTHER_PROGRAMS)
    for kinds in make_flags.SCRIPTS.values():
        names |= set(CommandLine(kinds).values)
    for path in [*make_flags.REPOSITORY.glob("benchmarks/**/*.py"), *make_flags.REPOSITORY.glob("demo/*.py")]:
        names |= {name for found in _DEFINITION.findall(path.read_text(encoding="utf-8")) for name in found}
    return names


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_commands_parse(page):
    """Each command of a script has flags of that script, with values of the right kind."""
    text = re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8"))  # continuation lines joined
    for line in re.findall(r"^[\s>$]*(?:.*\b)?python (?:-m )?((?:data_prep[/.])?\w+(?:\.py)? .*)$", text, re.MULTILINE):
        script, arguments = command(line)
        if script not in make_flags.SCRIPTS:
            continue
        if script == "run_search.py":
            own, name, rest = search_script.divide([script, *arguments])
            parse(script, own[1:])
            parse(f"{name.removesuffix('.py')}.py", rest)
        else:
            parse(script, arguments)


def command(line):
    """The script, by its path, and the arguments of a command."""
    script, *arguments = shlex.split(re.sub(r"`.*", "", line), comments=True)
    if script.startswith("data_prep.") and not script.endswith(".py"):
        script = script.replace(".", "/") + ".py"
    return script, arguments


def parse(script, arguments):
    given = [re.sub(r"\$\w+", "value", each) for each in arguments if each.startswith("--")]
    CommandLine(make_flags.SCRIPTS[script]).parse([script, *given])


def test_every_page_is_reachable_from_the_readme():
    reached, found = set(), [make_flags.REPOSITORY / "README.md"]
    while found:
        page = found.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        found += [(page.parent / link).resolve() for link in links if not re.match(r"[a-z]+:", link)]
    assert set(make_flags.REPOSITORY.glob("docs/*.md")) <= reached


def test_recipe_of_a_data_set_is_three_lines(tmp_path, monkeypatch):
    """Follows docs/architecture.md: the lines of its diff are the whole data set."""
    text = (make_flags.REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8")
    diff = text.split("### A new GLUE-like data set")[1].split("```")[1]
    lines = [line[1:] for line in diff.splitlines() if line.startswith("+")]
    assert len(lines) == 3
    for name, data_set in eval("{" + "\n".join(lines) + "\n}", vars(glue)).items():
        monkeypatch.setitem(glue.GLUE, name, data_set)
    (tmp_path / "PAWS").mkdir()
    (tmp_path / "PAWS/dev.tsv").write_text("id\tsentence1\tsentence2\tlabel\n1\ta b\tb a\t1\n2\ta\tb\t0\n")
    task = ClassificationTask(ClassificationSettings(task_name="PAWS", data_dir=str(tmp_path)))
    assert [(row.text_a, row.text_b, row.label) for row in task.read("dev")] == [("a b", "b a", 1), ("a", "b", 0)]
    assert (task.metric, task.dev_splits) == ("f1", ("dev",))


def test_table_of_rooms_is_that_of_the_house():
    text = (make_flags.REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)/` \|.*\| ([^|]*) \|$", text, re.MULTILINE)
    named = {room: set(re.findall(r"`([\w.]+)`", imports)) for room, imports in rows}
    assert named == {**MAY_IMPORT, "bert": set()}  # any room below

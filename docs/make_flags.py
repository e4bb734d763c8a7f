"""Writes docs/flags.md, the page of all flags, from the settings classes that the scripts make their flags of.

    python -m docs.make_flags
"""

import ast
import pathlib
from collections.abc import Iterator

from data_prep.settings import RecordSettings, SentenceSettings, VocabularySettings
from extraction.settings import ExtractionSettings
from finetuning.settings import FineTuningSettings
from foundation import files, flags
from foundation.settings import Field, Settings
from modeling.checkpoints.convert import ConversionSettings
from search.settings import SearchSettings
from tasks.families import FAMILIES
from training.settings import PretrainingSettings

REPOSITORY = pathlib.Path(__file__).parent.parent
PAGE = REPOSITORY / "docs/flags.md"

# Script to the classes of its flags, in the order of the page.
SCRIPTS: dict[str, tuple[type[Settings], ...]] = {
    "data_prep/split_sentences.py": (SentenceSettings,),
    "data_prep/build_vocab.py": (VocabularySettings,),
    "data_prep/create_pretraining_data.py": (RecordSettings,),
    "run_pretraining.py": (PretrainingSettings,),
    **{family.script: (family.settings, FineTuningSettings) for family in FAMILIES.values()},
    "run_search.py": (SearchSettings,),
    "extract_features.py": (ExtractionSettings,),
    "convert_checkpoint.py": (ConversionSettings,),
}

_FINE_TUNING = "All fine-tuning scripts"

_HEAD = """# Flags

Made by `make docs` from the settings classes in the code; do not edit. `python <script> --help` prints the same.

`*` after a name: the original release has this flag too, with the same meaning. Flags are written `--name=value`, true
and false as `--name=true` and `--name=false`; `--flagfile=PATH` reads them from a file.
"""


def page() -> str:
    """The page's text."""
    names = [*SCRIPTS]
    names.insert(next(i for i, name in enumerate(names) if FineTuningSettings in SCRIPTS[name]), _FINE_TUNING)
    contents = "\n".join(f"- [{name}](#{anchor(name)})" for name in names)
    return "\n".join([_HEAD, contents, "", *(line for name in names for line in _section(name))])


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    kept = "".join(each for each in heading.lower() if each.isalnum() or each in " -_")
    return kept.replace(" ", "-")


def _section(name: str) -> Iterator[str]:
    """Lines on a script."""
    yield f"## {name}"
    yield ""
    if name == _FINE_TUNING:
        yield from _groups((FineTuningSettings,))
        return
    yield _first_sentence(name)
    yield ""
    kinds = tuple(kind for kind in SCRIPTS[name] if kind is not FineTuningSettings)
    if kinds != SCRIPTS[name]:
        yield f"These, and the flags of [all fine-tuning scripts](#{anchor(_FINE_TUNING)})."
        yield ""
    yield from _groups(kinds)


def _groups(kinds: tuple[type[Settings], ...]) -> Iterator[str]:
    """A table for each group of flags."""
    for group, fields in flags.grouped(kinds):
        yield f"| {group} | default | |"
        yield "|---|---|---|"
        yield from map(_row, fields)
        yield ""


def _row(field: Field) -> str:
    description, default = field.description, flags.default_text(field)
    name = f"`--{field.name}`{' *' if description.released else ''}"
    alias = f", `--{description.alias}`" if description.alias else ""
    choices = f" One of {', '.join(f'`{each}`' for each in description.choices)}." if description.choices else ""
    default = "**required**" if field.required else f"`{default}`" if default else ""
    return f"| {name}{alias} | {default} | {(description.help + choices).replace('|', chr(92) + '|')} |"


def _first_sentence(script: str) -> str:
    """The first paragraph of a script's docstring."""
    text = ast.get_docstring(ast.parse((REPOSITORY / script).read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def main() -> None:
    """Writes the page."""
    files.write_text(str(PAGE), page())
    print(f"{PAGE.relative_to(REPOSITORY)} written.")


if __name__ == "__main__":
    main()

"""The files next to the weights in a folder laid out as the release's, which Google's and Keras' format share."""

import os
import re

from foundation import files, run_files, vocab_file
from modeling.checkpoints.format import Contents

CONFIG_FILES: tuple[str, ...] = (run_files.CONFIG, "config.json")

# Released folders have their casing in the name, such as cased_L-12_H-768_A-12 and wwm_uncased_L-24_H-1024_A-16; their
# configurations do not have it.
_CASING_OF_FOLDER = re.compile(r"(?:^|_)(un)?cased_L-\d")


def labels(folder: str) -> list[str] | None:
    """Names of the classes from the description of the task, or None."""
    path = os.path.join(folder, run_files.TASK)
    return files.read_json(path).get("labels") if files.exists(path) else None


def lower_case(folder: str) -> bool | None:
    """Casing by the folder's name, or None."""
    found = _CASING_OF_FOLDER.search(os.path.basename(folder))
    return bool(found[1]) if found else None


def write(folder: str, contents: Contents) -> None:
    """Writes everything but the weights."""
    contents.config.to_json_file(os.path.join(folder, run_files.CONFIG))
    if contents.tokens:
        vocab_file.write(os.path.join(folder, run_files.VOCABULARY), contents.tokens)
    if contents.task:
        files.write_json(os.path.join(folder, run_files.TASK), contents.task)

"""The files next to the weights in a folder laid out as the release's, which Google's and Keras' format share."""

import os
import re

from foundation import files, run_files, vocab_file
from foundation.errors import BertError
from modeling.checkpoints import tokenizer_files
from modeling.checkpoints.format import Contents

CONFIG_FILES: tuple[str, ...] = (run_files.CONFIG, "config.json")

# Released folders have their casing in the name, such as cased_L-12_H-768_A-12 and wwm_uncased_L-24_H-1024_A-16; their
# configurations do not have it.
_CASING_OF_FOLDER = re.compile(r"(?:^|_)(un)?cased_L-\d")


def labels(folder: str) -> list[str] | None:
    """Names of the classes from the description of the task, or None. Raises BertError where it is damaged."""
    path = os.path.join(folder, run_files.TASK)
    found = (tokenizer_files.json_object(path) or {}).get("labels")
    if found is not None and not (isinstance(found, list) and all(isinstance(label, str) for label in found)):
        raise BertError(f"{path}: labels is not a list of strings.")
    return found or None


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

"""The tokenizer's files next to a model's weights: the vocabulary, and whether it is lower-cased."""

import os
from typing import Any

from foundation import files, run_files, vocab_file
from foundation.errors import BertError
from modeling.config import BertConfig

VOCABULARY = run_files.VOCABULARY
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"

_SPECIAL_TOKENS = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]",
                   "mask_token": "[MASK]"}


def vocabulary_of(folder: str) -> list[str] | None:
    """Word pieces in the order of their ids, from `vocab.txt` or else Hugging Face's `tokenizer.json`.

    Returns:
        None where the folder has neither.

    Raises:
        BertError: the tokenizer is not WordPiece, or ids are missing.
    """
    path = vocabulary_in(folder)
    return vocab_file.read(path) if path else None


def vocabulary_in(folder: str) -> str | None:
    """Path of a folder's `vocab.txt`, or else of its `tokenizer.json`; None where it has neither."""
    paths = (os.path.join(folder, name) for name in (VOCABULARY, TOKENIZER))
    return next((path for path in paths if files.exists(path)), None)


def lower_case_of(folder: str) -> bool | None:
    """Whether a folder's tokenizer lower-cases, by Hugging Face's files; None where they do not specify it."""
    configured = (json_object(os.path.join(folder, TOKENIZER_CONFIG)) or {}).get("do_lower_case")
    if isinstance(configured, bool):
        return configured
    return _lower_cases((json_object(os.path.join(folder, TOKENIZER)) or {}).get("normalizer"))


def write(folder: str, config: BertConfig, tokens: list[str] | None = None) -> None:
    """Writes `vocab.txt` and `tokenizer_config.json`, each atomically.

    Args:
        folder: the model's folder.
        config: casing is left out where `do_lower_case` is None.
        tokens: word pieces in the order of their ids; None writes no vocabulary.
    """
    values: dict[str, Any] = {
        "tokenizer_class": "BertTokenizer", "model_max_length": config.max_position_embeddings, **_SPECIAL_TOKENS}
    if config.do_lower_case is not None:
        values["do_lower_case"] = config.do_lower_case
    if tokens is not None:
        vocab_file.write(os.path.join(folder, VOCABULARY), tokens)
    files.write_json(os.path.join(folder, TOKENIZER_CONFIG), values)


def json_object(path: str) -> dict[str, Any] | None:
    """The JSON object in a file; None where there is no file. Raises BertError for other JSON."""
    if not files.exists(path):
        return None
    values = files.read_json(path)
    if not isinstance(values, dict):
        raise BertError(f"{path}: not one JSON object.")
    return values


def _lower_cases(normalizer: Any) -> bool | None:
    if not isinstance(normalizer, dict):
        return None
    parts = normalizer.get("normalizers")
    if normalizer.get("type") == "Sequence" and isinstance(parts, list):
        return next((value for value in map(_lower_cases, parts) if value is not None), None)
    if normalizer.get("type") == "Lowercase":
        return True
    lower_case = normalizer.get("lowercase")
    return lower_case if isinstance(lower_case, bool) else None

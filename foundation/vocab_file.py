"""Vocabularies on disk: vocab.txt, a word piece per line, whose id is the number of the line, from 0.

Hugging Face's `tokenizer.json` is read too: folders that transformers 5 saves hold no other vocabulary.
"""

from collections.abc import Iterable
from typing import Any

from foundation import files
from foundation.errors import BertError


def read(path: str) -> list[str]:
    """Reads a vocabulary as the release does: UTF-8, only a line feed ends a line, white space around it is stripped.

    Nothing else is checked: an empty line is an empty word piece, and one may come twice.

    Args:
        path: local or remote; a name that ends in `.json` is a Hugging Face tokenizer.

    Returns:
        word pieces in the order of their ids; empty for an empty file.

    Raises:
        BertError: no such file, or not UTF-8; names line and byte. A tokenizer that is not WordPiece, or lacks ids.
    """
    if path.endswith(".json"):
        return _tokens_of(files.read_json(path), path)
    data = files.read_bytes(path)
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BertError(f"{path}, line {line}: byte {error.start} is not UTF-8 (0x{data[error.start]:02x}). "
                        "Re-encode the file.") from None
    if not lines[-1]:
        lines.pop()
    return [line.strip() for line in lines]


def write(path: str, tokens: Iterable[str]) -> None:
    """Writes word pieces in the order of their ids, atomically."""
    files.write_text(path, "".join(f"{token}\n" for token in tokens))


def text(path: str) -> str:
    """The text of a vocab.txt with the word pieces of a file; that of a vocab.txt itself as it is."""
    return "".join(f"{token}\n" for token in read(path)) if path.endswith(".json") else files.read_text(path)


def _tokens_of(tokenizer: Any, path: str) -> list[str]:
    """The word pieces in a tokenizer.json, in the order of their ids."""
    model = tokenizer.get("model") if isinstance(tokenizer, dict) else None
    if not isinstance(model, dict):
        raise BertError(f"{path}: not a tokenizer of Hugging Face (it has no model).")
    vocabulary, kind = model.get("vocab"), model.get("type", "WordPiece")
    if kind != "WordPiece" or not isinstance(vocabulary, dict):
        raise BertError(f"{path}: the tokenizer is {str(kind)[:40]}, not WordPiece.")
    added = tokenizer.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(each, dict) and {"content", "id"} <= set(each)
                                              for each in added):
        raise BertError(f"{path}: added_tokens is not a list of objects with content and id.")
    ids = vocabulary | {str(each["content"]): each["id"] for each in added}
    if {type(number) for number in ids.values()} - {int} or sorted(ids.values()) != list(range(len(ids))):
        raise BertError(f"{path}: the ids of its {len(ids)} word pieces are not 0 to {len(ids) - 1}.")
    # In a vocab.txt they would be other word pieces.
    if wrong := [token for token in ids if token.strip() != token or "\n" in token]:
        raise BertError(f"{path}: the word piece {wrong[0]!r} has white space at an end, or a line feed.")
    return sorted(ids, key=lambda token: ids[token])

"""Texts and pairs of texts, as callers give them, to the two columns that features are made of."""

from collections.abc import Sequence

from foundation.errors import BertError

Text = str | tuple[str, str]  # one text, or a pair


def columns_of(texts: Sequence[Text]) -> tuple[list[str], list[str] | None]:
    """The first text of each, and the second, "" where there is none; None where none is a pair.

    Raises:
        BertError: one text in place of a list, or an element that is neither a text nor a pair.
    """
    check_list(texts, "texts")
    for number, text in enumerate(texts):
        parts = (text,) if isinstance(text, str) else text
        if not isinstance(parts, tuple | list) or not 1 <= len(parts) <= 2 or not all(
                isinstance(part, str) for part in parts):
            raise BertError(f"Element {number} is {repr(text)[:60]}: neither a text nor a pair of texts.")
    first = [text if isinstance(text, str) else text[0] for text in texts]
    second = ["" if isinstance(text, str) else "".join(text[1:]) for text in texts]
    return first, second if any(second) else None


def check_list(values: Sequence[object], what: str) -> None:
    """Raises BertError for one text in place of a list: Python would take each character for an element."""
    if isinstance(values, str):
        raise BertError(f"One text in place of a list of {what}: {values[:60]!r}. Put it in brackets, [text].")

"""Docstrings to running prose, without code, tables, signatures and markup, a line for each paragraph."""

import inspect
import re
from collections.abc import Iterator, Sequence

_BULLET = re.compile(r"(?:[-*•o+]|\(?\d{1,2}[.)]|\([a-z]\)|[a-z]\))\s+(?=\S)")
_UNDERLINE = re.compile(r"([-=~^*#\"'`+_.:/\\!<>|])\1{2,}[-=~^*#\"'`+_.:/\\!<>| ]*$")
_DIRECTIVE = re.compile(
    r"\.\.\s*(?:(?:note|warning|seealso|versionadded|versionchanged|deprecated|hint|tip)::\s*[\d.]*|[\w-]+::.*|_.*)"
)
_FIELD = re.compile(r":\w[\w ]*:|@\w+\b|[\w=*]+\s+(?:--?|:)\s|[a-z_]\w*:\s")
_COLUMNS = re.compile(r"\S {3,}\S")
_FOOTNOTE = re.compile(r"\s*\[(?:\d+|#\w*|[A-Z]\w*)\]_?(?=[\s.,;)]|$)")
_ROLE = re.compile(r":(?:[a-z]+:){1,2}`[~!.]?([^`<]*?)(?:\s*<[^`>]*>)?`")
_TICKS = re.compile(r"``([^`]+)``|`([^`\n]+?)`_{0,2}|`([^`'\n]+)'")
_EMPHASIS = re.compile(r"(?<![\w*])\*{1,2}(\w(?:[^*\n]*\w)?)\*{1,2}(?![\w*])")
_QUOTED_NAME = re.compile(r'"([A-Za-z_][\w.]*(?:\(\))?)"')
_ENDING = re.compile(r"[.!?]['\")\]]*$")
_PLAIN_WORD = re.compile(r"[(\"']?[A-Za-z]+(?:['’-][A-Za-z]+)*[.,;:!?)\"']*$")
_CODE = re.compile(r"[=<>{}\\|@^~\[\]]|\w\(\w*,|::|\$|/\w+/|\w\.\w+\.\w|%[sdr]|&&|->|\.\.\.")
# Any English sentence of some length has several of these words.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """a an the this that these those it its is are was were be been being has have had will would can could may
        might must should do does did not no if when which who where there of in on at to from with without by for as
        and or but than so you we they he them your our one all any each some""",
    )
)
_LICENCE = re.compile(
    r"copyright|licen[sc]e|warrant(?:y|ies)|all rights reserved|permission to use|redistribut|\bSPDX\b|without fee|"
    r"\bPSF\b|liab(?:le|ility)",
    re.IGNORECASE,
)
_EDITOR_NOTE = re.compile(r"\b(?:XXX|TODO|FIXME|pylint|noqa|type: ignore|pragma|vim:|https?:|www\.|doi:|\w@\w+\.\w)")

_MIN_WORDS = 6
# A paragraph without a capital at its beginning or a full stop at its end.
_MIN_WORDS_OF_FRAGMENT = 10
_MIN_PLAIN_SHARE = 0.75
_MAX_CODE_SHARE = 0.1


def paragraphs(text: str) -> list[str]:
    """Extracts the prose of a docstring.

    Args:
        text: plain text or reStructuredText, indented as in its source.

    Returns:
        paragraphs of English sentences, one line each; often none.
    """
    blocks = _blocks(inspect.cleandoc(text).expandtabs().split("\n"))
    found = (clean_markup(" ".join(lines)).replace("::", ":") for lines in blocks)
    return [paragraph for paragraph in found if is_prose(paragraph)]


def clean_markup(text: str) -> str:
    """Removes reStructuredText's inline markup around words; white space becomes single spaces."""
    text = _ROLE.sub(r"\1", text)
    text = _TICKS.sub(lambda match: next(group for group in match.groups() if group), text)
    text = _EMPHASIS.sub(r"\1", text)
    text = _QUOTED_NAME.sub(r"\1", text)
    text = _FOOTNOTE.sub("", text)
    return " ".join(text.split())


def is_prose(paragraph: str) -> bool:
    """Whether a paragraph is English sentences, not code, a heading, a list of names or a licence."""
    words = paragraph.split()
    whole = bool(_ENDING.search(paragraph)) and paragraph.lstrip("\"'(")[:1].isupper()
    if len(words) < (_MIN_WORDS if whole else _MIN_WORDS_OF_FRAGMENT):
        return False
    if _LICENCE.search(paragraph) or _EDITOR_NOTE.search(paragraph):
        return False
    if len(_COMMON & {word.strip(".,;:!?()\"'").lower() for word in words}) < 2:
        return False
    plain = sum(1 for word in words if _PLAIN_WORD.match(word))
    return plain >= _MIN_PLAIN_SHARE * len(words) and len(_CODE.findall(paragraph)) <= _MAX_CODE_SHARE * len(words)


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yields the paragraphs of a cleaned docstring as lists of lines, without lines that are not running text."""
    block: list[str] = []
    indent = 0  # of the block
    literal: int | None = None  # indent of the line that ended in `::`
    in_example = False
    for line in [*lines, ""]:
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        if literal is not None and (not stripped or depth > literal):
            continue  # a literal block is indented more than the line that introduces it
        literal = None
        in_example = bool(stripped) and (in_example or stripped.startswith(">>>"))
        directive = _DIRECTIVE.match(stripped)
        bullet = _BULLET.match(stripped)
        if directive:
            stripped = stripped[directive.end() :].strip()
        elif bullet:
            stripped = stripped[bullet.end() :]
            depth += bullet.end()
        if _UNDERLINE.match(stripped):
            block = block[:-1]  # the line above is a heading
            stripped = ""
        elif in_example or _COLUMNS.search(stripped):
            stripped = ""
        if block and (not stripped or directive or bullet or _begins_paragraph(block[-1], stripped, depth - indent)):
            yield block
            if block[-1].endswith("::"):
                literal = indent
            block = []
        if stripped:
            indent = indent if block else depth
            block.append(stripped)


def _begins_paragraph(previous: str, line: str, deeper: int) -> bool:
    """Whether a line begins a paragraph: it is a field, or its indentation changes between two sentences."""
    return bool(_FIELD.match(line)) or (abs(deeper) >= 2 and (previous[-1] in ".:!?" or not line[0].islower()))

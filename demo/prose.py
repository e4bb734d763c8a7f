"""Documentation strings into running prose: code, tables, signatures and markup taken out, paragraphs re-flowed."""

import inspect
import re

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
# Words without which no English sentence of some length gets by.
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

_FEWEST_WORDS = 6
# Where the capital or the full stop is missing, more of it must speak for itself.
_FEWEST_WORDS_OF_FRAGMENT = 10
_PLAIN_SHARE = 0.75
_CODE_SHARE = 0.1


def paragraphs(text):
    """Takes the prose out of one documentation string.

    Args:
        text: str, plain text or reStructuredText, indented as in its source.

    Returns:
        list of str: paragraphs of English sentences, one line each; often none.
    """
    blocks = _blocks(inspect.cleandoc(text).expandtabs().split("\n"))
    found = (clean_markup(" ".join(lines)).replace("::", ":") for lines in blocks)
    return [paragraph for paragraph in found if is_prose(paragraph)]


def clean_markup(text):
    """Takes reStructuredText's inline marks off the words they stand on, and unifies white space."""
    text = _ROLE.sub(r"\1", text)
    text = _TICKS.sub(lambda match: next(group for group in match.groups() if group), text)
    text = _EMPHASIS.sub(r"\1", text)
    text = _QUOTED_NAME.sub(r"\1", text)
    text = _FOOTNOTE.sub("", text)
    return " ".join(text.split())


def is_prose(paragraph):
    """Whether a paragraph is English sentences rather than code, a heading, a list of names or a licence."""
    words = paragraph.split()
    whole = bool(_ENDING.search(paragraph)) and paragraph.lstrip("\"'(")[:1].isupper()
    if len(words) < (_FEWEST_WORDS if whole else _FEWEST_WORDS_OF_FRAGMENT):
        return False
    if _LICENCE.search(paragraph) or _EDITOR_NOTE.search(paragraph):
        return False
    if len(_COMMON & {word.strip(".,;:!?()\"'").lower() for word in words}) < 2:
        return False
    plain = sum(1 for word in words if _PLAIN_WORD.match(word))
    return plain >= _PLAIN_SHARE * len(words) and len(_CODE.findall(paragraph)) <= _CODE_SHARE * len(words)


def _blocks(lines):
    """Yields the paragraphs of a cleaned docstring as lists of lines, without those that are not running text."""
    block, indent, literal = [], 0, None
    in_example = False
    for line in [*lines, ""]:
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        if literal is not None and (not stripped or depth > literal):
            continue  # what `::` introduced is indented deeper
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
            block = block[:-1]  # a heading, if it has any line above
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


def _begins_paragraph(previous, line, deeper):
    """Whether a line begins a paragraph: a field does, and a change of indentation that is not in mid-sentence."""
    return bool(_FIELD.match(line)) or (abs(deeper) >= 2 and (previous[-1] in ".:!?" or not line[0].islower()))

"""Splits running text into documents: one sentence per line, a blank line between documents.

    python data_prep/split_sentences.py --input_file=articles.txt --output_file=sentences.txt
    python data_prep/split_sentences.py --input_file='books/*.txt' --input_format=file --output_file=sentences.txt
"""

import os
import sys

if not __package__:
    sys.path[:1] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

import foundation.start  # noqa: F401  (first: from here on, Ctrl-C is one line)

# isort: split
import dataclasses
import functools
import itertools
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence

from data_prep import output_paths
from data_prep.sentence_rules import SentenceSplitter
from data_prep.settings import FILE, PARAGRAPHS, SentenceSettings
from data_prep.text_blocks import BLOCK_BYTES, TextReader
from foundation import command, files
from foundation.counting import counted
from foundation.errors import BertError
from foundation.parallel import map_in_order

# Lines of a wrapped file seldom have more characters than this; lines that are paragraphs do.
_WRAPPED_AT_MOST = 100
# A wrapped line that ends before this share of the width, with room for the next word, ends its paragraph.
_SHORT_LINE = 0.75
# Where a block may be cut: between paragraphs rather than sentences, between sentences rather than lines.
_CUTS = ("\n\n", ".\n", "\n")
_LAYOUT_CHARACTERS = 1 << 18
# Where this share of the lines end like sentences, they are not wrapped.
_WHOLE_LINES = 0.7
_LINE_ENDS_SENTENCE = re.compile(r"[.!?…:。！？؟।][\"'”’»)\]」』]*\s*$")


@dataclasses.dataclass
class Statistics:
    """What a run read and wrote."""

    files: int = 0
    documents: int = 0
    sentences: int = 0
    words: int = 0
    bytes_read: int = 0
    bad_bytes: int = 0

    def summary(self) -> str:
        """One line for the console."""
        line = (
            f"{counted(self.documents, 'document')}, {counted(self.sentences, 'sentence')}, "
            f"{counted(self.words, 'word')} from {counted(self.files, 'file')}"
        )
        line += f" ({self.bytes_read / 1e6:.1f} MB)" if self.bytes_read else ""
        return line + (f"; {counted(self.bad_bytes, 'byte')} left out: not UTF-8" if self.bad_bytes else "")


def run(settings: SentenceSettings, block_bytes: int = BLOCK_BYTES) -> Statistics:
    """Splits files of running text into one file of documents, which appears when it is complete.

    Args:
        settings: SentenceSettings. The output does not depend on the number of workers.
        block_bytes: about how much text a worker is given at once.

    Returns:
        Statistics.

    Raises:
        BertError: a file is missing, unreadable or not UTF-8, or none of them holds any text.
    """
    paths = files.match(settings.input_file, "input_file")
    output_paths.check([settings.output_file], [*paths, *filter(None, [settings.abbreviations])])
    abbreviations = read_abbreviations(settings.abbreviations) if settings.abbreviations else ()
    reader = TextReader(settings.on_bad_utf8, block_bytes)
    work = functools.partial(_split_block, SentenceSplitter(abbreviations))
    blocks = _blocks(reader, paths, settings.input_format)
    done = Statistics(files=len(paths))
    with files.atomic(settings.output_file) as temporary, files.open_file(temporary, "wb") as output:
        between = False  # whether a blank line is due before the next sentence
        for part in map_in_order(work, blocks, settings.workers, "num_workers"):
            between |= part.begins_document
            if part.sentences:
                if not done.documents:
                    done.documents = 1
                else:
                    done.documents += between
                    output.write(b"\n" if between else b"")
                output.write(part.text)
                done.documents += part.breaks
                done.sentences += part.sentences
                done.words += part.words
                between = False
            between |= part.ends_document
        if not done.sentences:
            raise BertError(f"{', '.join(paths[:3])}: no text to split, only white space.")
    done.bytes_read, done.bad_bytes = reader.bytes_read, reader.bad_bytes
    return done


@dataclasses.dataclass
class _Block:
    """A part of a file, the input of a worker; `width` is 0 where its lines are paragraphs."""

    text: str
    blank_line_ends_document: bool
    width: int
    is_first: bool


@dataclasses.dataclass
class _Part:
    """A part of the output, the result of a worker; `breaks` counts the blank lines inside `text`."""

    text: bytes
    sentences: int
    words: int
    breaks: int
    begins_document: bool
    ends_document: bool


def _blocks(reader: TextReader, paths: Sequence[str], input_format: str) -> Iterator[_Block]:
    """Yields what the workers split; the layout of a file is decided by its first block."""
    for path in paths:
        layout = None
        for text in reader.blocks(path, _CUTS):
            is_first = layout is None
            layout = layout or file_layout(text, input_format)
            yield _Block(text, *layout, is_first)


def file_layout(beginning: str, input_format: str) -> tuple[bool, int]:
    """How a file is laid out.

    Args:
        beginning: the file or a good part of it.
        input_format: as in SentenceSettings.

    Returns:
        Whether a blank line ends a document, and the width at which lines are wrapped: 0 where a line is a paragraph.
    """
    if input_format == PARAGRAPHS:
        return True, 0
    beginning = beginning[:_LAYOUT_CHARACTERS]
    width = wrapped_width(beginning)
    if input_format == FILE:
        return False, width
    # Blank lines between single lines or wrapped paragraphs are mere spacing.
    runs = [len(run.split("\n")) for run in re.split(r"\n\s*\n", beginning.strip())]
    return not width and len(runs) > 1 and statistics.median(runs) >= 2, width


def _split_block(splitter: SentenceSplitter, block: _Block) -> _Part:
    lines = block.text.split("\n")
    paragraphs = join_wrapped_lines(lines, block.width) if block.width else lines
    out: list[str] = []
    for paragraph in paragraphs:
        sentences = splitter.split(paragraph)
        if sentences:
            out.extend(sentences)
        elif block.blank_line_ends_document and out and out[-1]:
            out.append("")
    ends = block.blank_line_ends_document and not lines[-1].strip()
    begins = block.is_first or (block.blank_line_ends_document and not lines[0].strip())
    if out and not out[-1]:
        out.pop()
    breaks = out.count("")
    text = "\n".join(out) + "\n"
    number = len(out) - breaks
    return _Part(text.encode("utf-8"), number, number + text.count(" "), breaks, begins, ends)


def wrapped_width(text: str) -> int:
    """The width at which the lines of a file or its beginning are wrapped; 0 where a line is a whole paragraph."""
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    lengths = sorted(map(len, lines))
    if not lengths or lengths[len(lengths) * 99 // 100] > _WRAPPED_AT_MOST:
        return 0
    if sum(1 for line in lines if _LINE_ENDS_SENTENCE.search(line)) >= _WHOLE_LINES * len(lines):
        return 0
    return lengths[len(lengths) * 9 // 10]


def join_wrapped_lines(lines: Iterable[str], width: int) -> Iterator[str]:
    """Joins wrapped lines into paragraphs again.

    A paragraph ends at a blank line, before an indented line, after a heading in capitals, and at a line so short
    that the next word would have fitted. A word divided at a line's end keeps its hyphen: it may be `undula-tion` or
    `apple-tree`.

    Args:
        lines: without line ends.
        width: at which they were wrapped.

    Yields:
        Paragraphs.
    """
    paragraph: list[str] = []
    for line in lines:
        words = line.rstrip()
        if paragraph and (not words or _starts_paragraph(paragraph[-1], words, width)):
            yield _joined(paragraph)
            paragraph = []
        if words:
            paragraph.append(words)
    if paragraph:
        yield _joined(paragraph)


def _starts_paragraph(previous: str, line: str, width: int) -> bool:
    if line[0].isspace() and not previous[0].isspace() and line[:2].isspace():
        return True
    if previous.isupper() and not line.isupper():
        return True
    return len(previous) + 1 + len(line.split(None, 1)[0]) <= _SHORT_LINE * width


def _joined(lines: list[str]) -> str:
    parts = [lines[0]]
    for previous, line in itertools.pairwise(lines):
        divided = previous[-1] == "-" and previous[-2:-1].isalpha() and line[:1].islower()
        parts.append(line if divided else " " + line)
    return "".join(parts)


def read_abbreviations(path: str) -> list[str]:
    """Reads a file of abbreviations, one per line; `#` starts a comment."""
    # Not splitlines(): that also cuts at characters that only look like line ends.
    lines = (line.partition("#")[0].strip() for line in files.read_edited_text(path).split("\n"))
    return [line for line in lines if line]


def main(settings: SentenceSettings) -> None:
    """Writes the documents and prints how many there are."""
    print(f"{settings.output_file}: {run(settings).summary()}.")


def cli() -> None:
    """The command line."""
    command.run_with(main, SentenceSettings, __doc__)


if __name__ == "__main__":
    cli()

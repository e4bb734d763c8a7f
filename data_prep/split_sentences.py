"""Running text into documents: one sentence a line, a blank line between documents.

    python -m data_prep.split_sentences --input_file=articles.txt --output_file=sentences.txt
    python -m data_prep.split_sentences --input_file='books/*.txt' --input_format=file --output_file=sentences.txt
"""

import dataclasses
import functools
import itertools
import os
import re
import statistics
import sys

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from absl import flags

from data_prep.sentence_rules import SentenceSplitter
from data_prep.text_blocks import BLOCK_BYTES, TextReader
from foundation import command, files
from foundation.errors import BertError
from foundation.parallel import default_num_workers, map_in_order

# Lines of a wrapped file seldom exceed this many characters; lines that are paragraphs do.
_WRAPPED_AT_MOST = 100
# A wrapped line that ends before this share of the width, with room for the next word, ends its paragraph.
_SHORT_LINE = 0.75
# Where a block may be cut: between paragraphs rather than sentences, between sentences rather than lines.
_CUTS = ("\n\n", ".\n", "\n")
_LAYOUT_CHARACTERS = 1 << 18
# Where so many lines end as sentences do, they are not wrapped.
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

    def summary(self):
        """One line for the screen."""
        line = (
            f"{self.documents:,} documents, {self.sentences:,} sentences, {self.words:,} words from "
            f"{self.files:,} files"
        )
        line += f" ({self.bytes_read / 1e6:.1f} MB)" if self.bytes_read else ""
        return line + (f"; {self.bad_bytes:,} bytes that are not UTF-8 left out" if self.bad_bytes else "")


def run(
    input_files,
    output_file,
    *,
    input_format="paragraphs",
    abbreviations=(),
    on_bad_utf8="error",
    num_workers=1,
    block_bytes=BLOCK_BYTES,
):
    """Splits files of running text into one file of documents, which appears when it is complete.

    Args:
        input_files: list of paths, in the order of the output.
        output_file: path; one sentence a line, a blank line between documents.
        input_format: "paragraphs", one paragraph a line and a blank line between documents; "file", each file one
            document, its lines either paragraphs or, where they are wrapped, joined into paragraphs again; "auto",
            for each file the one that its beginning looks like.
        abbreviations: more words that never end a sentence.
        on_bad_utf8: "error" or "skip" (leave the bytes out and count them).
        num_workers: processes that split; the output does not depend on it.
        block_bytes: about how much one of them is given at once.

    Returns:
        Statistics.

    Raises:
        BertError: a file is missing, unreadable or not UTF-8, or none of them holds any text.
    """

    reader = TextReader(on_bad_utf8, block_bytes)
    work = functools.partial(_split_block, SentenceSplitter(abbreviations))
    blocks = _blocks(reader, input_files, input_format)
    done = Statistics(files=len(input_files))
    with files.atomic(output_file) as temporary, files.open_file(temporary, "wb") as output:
        between = False  # whether a blank line is due before the next sentence
        for part in map_in_order(work, blocks, num_workers):
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
            raise BertError(f"{', '.join(input_files[:3])}: no text to split, only white space.")
    done.bytes_read, done.bad_bytes = reader.bytes_read, reader.bad_bytes
    return done


@dataclasses.dataclass
class _Block:
    """A piece of a file, as a worker is given it; `width` is 0 where its lines are paragraphs."""

    text: str
    blank_line_ends_document: bool
    width: int
    is_first: bool


@dataclasses.dataclass
class _Part:
    """A piece of the output, as a worker returns it; `breaks` counts the blank lines inside `text`."""

    text: bytes
    sentences: int
    words: int
    breaks: int
    begins_document: bool
    ends_document: bool


def _blocks(reader, input_files, input_format):
    """Yields what the workers split; how a file is laid out is seen from its first block."""
    for path in input_files:
        layout = None
        for text in reader.blocks(path, _CUTS):
            is_first = layout is None
            layout = layout or file_layout(text, input_format)
            yield _Block(text, *layout, is_first)


def file_layout(beginning, input_format):
    """How a file is laid out.

    Args:
        beginning: str, the file or a good part of it.
        input_format: "paragraphs", "file" or "auto".

    Returns:
        bool, whether a blank line ends a document; int, the width at which lines are wrapped, 0 where a line is a
        paragraph.
    """
    if input_format == "paragraphs":
        return True, 0
    beginning = beginning[:_LAYOUT_CHARACTERS]
    width = wrapped_width(beginning)
    if input_format == "file":
        return False, width
    # Blank lines between single lines or wrapped paragraphs are no more than spacing.
    runs = [len(run.split("\n")) for run in re.split(r"\n\s*\n", beginning.strip())]
    return not width and len(runs) > 1 and statistics.median(runs) >= 2, width


def _split_block(splitter, block):
    lines = block.text.split("\n")
    paragraphs = join_wrapped_lines(lines, block.width) if block.width else lines
    out = []
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
    sentences = len(out) - breaks
    return _Part(text.encode("utf-8"), sentences, sentences + text.count(" "), breaks, begins, ends)


def wrapped_width(text):
    """The width at which a text's lines are wrapped; 0 where a line is a whole paragraph.

    Args:
        text: str, a file or its beginning.
    """
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    lengths = sorted(map(len, lines))
    if not lengths or lengths[len(lengths) * 99 // 100] > _WRAPPED_AT_MOST:
        return 0
    if sum(1 for line in lines if _LINE_ENDS_SENTENCE.search(line)) >= _WHOLE_LINES * len(lines):
        return 0
    return lengths[len(lengths) * 9 // 10]


def join_wrapped_lines(lines, width):
    """Joins wrapped lines into paragraphs again.

    A paragraph ends at a blank line, before an indented line, after a heading in capitals, and at a line so short
    that the next word would have fitted. A word divided at a line's end keeps its hyphen: whether it is `undula-tion`
    or `apple-tree` is not known.

    Args:
        lines: iterable of str, without line ends.
        width: int, at which they were wrapped.

    Yields:
        str, a paragraph.
    """
    paragraph = []
    for line in lines:
        words = line.rstrip()
        if paragraph and (not words or _starts_paragraph(paragraph[-1], words, width)):
            yield _joined(paragraph)
            paragraph = []
        if words:
            paragraph.append(words)
    if paragraph:
        yield _joined(paragraph)


def _starts_paragraph(previous, line, width):
    if line[0].isspace() and not previous[0].isspace() and line[:2].isspace():
        return True
    if previous.isupper() and not line.isupper():
        return True
    return len(previous) + 1 + len(line.split(None, 1)[0]) <= _SHORT_LINE * width


def _joined(lines):
    pieces = [lines[0]]
    for previous, line in itertools.pairwise(lines):
        divided = previous[-1] == "-" and previous[-2:-1].isalpha() and line[:1].islower()
        pieces.append(line if divided else " " + line)
    return "".join(pieces)


def read_abbreviations(path):
    """Reads a file of abbreviations, one a line; `#` begins a comment."""
    lines = (line.partition("#")[0].strip() for line in files.read_text(path).splitlines())
    return [line for line in lines if line]


def define_flags():
    """Defines this job's flags."""
    flags.DEFINE_string("input_file", None, "Text files: paths or globs, comma-separated.", required=True)
    flags.DEFINE_string("output_file", None, "One sentence a line, a blank line between documents.", required=True)
    flags.DEFINE_enum(
        "input_format",
        "paragraphs",
        ["paragraphs", "file", "auto"],
        "paragraphs: one paragraph a line, a blank line between documents. file: each file is one document; wrapped "
        "lines are joined. auto: whichever the beginning of a file looks like.",
    )
    flags.DEFINE_string("abbreviations", None, "A file of further words that never end a sentence, one a line.")
    flags.DEFINE_enum("on_bad_utf8", "error", ["error", "skip"], "Stop at bytes that are not UTF-8, or omit them.")
    flags.DEFINE_integer(
        "num_workers", None, "Processes; all cores where not given. The output is the same.", lower_bound=1
    )


def main(_):
    options = flags.FLAGS
    done = run(
        files.match(options.input_file, "input_file"),
        options.output_file,
        input_format=options.input_format,
        abbreviations=read_abbreviations(options.abbreviations) if options.abbreviations else (),
        on_bad_utf8=options.on_bad_utf8,
        num_workers=options.num_workers or default_num_workers(),
    )
    print(f"{options.output_file}: {done.summary()}.")


if __name__ == "__main__":
    define_flags()
    command.run(main)

"""Learns a WordPiece vocabulary from documents.

    python data_prep/build_vocab.py --input_file=sentences.txt --output_file=vocab.txt --vocab_size=16000

Words are those of the project's tokenizer (`tokenization.text_rules`), counted on all cores; memory does not grow with
the corpus. The same files and settings give the same vocabulary, whatever the number of workers.
"""

import os
import sys

if not __package__:
    sys.path[:1] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

import foundation.start  # noqa: F401  (first: from here on, Ctrl-C is one line)

# isort: split
import collections
import dataclasses
import functools
from collections.abc import Sequence

from data_prep import output_paths, wordpiece_learner
from data_prep.settings import VocabularySettings
from data_prep.text_blocks import BLOCK_BYTES, TextReader
from foundation import command, files, vocab_file
from foundation.counting import counted
from foundation.errors import BertError
from foundation.parallel import map_in_order
from tokenization.text_rules import TextRules
from tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK, unused

# The text rules work on arrays; slices of this many characters stay in the processor's cache.
_SLICE_CHARACTERS = 1 << 17
_MAX_COUNTED_WORDS = 1_000_000
# In the released vocabularies [PAD] is 0 and [UNK] is 100, with [unused0] to [unused98] between them.
_UNUSED_BEFORE_UNK = 99


@dataclasses.dataclass
class Report:
    """What was learned, and from how much text."""

    vocab_size: int
    wanted_size: int
    characters: int
    words: int
    distinct_words: int
    pieces_per_word: float
    unknown_share: float
    bytes_read: int
    bad_bytes: int

    def summary(self) -> str:
        """A few lines for the console."""
        lines = [
            f"{counted(self.vocab_size, 'word piece')}, {self.characters:,} of them single characters, from "
            f"{counted(self.words, 'word')} ({self.bytes_read / 1e6:.1f} MB, {self.distinct_words:,} distinct); "
            f"{self.pieces_per_word:.3f} pieces per word, {self.unknown_share:.4%} of the words [UNK]."
        ]
        if self.vocab_size < self.wanted_size:
            lines.append(
                f"This is less than --vocab_size={self.wanted_size}: the text holds no more pieces that are frequent "
                "enough. Give more text or a lower --min_frequency."
            )
        if self.bad_bytes:
            lines.append(f"{counted(self.bad_bytes, 'byte')} left out: not UTF-8.")
        return "\n".join(lines)


def run(settings: VocabularySettings, block_bytes: int = BLOCK_BYTES) -> Report:
    """Learns a vocabulary and writes it, one piece per line.

    Args:
        settings: VocabularySettings. The vocabulary does not depend on the number of workers.
        block_bytes: about how much text a worker is given at once.

    Returns:
        Report.

    Raises:
        BertError: bad input, or a size too small for the special tokens and the alphabet.
    """
    paths = files.match(settings.input_file, "input_file")
    output_paths.check([settings.output_file], paths)
    reader = TextReader(settings.on_bad_utf8, block_bytes)
    counts = count_words(reader, paths, settings.do_lower_case, settings.workers)
    if not counts:
        raise BertError(f"{', '.join(paths[:3])}: no words, only white space.")
    frame = special_tokens(settings.num_unused)
    learned = wordpiece_learner.learn(
        counts,
        settings.vocab_size - len(frame),
        min_frequency=settings.min_frequency,
        character_coverage=settings.character_coverage,
    )
    smallest = len(frame) + len(learned.characters)
    if smallest > settings.vocab_size:
        raise BertError(
            f"--vocab_size={settings.vocab_size} is too small: {len(frame)} special tokens and unused slots and "
            f"{counted(len(learned.characters), 'character')} take {smallest}. Raise it, or lower --character_coverage."
        )
    vocabulary = frame + learned.characters + learned.pieces
    vocab_file.write(settings.output_file, vocabulary)
    return Report(
        vocab_size=len(vocabulary),
        wanted_size=settings.vocab_size,
        characters=len(learned.characters),
        words=counts.total(),
        distinct_words=len(counts),
        pieces_per_word=learned.pieces_per_word,
        unknown_share=learned.unknown_share,
        bytes_read=reader.bytes_read,
        bad_bytes=reader.bad_bytes,
    )


def special_tokens(num_unused: int) -> list[str]:
    """The first lines of a vocabulary, laid out as in the released vocabularies.

    Args:
        num_unused: how many `[unused]` slots.

    Returns:
        `[PAD]`, up to 99 slots, `[UNK]`, `[CLS]`, `[SEP]`, `[MASK]`, the remaining slots.
    """
    slots = [unused(index) for index in range(num_unused)]
    return [PAD, *slots[:_UNUSED_BEFORE_UNK], UNK, CLS, SEP, MASK, *slots[_UNUSED_BEFORE_UNK:]]


def count_words(reader: TextReader, paths: Sequence[str], do_lower_case: bool, num_workers: int,
                max_words: int = _MAX_COUNTED_WORDS) -> collections.Counter[str]:
    """Counts the words of files.

    Args:
        reader: TextReader.
        paths: the files.
        do_lower_case: lower-case and strip accents.
        num_workers: processes; the counts do not depend on it.
        max_words: whenever there are more distinct words, the rarest are forgotten until half as many are left, so
            that memory is bounded.
    """
    blocks = (block for path in paths for block in reader.blocks(path))
    counts: collections.Counter[str] = collections.Counter()
    work = functools.partial(_count_block, do_lower_case)
    for block_counts in map_in_order(work, blocks, num_workers, "num_workers"):
        counts.update(block_counts)
        if len(counts) > max_words:
            counts = forget_rarest(counts, max_words // 2)
    return counts


def forget_rarest(counts: collections.Counter[str], size: int) -> collections.Counter[str]:
    """Drops the rarest words, all of one frequency together, until at most `size` are left."""
    of_frequency = collections.Counter(counts.values())
    left = len(counts)
    threshold = 0
    for threshold in sorted(of_frequency):
        left -= of_frequency[threshold]
        if left <= size:
            break
    return collections.Counter({word: count for word, count in counts.items() if count > threshold})


def _count_block(do_lower_case: bool, block: str) -> collections.Counter[str]:
    rules = TextRules.of_casing(do_lower_case)
    counts: collections.Counter[str] = collections.Counter()
    start = 0
    while start < len(block):
        end = block.find("\n", start + _SLICE_CHARACTERS) + 1 or len(block)
        counts.update(rules.words(block[start:end]))
        start = end
    return counts


def main(settings: VocabularySettings) -> None:
    """Writes the vocabulary and prints what was learned."""
    print(f"{settings.output_file}: {run(settings).summary()}")


def cli() -> None:
    """The command line."""
    command.run_with(main, VocabularySettings, __doc__)


if __name__ == "__main__":
    cli()

"""Learns a WordPiece vocabulary from documents.

    python -m data_prep.build_vocab --input_file=sentences.txt --output_file=vocab.txt --vocab_size=16000

Words are those of the project's tokenizer (`tokenization.text_rules`), counted by all cores; memory does not grow
with the corpus. The same files and settings give the same vocabulary, whatever the number of workers.
"""

import collections
import dataclasses
import functools
import os
import sys

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from absl import flags

from data_prep import wordpiece_learner
from data_prep.text_blocks import BLOCK_BYTES, TextReader
from foundation import command, files
from foundation.errors import BertError
from foundation.parallel import default_num_workers, map_in_order
from tokenization.text_rules import TextRules
from tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK

# The text rules work on arrays; pieces of this many characters stay in the processor's cache.
_PIECE_CHARACTERS = 1 << 17
_MAX_COUNTED_WORDS = 1_000_000
# In the released vocabularies [PAD] is 0 and [UNK] is 100, with [unused0] to [unused98] between them.
_UNUSED_BEFORE_UNK = 99


@dataclasses.dataclass
class Report:
    """What was learned from what."""

    vocab_size: int
    wanted_size: int
    characters: int
    words: int
    distinct_words: int
    pieces_per_word: float
    unknown_share: float
    bytes_read: int
    bad_bytes: int

    def summary(self):
        """A few lines for the screen."""
        lines = [
            f"{self.vocab_size:,} word pieces, {self.characters:,} of them single characters, from "
            f"{self.words:,} words ({self.bytes_read / 1e6:.1f} MB, {self.distinct_words:,} distinct); "
            f"{self.pieces_per_word:.3f} pieces a word, {self.unknown_share:.4%} of the words [UNK]."
        ]
        if self.vocab_size < self.wanted_size:
            lines.append(
                f"That is less than --vocab_size={self.wanted_size}: the text holds no more pieces that are frequent "
                "enough. Give more text or a lower --min_frequency."
            )
        if self.bad_bytes:
            lines.append(f"{self.bad_bytes:,} bytes that are not UTF-8 left out.")
        return "\n".join(lines)


def run(
    input_files,
    output_file,
    *,
    vocab_size=30522,
    do_lower_case=True,
    num_unused=0,
    min_frequency=2,
    character_coverage=0.99995,
    on_bad_utf8="error",
    num_workers=1,
    block_bytes=BLOCK_BYTES,
):
    """Learns a vocabulary and writes it, one piece a line.

    Args:
        input_files: list of paths to documents (any text: a line is enough of a unit).
        output_file: path of the vocabulary; it appears when it is complete.
        vocab_size: lines of the vocabulary, special tokens and `[unused]` slots included.
        do_lower_case: lower-case and strip accents, as for the uncased models.
        num_unused: `[unused]` slots; with 99 or more, the special tokens have the ids of the released vocabularies.
        min_frequency: pieces that stand beside each other more rarely are not joined to one.
        character_coverage: share of the running characters that the alphabet covers.
        on_bad_utf8: "error" or "skip" (leave the bytes out and count them).
        num_workers: processes that count words; the vocabulary does not depend on it.
        block_bytes: about how much one of them is given at once.

    Returns:
        Report.

    Raises:
        BertError: bad input, or a size too small for the special tokens and the alphabet.
    """
    reader = TextReader(on_bad_utf8, block_bytes)
    counts = count_words(reader, input_files, do_lower_case, num_workers)
    if not counts:
        raise BertError(f"{', '.join(input_files[:3])}: no words, only white space.")
    frame = special_tokens(num_unused)
    learned = wordpiece_learner.learn(
        counts,
        vocab_size - len(frame),
        min_frequency=min_frequency,
        character_coverage=character_coverage,
    )
    smallest = len(frame) + len(learned.characters)
    if smallest > vocab_size:
        raise BertError(
            f"--vocab_size={vocab_size} is too small: {len(frame)} special tokens and unused slots and "
            f"{len(learned.characters)} characters take {smallest}. Raise it, or lower --character_coverage."
        )
    vocabulary = frame + learned.characters + learned.pieces
    files.write_text(output_file, "".join(f"{piece}\n" for piece in vocabulary))
    return Report(
        vocab_size=len(vocabulary),
        wanted_size=vocab_size,
        characters=len(learned.characters),
        words=sum(counts.values()),
        distinct_words=len(counts),
        pieces_per_word=learned.pieces_per_word,
        unknown_share=learned.unknown_share,
        bytes_read=reader.bytes_read,
        bad_bytes=reader.bad_bytes,
    )


def special_tokens(num_unused):
    """The lines a vocabulary begins with, laid out as in the released vocabularies.

    Args:
        num_unused: how many `[unused]` slots.

    Returns:
        list of str: `[PAD]`, up to 99 slots, `[UNK]`, `[CLS]`, `[SEP]`, `[MASK]`, the other slots.
    """
    unused = [f"[unused{index}]" for index in range(num_unused)]
    return [PAD, *unused[:_UNUSED_BEFORE_UNK], UNK, CLS, SEP, MASK, *unused[_UNUSED_BEFORE_UNK:]]


def count_words(reader, input_files, do_lower_case=True, num_workers=1, max_words=_MAX_COUNTED_WORDS):
    """Counts the words of files.

    Args:
        reader: TextReader.
        input_files: list of paths.
        do_lower_case: bool.
        num_workers: int; the counts do not depend on it.
        max_words: whenever more distinct words have come up, the rarest are forgotten until half as many are left, so
            that memory is bounded; what is lost is rare by construction.

    Returns:
        collections.Counter of str.
    """
    blocks = (block for path in input_files for block in reader.blocks(path))
    counts = collections.Counter()
    for block_counts in map_in_order(functools.partial(_count_block, do_lower_case), blocks, num_workers):
        counts.update(block_counts)
        if len(counts) > max_words:
            counts = forget_rarest(counts, max_words // 2)
    return counts


def forget_rarest(counts, size):
    """Drops the rarest words, all of one frequency together, until at most `size` are left."""
    of_frequency = collections.Counter(counts.values())
    left = len(counts)
    threshold = 0
    for threshold in sorted(of_frequency):
        left -= of_frequency[threshold]
        if left <= size:
            break
    return collections.Counter({word: count for word, count in counts.items() if count > threshold})


@functools.cache
def _text_rules(do_lower_case):
    return TextRules(do_lower_case)


def _count_block(do_lower_case, block):
    rules = _text_rules(do_lower_case)
    counts = collections.Counter()
    start = 0
    while start < len(block):
        end = block.find("\n", start + _PIECE_CHARACTERS) + 1 or len(block)
        counts.update(rules.words(block[start:end]))
        start = end
    return counts


def define_flags():
    """Defines this job's flags."""
    flags.DEFINE_string("input_file", None, "Documents: paths or globs, comma-separated.", required=True)
    flags.DEFINE_string("output_file", None, "The vocabulary, one word piece a line.", required=True)
    flags.DEFINE_integer("vocab_size", 30522, "Lines of the vocabulary, all told.", lower_bound=6)
    flags.DEFINE_bool("do_lower_case", True, "Lower-case and strip accents, as for the uncased models.")
    flags.DEFINE_integer(
        "num_unused",
        0,
        "Slots [unused0], [unused1] ... for tokens of your own. With 99 or more, [UNK], [CLS], [SEP] and [MASK] are "
        "100 to 103, as in the released vocabularies; without, they are 1 to 4. [PAD] is always 0.",
        lower_bound=0,
    )
    flags.DEFINE_integer("min_frequency", 2, "Join no two pieces that stand together more rarely.", lower_bound=1)
    flags.DEFINE_float(
        "character_coverage",
        0.99995,
        "Share of the text's characters that gets a place; words with a rarer one become [UNK].",
        lower_bound=0.5,
        upper_bound=1.0,
    )
    flags.DEFINE_enum("on_bad_utf8", "error", ["error", "skip"], "Stop at bytes that are not UTF-8, or omit them.")
    flags.DEFINE_integer(
        "num_workers", None, "Processes; all cores where not given. The vocabulary is the same.", lower_bound=1
    )


def main(_):
    options = flags.FLAGS
    report = run(
        files.match(options.input_file, "input_file"),
        options.output_file,
        vocab_size=options.vocab_size,
        do_lower_case=options.do_lower_case,
        num_unused=options.num_unused,
        min_frequency=options.min_frequency,
        character_coverage=options.character_coverage,
        on_bad_utf8=options.on_bad_utf8,
        num_workers=options.num_workers or default_num_workers(),
    )
    print(f"{options.output_file}: {report.summary()}")


if __name__ == "__main__":
    define_flags()
    command.run(main)

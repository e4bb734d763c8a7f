"""Speed of splitting sentences and of learning a vocabulary from files.

    python -m benchmarks.sentences_and_vocabulary --input_file=articles.txt
    python -m benchmarks.sentences_and_vocabulary --input_file='books/*.txt' --input_format=file --vocab_size=16000

Prints MB of input per CPU-second, in one process and without start-up, of: the sentence rules alone, the whole job of
splitting (reading, joining wrapped lines, writing), counting words, and learning from the counts. Each is the median of
`--repeats` runs.
"""

import dataclasses
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from data_prep import build_vocab, split_sentences, wordpiece_learner
from data_prep.sentence_rules import split
from data_prep.settings import AUTO, INPUT_FORMATS, SKIP, SentenceSettings, VocabularySettings
from data_prep.text_blocks import TextReader
from foundation import command, files
from foundation.settings import DATA, EVALUATION, Settings, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextSettings(Settings):
    """One command."""

    input_file: str = setting(group=DATA, help="Running text: paths and globs, separated by commas.")
    input_format: str = setting(AUTO, choices=INPUT_FORMATS, group=DATA, help="Like that of split_sentences.py.")
    vocab_size: int = setting(30522, at_least=6, group=DATA, help="Like that of build_vocab.py.")
    repeats: int = setting(3, at_least=1, group=EVALUATION, help="Runs of each row; the median is reported.")


def main(settings: TextSettings) -> None:
    """Prints one row per job."""
    paths = files.match(settings.input_file, "input_file")
    lines = [line for path in paths for block in TextReader(SKIP).blocks(path) for line in block.split("\n")]
    megabytes = sum(len(line.encode()) + 1 for line in lines) / 1e6

    def measure(name: str, function: Callable[[], Any]) -> Any:
        """Prints a row with the median CPU time of a call; returns the last call's result."""
        seconds = []
        for _ in range(settings.repeats):
            start = time.process_time()
            result = function()
            seconds.append(time.process_time() - start)
        median = statistics.median(seconds)
        print(f"{name:24}{megabytes:8.1f} MB{median:8.2f} CPU-s{megabytes / median:8.1f} MB/CPU-s", flush=True)
        return result

    with tempfile.TemporaryDirectory() as folder:
        documents = os.path.join(folder, "documents.txt")
        measure("sentence rules", lambda: sum(len(split(line)) for line in lines))
        done = measure("split_sentences", lambda: split_sentences.run(SentenceSettings(
            input_file=paths, output_file=documents, input_format=settings.input_format, on_bad_utf8=SKIP,
            num_workers=1)))
        vocabulary = VocabularySettings(
            input_file=documents, output_file=os.path.join(folder, "vocab.txt"), vocab_size=settings.vocab_size)
        counts = measure("build_vocab: counting", lambda: build_vocab.count_words(
            TextReader(vocabulary.on_bad_utf8), [documents], vocabulary.do_lower_case, num_workers=1))
        special = len(build_vocab.special_tokens(vocabulary.num_unused))
        learned = measure("build_vocab: learning", lambda: wordpiece_learner.learn(
            counts, vocabulary.vocab_size - special, min_frequency=vocabulary.min_frequency,
            character_coverage=vocabulary.character_coverage))
    print(f"{done.documents:,} documents, {done.sentences:,} sentences, {sum(counts.values()):,} words, "
          f"{len(counts):,} distinct; {special + len(learned.characters) + len(learned.pieces):,} word pieces, "
          f"{learned.pieces_per_word:.3f} per word")


if __name__ == "__main__":
    command.run_with(main, TextSettings, __doc__)

"""Speed of sentence splitting and of learning a vocabulary, on given files.

    python -m benchmarks.sentences_and_vocabulary --input_file=articles.txt
    python -m benchmarks.sentences_and_vocabulary --input_file='books/*.txt' --input_format=file --vocab_size=16000

Prints MB of input per CPU-second, in one process and without start-up: the rules alone, the whole job of splitting
(reading, joining wrapped lines, writing), counting words, learning from the counts; medians of `--repeats` runs.
"""

import os
import statistics
import tempfile
import time

from absl import flags

from data_prep import build_vocab, split_sentences, wordpiece_learner
from data_prep.sentence_rules import split
from data_prep.settings import SentenceSettings, VocabularySettings
from data_prep.text_blocks import TextReader
from foundation import command, files

FLAGS = flags.FLAGS


def define_flags():
    flags.DEFINE_string("input_file", None, "Running text: paths or globs, comma-separated.", required=True)
    flags.DEFINE_enum("input_format", "auto", ["paragraphs", "file", "auto"], "As for split_sentences.")
    flags.DEFINE_integer("vocab_size", 30522, "As for build_vocab.")
    flags.DEFINE_integer("repeats", 3, "Runs of each row; the median counts.", lower_bound=1)


def main(_):
    paths = files.match(FLAGS.input_file, "input_file")
    lines = [line for path in paths for block in TextReader("skip").blocks(path) for line in block.split("\n")]
    megabytes = sum(len(line.encode()) + 1 for line in lines) / 1e6

    def measure(name, function):
        """Prints a row: the median CPU time of a call; returns the last call's result."""
        seconds = []
        for _ in range(FLAGS.repeats):
            start = time.process_time()
            result = function()
            seconds.append(time.process_time() - start)
        second = statistics.median(seconds)
        print(f"{name:24}{megabytes:8.1f} MB{second:8.2f} CPU-s{megabytes / second:8.1f} MB/CPU-s", flush=True)
        return result

    with tempfile.TemporaryDirectory() as folder:
        documents = os.path.join(folder, "documents.txt")
        measure("sentence rules", lambda: _count_sentences(lines))
        done = measure(
            "split_sentences",
            lambda: split_sentences.run(SentenceSettings(
                input_file=paths, output_file=documents, input_format=FLAGS.input_format, on_bad_utf8="skip",
                num_workers=1)),
        )
        settings = VocabularySettings(input_file=documents, output_file=os.devnull, vocab_size=FLAGS.vocab_size)
        counts = measure("build_vocab: counting", lambda: build_vocab.count_words(
            TextReader(settings.on_bad_utf8), [documents], settings.do_lower_case, num_workers=1))
        learned = measure("build_vocab: learning", lambda: wordpiece_learner.learn(
            counts, settings.vocab_size - 5, min_frequency=settings.min_frequency,
            character_coverage=settings.character_coverage))
    print(
        f"{done.documents:,} documents, {done.sentences:,} sentences, {sum(counts.values()):,} words, "
        f"{len(counts):,} distinct; {5 + len(learned.characters) + len(learned.pieces):,} pieces, "
        f"{learned.pieces_per_word:.3f} a word"
    )


def _count_sentences(lines):
    return sum(len(split(line)) for line in lines)


if __name__ == "__main__":
    define_flags()
    command.run(main)

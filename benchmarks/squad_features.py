"""Speed of making SQuAD features, training and predicting, in one process.

    python -m benchmarks.squad_features --train_file=train-v1.1.json --vocab_file=vocab.txt

Prints seconds by the clock and CPU-seconds of all threads: of reading the file (JSON, checks, finding answers), of
making the windows for training, of making them for prediction (with the maps back to the text); how many windows and
word pieces there are, what padding them all to --max_seq_length would compute for nothing, and the most memory that
the process held. Start-up (imports, building the tokenizer) is left out. The median of --repeats runs is shown.
"""

import resource
import statistics
import time

from absl import flags

from foundation import command
from tasks.squad import features as squad_features
from tasks.squad import files as squad_files
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary

FLAGS = flags.FLAGS


def define_flags():
    flags.DEFINE_string("train_file", None, "Questions and answers in SQuAD's layout.", required=True)
    flags.DEFINE_string("vocab_file", None, "The vocabulary.", required=True)
    flags.DEFINE_bool("do_lower_case", True, "Whether the vocabulary is lower-cased.")
    flags.DEFINE_integer("max_seq_length", 384, "As for run_squad.py.")
    flags.DEFINE_integer("doc_stride", 128, "As for run_squad.py.")
    flags.DEFINE_integer("max_query_length", 64, "As for run_squad.py.")
    flags.DEFINE_bool("version_2_with_negative", False, "As for run_squad.py.")
    flags.DEFINE_integer("repeats", 3, "Runs of each row; the median counts.", lower_bound=1)


def main(_):
    tokenizer = Tokenizer(Vocabulary.from_file(FLAGS.vocab_file), FLAGS.do_lower_case)
    tokenizer.encode("Warm up.")
    settings = squad_files.SquadSettings(
        max_seq_length=FLAGS.max_seq_length, doc_stride=FLAGS.doc_stride, max_query_length=FLAGS.max_query_length)
    questions = _measure("read the file", _read)
    features = _measure("windows for training", squad_features.make_features, questions, tokenizer, settings, True)
    _measure("windows for prediction", squad_features.make_features, questions, tokenizer, settings, False)
    pieces = int(features.row_splits[-1])
    print(f"{len(questions):,} questions, {len(features):,} windows, {pieces:,} pieces, "
          f"{1 - pieces / (len(features) * FLAGS.max_seq_length):.0%} of a padded batch would be padding; "
          f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:,.0f} MB")


def _read():
    questions = squad_files.read(FLAGS.train_file)
    return squad_files.trainable(questions, FLAGS.version_2_with_negative, FLAGS.train_file)[0]


def _measure(name, function, *arguments):
    """Prints a row: the median times of a call; returns the last call's result."""
    runs = []
    for _ in range(FLAGS.repeats):
        result = None  # the last run's is let go
        clock, cpu = time.monotonic(), time.process_time()
        result = function(*arguments)
        runs.append((time.monotonic() - clock, time.process_time() - cpu))
    clock, cpu = map(statistics.median, zip(*runs))
    print(f"{name:24}{clock:8.2f} s{cpu:8.2f} CPU-s", flush=True)
    return result


if __name__ == "__main__":
    define_flags()
    command.run(main)

"""Makes pre-training records from documents: masked TFRecords from text, one sentence per line.

    python data_prep/create_pretraining_data.py --input_file=articles.txt --output_file=articles.tfrecord@4 \\
        --vocab_file=vocab.txt

Flags and defaults are those of the release; docs/data_preparation.md lists the differences.
"""

import os
import sys

if not __package__:
    sys.path[:1] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

import foundation.start  # noqa: F401  (first: from here on, Ctrl-C is one line)
from data_prep import pretraining_job
from data_prep.settings import RecordSettings
from data_prep.workers import Workers
from foundation import command


def main(settings: RecordSettings) -> None:
    """Makes the records and prints what they are."""
    # No step of this job would gain from a GPU, and TensorFlow would reserve memory of one. It is imported by the
    # workers, once all that can be checked without it has been (`Workers`).
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    with Workers(settings.workers, may_fork=True) as workers:
        made = pretraining_job.run(settings, workers)
    print(pretraining_job.summary(made))
    if settings.log_examples:
        print(pretraining_job.examples(
            made, settings.output_file, settings.corpus.vocab_file, settings.log_examples))


def cli() -> None:
    """The command line."""
    command.run_with(main, RecordSettings, __doc__)


if __name__ == "__main__":
    cli()

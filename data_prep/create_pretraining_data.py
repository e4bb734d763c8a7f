"""Documents in, masked TFRecords for pre-training out.

    python -m data_prep.create_pretraining_data --input_file=articles.txt --output_file=articles.tfrecord@4 \\
        --vocab_file=vocab.txt

The release's flags and defaults; what is done otherwise stands in docs/data_preparation.md.
"""

if not __package__:
    import pathlib
    import sys

    sys.path[:1] = [str(pathlib.Path(__file__).resolve().parent.parent)]

import os

# This job computes nothing that a GPU would speed up; without this each process would take memory of it.
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import foundation  # noqa: F401 (imports TensorFlow without its notices, so it comes before all that imports it)

# isort: split
from absl import flags

from data_prep import pretraining_job
from data_prep.settings import CorpusSettings, InstanceSettings, parse_masking_mix
from data_prep.workers import Workers
from foundation import command
from foundation.errors import BertError
from foundation.parallel import default_num_workers

FLAGS = flags.FLAGS


def define_flags():
    flags.DEFINE_string(
        "input_file",
        None,
        "Text, one sentence a line, an empty line between documents; comma-separated, globs allowed.",
    )
    flags.DEFINE_string(
        "output_file", None, "TFRecord files, comma-separated; name@N stands for name-00000-of-0000N and so on."
    )
    flags.DEFINE_string("vocab_file", None, "The vocabulary, one word piece a line.")
    flags.DEFINE_bool("do_lower_case", True, "Lower-case the text and strip accents: true for an uncased vocabulary.")
    flags.DEFINE_bool("do_whole_word_mask", False, "Mask all pieces of a word together.")
    flags.DEFINE_integer("max_seq_length", 128, "Tokens of an instance.")
    flags.DEFINE_integer("max_predictions_per_seq", 20, "The most predictions of an instance.")
    flags.DEFINE_integer("random_seed", 12345, "Everything random follows from it.")
    flags.DEFINE_integer("dupe_factor", 10, "How many times the corpus is packed and masked, each time differently.")
    flags.DEFINE_float("masked_lm_prob", 0.15, "Share of the tokens to predict.")
    flags.DEFINE_float("short_seq_prob", 0.1, "Share of documents packed to a shorter length.")
    # Not in the release.
    flags.DEFINE_string(
        "masking_mix", "80,10,10", "Percentages of predictions that become [MASK], stay, become a random token."
    )
    flags.DEFINE_bool("next_sentence", True, "Sentence pairs and their label; false packs single segments.")
    flags.DEFINE_bool(
        "replace_with_special", False, "Random tokens may be special and [unused] ones, as in the release."
    )
    flags.DEFINE_enum("on_bad_utf8", "error", ["error", "skip"], "What to do with a line that is not UTF-8.")
    flags.DEFINE_integer(
        "num_workers", None, "Processes; all cores where not given. The records do not depend on it."
    )
    flags.DEFINE_string(
        "work_dir", None, "Local folder for what is in the making; beside the output where not given."
    )
    flags.DEFINE_bool("overwrite", False, "Replace output files that are there.")
    flags.DEFINE_integer("log_examples", 0, "How many finished instances to print, as word pieces.")


def main(_):
    for name in ("input_file", "output_file", "vocab_file"):
        if not FLAGS[name].value:
            raise BertError(f"--{name} is required. {FLAGS[name].help}")
    corpus = CorpusSettings(
        vocab_file=FLAGS.vocab_file, do_lower_case=FLAGS.do_lower_case, on_bad_utf8=FLAGS.on_bad_utf8
    )
    instances = InstanceSettings(
        max_seq_length=FLAGS.max_seq_length,
        max_predictions_per_seq=FLAGS.max_predictions_per_seq,
        masked_lm_prob=FLAGS.masked_lm_prob,
        short_seq_prob=FLAGS.short_seq_prob,
        dupe_factor=FLAGS.dupe_factor,
        random_seed=FLAGS.random_seed,
        do_whole_word_mask=FLAGS.do_whole_word_mask,
        masking_mix=parse_masking_mix(FLAGS.masking_mix),
        next_sentence=FLAGS.next_sentence,
        replace_with_special=FLAGS.replace_with_special,
    )
    num_workers = default_num_workers() if FLAGS.num_workers is None else FLAGS.num_workers
    with Workers(num_workers, nothing_has_run=True) as workers:
        made = pretraining_job.run(
            FLAGS.input_file,
            FLAGS.output_file,
            corpus,
            instances,
            workers,
            work_dir=FLAGS.work_dir,
            overwrite=FLAGS.overwrite,
        )
    print(pretraining_job.summary(made))
    if FLAGS.log_examples:
        print(pretraining_job.examples(made, FLAGS.output_file, FLAGS.vocab_file, FLAGS.log_examples))


if __name__ == "__main__":
    define_flags()
    command.run(main)

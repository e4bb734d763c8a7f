"""Pre-trains BERT on TFRecords of masked text, evaluates it, or both.

    python run_pretraining.py --input_file=/data/pretraining.tfrecord* --output_dir=/models/run \\
        --bert_config_file=bert_config.json --do_train=true --do_eval=true --num_train_steps=100000

The records come from data_prep/create_pretraining_data.py. A run that was stopped or killed goes on when the same
command is given again. docs/pretraining.md has recipes and what to expect.
"""

from absl import flags

from foundation import command
from training import flags as training_flags
from training import pretraining

training_flags.define_model()
training_flags.define_hardware()
training_flags.define_optimization()
training_flags.define_loop()
flags.adopt_module_key_flags(training_flags)  # --help shows them too
flags.DEFINE_string("input_file", None, "TFRecords to train on: files or globs, separated by commas.")
flags.DEFINE_string("eval_input_file", None, "Held-out TFRecords for --do_eval; --input_file where not given.")
flags.DEFINE_bool("do_train", False, "Train.")
flags.DEFINE_bool("do_eval", False, "Evaluate, after training if both are given.")
flags.DEFINE_integer("max_seq_length", 128, "Positions of a record, as it was built.", lower_bound=1)
flags.DEFINE_integer("max_predictions_per_seq", 20, "Prediction slots of a record, as it was built.", lower_bound=1)
flags.DEFINE_integer("train_batch_size", 32, "Records of one update, over all devices.", lower_bound=1)
flags.DEFINE_integer("eval_batch_size", 8, "Records of one evaluation batch, over all devices.", lower_bound=1)
flags.DEFINE_integer("num_train_steps", 100000, "Updates in all; the learning rate falls to zero at the last.",
                     lower_bound=1)
flags.DEFINE_integer("num_warmup_steps", 10000, "Updates over which the learning rate rises.", lower_bound=0)
flags.DEFINE_integer("max_eval_steps", 100, "Most batches of an evaluation.", lower_bound=1)
flags.DEFINE_bool("keep_optimizer", False,
                  "Take optimizer state and step from --init_checkpoint too: the next phase of one schedule.")
flags.DEFINE_bool("next_sentence", True, "Train next-sentence prediction too (paper, table 5).")
flags.DEFINE_bool("causal", False, "Left-to-right attention (paper, table 5).")
flags.DEFINE_integer("shuffle_buffer", 1000, "Window of records shuffled while reading.", lower_bound=1)
flags.mark_flag_as_required("input_file")


def main(_):
    """Flags to settings to one call."""
    report = pretraining.run(training_flags.pretraining(flags.FLAGS))
    print(report.summary())


if __name__ == "__main__":
    command.run(main)

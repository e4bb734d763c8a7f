"""Fine-tunes BERT to answer questions from a text (SQuAD 1.1 and 2.0), predicts answers, or both.

    python run_squad.py --train_file=train-v1.1.json --predict_file=dev-v1.1.json --do_train=true --do_predict=true \\
        --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=bert_model.ckpt \\
        --train_batch_size=12 --learning_rate=3e-5 --num_train_epochs=2 --output_dir=/models/squad

SQuAD 2.0 wants --version_2_with_negative=true. docs/fine_tuning.md has recipes and what to expect.
"""

from absl import flags

from finetuning import data_flags, driver
from foundation import command
from tasks.squad import task as squad
from tasks.squad.answers import ANSWER_TEXTS
from training import flags as training_flags

training_flags.define_finetuning(max_seq_length=384)
flags.adopt_module_key_flags(training_flags)  # --help shows them too
flags.DEFINE_string("train_file", None, "Questions to train on: JSON in SQuAD's layout.")
flags.DEFINE_string("predict_file", None, "Questions to answer, and to score where the file has answers.")
flags.DEFINE_integer("doc_stride", 128, "Pieces from the start of one window of a long context to the next.")
flags.DEFINE_integer("max_query_length", 64, "Longest question in pieces; the rest is cut off.")
flags.DEFINE_integer("n_best_size", 20, "Answers a question in nbest_predictions.json.", lower_bound=1)
flags.DEFINE_integer("max_answer_length", 30, "Longest answer in pieces.", lower_bound=1)
flags.DEFINE_bool("version_2_with_negative", False, "Some questions have no answer (SQuAD 2.0).")
flags.DEFINE_float("null_score_diff_threshold", None,
                   "A question has no answer where the null score is over the best answer's by more than this; what "
                   "is best for F1 on dev where not given, 0.0 where nothing is known of that.")
flags.DEFINE_enum("answer_text", "release", ANSWER_TEXTS,
                  "How an answer's text is found: as the release does, or exactly by the pieces' offsets.")
flags.DEFINE_bool("verbose_logging", False, "Kept for the release's commands; without effect.")


def main(_):
    """Flags to a task and settings to one call."""
    values = flags.FLAGS
    task = squad.SquadTask(data_flags.settings(squad.SquadSettings, values))
    print(driver.run(task, training_flags.finetuning(values)).summary())


if __name__ == "__main__":
    command.run(main)

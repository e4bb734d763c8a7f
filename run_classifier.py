"""Fine-tunes BERT to classify sentences and pairs of them, or to score them; evaluates; predicts.

    python run_classifier.py --task_name=MRPC --data_dir=glue_data --init_checkpoint=uncased_L-12_H-768_A-12 \\
        --do_train=true --do_eval=true --output_dir=/models/mrpc

GLUE's tasks and XNLI by name, and tables of one's own:

    python run_classifier.py --task_name=custom --train_file=train.csv --dev_file=dev.csv --text_a_column=review \\
        --label_column=stars --init_checkpoint=uncased_L-12_H-768_A-12 --do_train=true --do_eval=true \\
        --output_dir=/models/reviews
    python run_classifier.py --do_predict=true --test_file=new.csv --output_dir=/models/reviews
"""

from absl import flags

from finetuning import data_flags, driver
from foundation import command
from tasks.classification import task as classification
from training import flags as training_flags

training_flags.define_finetuning()
flags.adopt_module_key_flags(training_flags)  # --help shows them too
flags.DEFINE_string("task_name", None, "cola, sst-2, mrpc, qqp, sts-b, mnli, qnli, rte, wnli, ax, xnli; or custom: "
                    "your own files, by the flags below.")
data_flags.define_files("Folder of the task's files, or GLUE's with a folder for each task.")
data_flags.define_table()
flags.adopt_module_key_flags(data_flags)
flags.DEFINE_string("text_a_column", None, "Column of the text: its name, its number from 1, or its key in JSON.")
flags.DEFINE_string("text_b_column", None, "Column of the second text, for pairs.")
flags.DEFINE_list("labels", None, "The labels in the order of their ids; those of the training set, sorted, where "
                  "not given.")
flags.DEFINE_bool("regression", False, "The label is a number to predict, as in STS-B.")
flags.DEFINE_string("language", "zh", "Language of XNLI, as en, de or zh.")


def main(_):
    """Flags to a task and settings to one call."""
    values = flags.FLAGS
    task = classification.ClassificationTask(data_flags.settings(classification.ClassificationSettings, values))
    print(driver.run(task, training_flags.finetuning(values)).summary())


if __name__ == "__main__":
    command.run(main)

"""Fine-tunes BERT to classify sentences and pairs of them, or to score them; evaluates; predicts.

    python run_classifier.py --task_name=MRPC --data_dir=glue_data --init_checkpoint=uncased_L-12_H-768_A-12 \\
        --do_train=true --do_eval=true --output_dir=/models/mrpc

GLUE's tasks and XNLI by name, and tables of one's own:

    python run_classifier.py --task_name=custom --train_file=train.csv --dev_file=dev.csv --text_a_column=review \\
        --label_column=stars --init_checkpoint=uncased_L-12_H-768_A-12 --do_train=true --do_eval=true \\
        --output_dir=/models/reviews
    python run_classifier.py --do_predict=true --test_file=new.csv --output_dir=/models/reviews
"""

import dataclasses

from absl import flags

from foundation import command
from tasks import classification, finetuning, tabular
from training import flags as training_flags

training_flags.define_finetuning()
flags.adopt_module_key_flags(training_flags)  # --help shows them too
flags.DEFINE_string("task_name", None, "cola, sst-2, mrpc, qqp, sts-b, mnli, qnli, rte, wnli, ax, xnli; or custom: "
                    "your own files, by the flags below.")
flags.DEFINE_string("data_dir", None, "Folder of the task's files, or GLUE's with a folder for each task.")
flags.DEFINE_string("train_file", None, "Your own training set (TSV, CSV or JSONL); also in place of a task's.")
flags.DEFINE_string("dev_file", None, "Your own dev set; also in place of a task's.")
flags.DEFINE_string("test_file", None, "Your own texts to predict; also in place of a task's test set.")
flags.DEFINE_string("text_a_column", None, "Column of the text: its name, its number from 1, or its key in JSON.")
flags.DEFINE_string("text_b_column", None, "Column of the second text, for pairs.")
flags.DEFINE_string("label_column", None, "Column of the label or score.")
flags.DEFINE_bool("header", None, "The first line names the columns; true where not given, or as the task has it.")
flags.DEFINE_enum("file_format", "auto", tabular.FORMATS, "How files are written. auto: by the ending of the name.")
flags.DEFINE_bool("quoting", None, "Fields may stand in quotes; true in CSV and false in TSV where not given.")
flags.DEFINE_list("labels", None, "The labels in the order of their ids; those of the training set, sorted, where "
                  "not given.")
flags.DEFINE_bool("regression", False, "The label is a number to predict, as in STS-B.")
flags.DEFINE_string("language", "zh", "Language of XNLI, as en, de or zh.")


def main(_):
    """Flags to a task and settings to one call."""
    values = flags.FLAGS
    if not values.do_train:
        training_flags.recall(values, finetuning.description(values.output_dir))
    names = [field.name for field in dataclasses.fields(classification.ClassificationSettings)]
    settings = classification.ClassificationSettings(**{name: values[name].value for name in names})
    print(finetuning.run(classification.ClassificationTask(settings), training_flags.finetuning(values)).summary())


if __name__ == "__main__":
    command.run(main)

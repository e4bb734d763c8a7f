"""Fine-tunes BERT to choose among several continuations of a text; evaluates; predicts.

    python run_multiple_choice.py --task_name=swag --data_dir=swag --init_checkpoint=uncased_L-12_H-768_A-12 \\
        --learning_rate=2e-5 --train_batch_size=16 --do_train=true --do_eval=true --output_dir=/models/swag

SWAG and CODAH by name, and tables of one's own, of any number of choices:

    python run_multiple_choice.py --task_name=custom --train_file=train.csv --dev_file=dev.csv \\
        --prompt_columns=passage,question --choice_columns=a,b,c --label_column=answer --labels=A,B,C \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --do_train=true --do_eval=true --output_dir=/models/exam
    python run_multiple_choice.py --do_predict=true --test_file=new.csv --output_dir=/models/exam
"""

from absl import flags

from finetuning import data_flags, driver
from foundation import command
from tasks.multiple_choice import task as multiple_choice
from training import flags as training_flags

training_flags.define_finetuning()
flags.adopt_module_key_flags(training_flags)  # --help shows them too
flags.DEFINE_string("task_name", None, "swag, codah; or custom: your own files, by the flags below.")
data_flags.define_files("Folder of the data set's files: SWAG's train.csv, val.csv and test.csv, or CODAH's train.tsv, "
                        "dev.tsv and test.tsv.")
data_flags.define_table()
flags.adopt_module_key_flags(data_flags)
flags.DEFINE_list("prompt_columns", None, "Columns of the prompt, joined by spaces. A column is its name, its number "
                  "from 1, or its key in JSON.")
flags.DEFINE_list("choice_columns", None, "Columns of the choices.")
flags.DEFINE_string("choice_prefix_column", None, "Column of what stands before each choice, as SWAG's sent2.")
flags.DEFINE_list("labels", None, "What the label column says for each choice, in order; 0, 1, ... where not given.")


def main(_):
    """Flags to a task and settings to one call."""
    values = flags.FLAGS
    task = multiple_choice.MultipleChoiceTask(data_flags.settings(multiple_choice.MultipleChoiceSettings, values))
    print(driver.run(task, training_flags.finetuning(values)).summary())


if __name__ == "__main__":
    command.run(main)

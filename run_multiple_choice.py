"""Fine-tunes BERT to choose among several continuations of a text; evaluates; predicts.

    python run_multiple_choice.py --task_name=swag --data_dir=swag --init_checkpoint=uncased_L-12_H-768_A-12 \\
        --learning_rate=2e-5 --train_batch_size=16 --do_train=true --do_eval=true --output_dir=/models/swag

SWAG and CODAH by name, and your own tables with any number of choices:

    python run_multiple_choice.py --task_name=custom --train_file=train.csv --dev_file=dev.csv \\
        --prompt_columns=passage,question --choice_columns=a,b,c --label_column=answer --labels=A,B,C \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --do_train=true --do_eval=true --output_dir=/models/exam
    python run_multiple_choice.py --do_predict=true --test_file=new.csv --output_dir=/models/exam
"""

import foundation.start  # noqa: F401  (first: from here on, Ctrl-C is one line)
from finetuning import command
from tasks.multiple_choice.files import MultipleChoiceSettings
from tasks.multiple_choice.task import MultipleChoiceTask


def cli() -> None:
    """The console command."""
    command.run(MultipleChoiceTask, MultipleChoiceSettings, __doc__)


if __name__ == "__main__":
    cli()

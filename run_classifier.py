"""Fine-tunes BERT to classify or score sentences and sentence pairs; evaluates; predicts.

    python run_classifier.py --task_name=MRPC --data_dir=glue_data --init_checkpoint=uncased_L-12_H-768_A-12 \\
        --do_train=true --do_eval=true --output_dir=/models/mrpc

The tasks of GLUE and XNLI by name, and your own tables:

    python run_classifier.py --task_name=custom --train_file=train.csv --dev_file=dev.csv --text_a_column=review \\
        --label_column=stars --init_checkpoint=uncased_L-12_H-768_A-12 --do_train=true --do_eval=true \\
        --output_dir=/models/reviews
    python run_classifier.py --do_predict=true --test_file=new.csv --output_dir=/models/reviews
"""

import foundation.start  # noqa: F401  (first: from here on, Ctrl-C is one line)
from finetuning import command
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask


def cli() -> None:
    """The console command."""
    command.run(ClassificationTask, ClassificationSettings, __doc__)


if __name__ == "__main__":
    cli()

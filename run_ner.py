"""Fine-tunes BERT to label words, as named entities; evaluates as conlleval does; predicts.

    python run_ner.py --data_dir=conll2003 --init_checkpoint=cased_L-12_H-768_A-12 --do_lower_case=false \\
        --document_context=true --do_train=true --do_eval=true --output_dir=/models/ner
    python run_ner.py --do_predict=true --test_file=new.txt --output_dir=/models/ner

A line is a word, any further columns, and its tag (BIO or IOB1), separated by tabs or spaces; an empty line ends a
sentence, `-DOCSTART-` a document. A file to predict may hold words alone. The paper's feature-based approach, with the
encoder frozen:

    python run_ner.py --data_dir=conll2003 --init_checkpoint=cased_L-12_H-768_A-12 --do_lower_case=false \\
        --document_context=true --feature_based=true --features=concat_last_four --do_train=true --do_eval=true \\
        --output_dir=/models/ner_features
"""

import foundation.start  # noqa: F401  (first: from here on, Ctrl-C is one line)

# isort: split
import dataclasses

from finetuning import command
from finetuning.settings import FineTuningSettings
from foundation.flags import CommandLine
from tasks.ner.files import FEATURE_BASED_LEARNING_RATE, NerSettings
from tasks.ner.task import NerTask


def feature_based_learning_rate(line: CommandLine, task: NerSettings, settings: FineTuningSettings
                                ) -> FineTuningSettings:
    """A BiLSTM that starts from random weights learns too little at the rate that suits a pre-trained model."""
    if not task.feature_based or line.given("learning_rate"):
        return settings
    return dataclasses.replace(settings, optimization=dataclasses.replace(
        settings.optimization, learning_rate=FEATURE_BASED_LEARNING_RATE))


def cli() -> None:
    """The console command."""
    command.run(NerTask, NerSettings, __doc__, feature_based_learning_rate)


if __name__ == "__main__":
    cli()

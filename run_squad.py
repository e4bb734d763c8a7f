"""Fine-tunes BERT to answer questions from a text (SQuAD 1.1 and 2.0), predicts answers, or both.

    python run_squad.py --train_file=train-v1.1.json --predict_file=dev-v1.1.json --do_train=true --do_predict=true \\
        --vocab_file=vocab.txt --bert_config_file=bert_config.json --init_checkpoint=bert_model.ckpt \\
        --train_batch_size=12 --learning_rate=3e-5 --num_train_epochs=2 --output_dir=/models/squad

SQuAD 2.0 needs --version_2_with_negative=true. docs/fine_tuning.md has recipes and what to expect.
"""

import foundation.start  # noqa: F401  (first: from here on, Ctrl-C is one line)
from finetuning import command
from tasks.squad.files import SquadSettings
from tasks.squad.task import SquadTask


def cli() -> None:
    """The console command."""
    command.run(SquadTask, SquadSettings, __doc__)


if __name__ == "__main__":
    cli()

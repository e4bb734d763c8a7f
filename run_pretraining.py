"""Pre-trains BERT on TFRecords of masked text, evaluates it, or both.

    python run_pretraining.py --input_file=/data/pretraining.tfrecord* --output_dir=/models/run \\
        --bert_config_file=bert_config.json --do_train=true --do_eval=true --num_train_steps=100000

The records come from data_prep/create_pretraining_data.py. Rerun the same command to resume a run that was stopped or
killed. docs/pretraining.md has recipes and what to expect.
"""

import foundation.start  # noqa: F401  (first: from here on, Ctrl-C is one line)
from foundation import command
from training import pretraining
from training.settings import PretrainingSettings


def main(settings: PretrainingSettings) -> None:
    """Settings to one call."""
    print(pretraining.run(settings).summary())


def cli() -> None:
    """The console command."""
    command.run_with(main, PretrainingSettings, __doc__)


if __name__ == "__main__":
    cli()

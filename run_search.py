"""Fine-tunes with every combination of learning rates, batch sizes, epochs and seeds; keeps the best on the dev set.

    python run_search.py run_classifier --learning_rate=5e-5,4e-5,3e-5,2e-5 --train_batch_size=16,32 \\
        --num_train_epochs=2,3,4 --random_seed=1,2,3 --output_dir=/models/cola_search -- \\
        --task_name=cola --data_dir=glue_data --init_checkpoint=uncased_L-12_H-768_A-12

The first argument is the script: a fine-tuning script of this folder (run_classifier, run_squad, ...) or the path of
your own. The flags of the search come before --, the script's own flags, the same in each run, after it. Without lists
it is the search of the paper's GLUE results: four learning rates, batch size 32, 3 epochs.

--output_dir/best is the folder of the best run. Predict with

    python run_classifier.py --do_predict=true --data_dir=glue_data --output_dir=/models/cola_search/best

Rerun the same command to resume a search that was stopped or killed. With more values in the lists, only the new runs
are made.
"""

import foundation.start  # noqa: F401  (first: from here on, Ctrl-C is one line)

# isort: split
import os
import sys

from foundation import command, flags
from foundation.errors import BertError
from search import driver, script
from search.settings import SearchSettings


def main(line: flags.CommandLine, name: str | None, script_flags: tuple[str, ...]) -> None:
    """Makes the search; an error where a run failed.

    Args:
        line: the search's own flags.
        name: of the script, as it is given on the command line.
        script_flags: those after --.
    """
    path = script.find(name, os.path.dirname(os.path.abspath(__file__)))
    results = driver.run(line.settings(SearchSettings), script.Script(path, script_flags))
    print(results.summary(), flush=True)
    if results.failures:
        raise BertError(f"{len(results.failures)} of {results.total} runs failed: {', '.join(results.failures)}. "
                        f"Rerun the same command to repeat them.")


def cli() -> None:
    """The command."""
    own_argv, name, script_flags = script.divide(sys.argv)
    command.run(lambda line: main(line, name, script_flags), (SearchSettings,), __doc__, own_argv)


if __name__ == "__main__":
    cli()

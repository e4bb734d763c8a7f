"""Fine-tunes with every combination of rates, batch sizes, epochs and seeds, and keeps the best on the dev set.

    python run_search.py run_classifier --learning_rate=5e-5,4e-5,3e-5,2e-5 --train_batch_size=16,32 \\
        --num_train_epochs=2,3,4 --random_seed=1,2,3 --output_dir=/models/cola_search -- \\
        --task_name=cola --data_dir=glue_data --init_checkpoint=uncased_L-12_H-768_A-12

First the script: run_classifier, run_squad, run_multiple_choice or run_ner. Before -- stand the flags of the search,
behind it the script's own, the same in each run. Without lists it is the search of the paper's GLUE results: four
rates, batch 32, 3 epochs. --output_dir/best is the best run's folder: predict by

    python run_classifier.py --do_predict=true --data_dir=glue_data --output_dir=/models/cola_search/best

Stopped or killed, the same command goes on; with more values in the lists it only makes the new runs.
"""

import os
import sys

from absl import flags

from foundation import command
from foundation.errors import BertError
from search import search

SCRIPTS = ("run_classifier", "run_squad", "run_multiple_choice", "run_ner")

# Lists of the search; where none is given, the paper's for GLUE (section 4.1).
flags.DEFINE_list("learning_rate", ["5e-5", "4e-5", "3e-5", "2e-5"], "Learning rates.")
flags.DEFINE_list("train_batch_size", ["32"], "Batch sizes.")
flags.DEFINE_list("num_train_epochs", ["3"], "Numbers of epochs.")
flags.DEFINE_list(search.SEED, ["12345"], "Seeds: a run, that is a restart, each.")
flags.DEFINE_multi_string("vary", [], "Any other flag of the script with several values, as "
                          "--vary=max_seq_length=64,128; may be repeated.")
flags.DEFINE_string("output_dir", None, "Folder of the search, with a folder for each run.")
flags.mark_flag_as_required("output_dir")
flags.DEFINE_string("metric", None, "Figure of eval_results.txt that decides; the task's own where not given.")
flags.DEFINE_integer("jobs", 1, "Runs at once.", lower_bound=1)
flags.DEFINE_bool("delete_models", False, "Keep the weights of the best run only.")


def main(script, script_flags):
    """Flags to one call; exit code 1 where a run failed."""
    values = flags.FLAGS
    grid = {name: values[name].value for name in
            ("learning_rate", "train_batch_size", "num_train_epochs", search.SEED)}
    for each in values.vary:
        name, _, choices = each.partition("=")
        if not name.isidentifier() or not choices or name in grid:
            raise BertError(f"--vary={each}: write --vary=flag=value,value, of a flag without a list of its own.")
        grid[name] = choices.split(",")
    settings = search.SearchSettings(
        _path(script), script_flags,
        {name: tuple(dict.fromkeys(map(search.canonical, choices))) for name, choices in grid.items()},
        values.output_dir.rstrip("/"), values.metric, values.jobs, values.delete_models)
    results = search.run(settings)
    print(results.summary(), flush=True)
    if results.failures:
        raise BertError(f"{len(results.failures)} of {results.total} runs failed: {', '.join(results.failures)}. "
                        f"The same command runs them again.")


def _path(script):
    """The script's file: one of this folder's by name, or a path."""
    if not script:
        raise BertError(f"Which script? It comes first: python run_search.py {SCRIPTS[0]} ... ({', '.join(SCRIPTS)}).")
    if script.removesuffix(".py") in SCRIPTS:
        return os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{script.removesuffix('.py')}.py")
    if script.endswith(".py") and os.path.exists(script):
        return script
    raise BertError(f"{script!r} is none of {', '.join(SCRIPTS)}, and no file of one's own.")


def divide(argv):
    """Cuts a command line into the search's own, the script's name (or None), and the script's flags."""
    at = argv.index("--") if "--" in argv else len(argv)
    own, script_flags = argv[:at], tuple(argv[at + 1 :])
    if len(own) > 1 and not own[1].startswith("-"):
        return [own[0], *own[2:]], own[1], script_flags
    return own, None, script_flags


if __name__ == "__main__":
    own_argv, name_of_script, flags_of_script = divide(sys.argv)
    command.run(lambda _: main(name_of_script, flags_of_script), own_argv)

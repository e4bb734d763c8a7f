"""The paper's way to fine-tune (section 4.1, appendix A.3): a run for each learning rate, batch size, number of epochs
and seed, and the best on the dev set is kept.

A run is a process of a fine-tuning script. A finished run is not repeated; an interrupted one resumes from its last
checkpoint.
"""

from collections.abc import Sequence

from search import folder, results
from search.queue import Queue
from search.results import Results
from search.run import Run, runs_of
from search.script import Script
from search.settings import SearchSettings


def run(settings: SearchSettings, script: Script) -> Results:
    """Makes the runs that are not finished, and compares all of them.

    Args:
        settings: the grid, and what to do with its runs.
        script: what each run executes.

    Returns:
        Results, also written to the search's folder.

    Raises:
        BertError: flags that contradict the search, a folder of another search, or one in use.
    """
    runs = runs_of(settings, script)
    with folder.claimed(settings.output_dir, script):
        print(_plan(runs), flush=True)
        failures = Queue(runs, settings.jobs, settings.delete_models).run()
        if settings.delete_models:
            results.delete_all_but_best(runs)
        return results.write(settings.output_dir, runs, failures)


def _plan(runs: Sequence[Run]) -> str:
    """The size of the grid and of what is done."""
    values = {name: {run.values[name] for run in runs} for name in runs[0].values}
    shape = " × ".join(f"{len(different)} {name}" for name, different in values.items())
    return f"{len(runs)} runs ({shape}), {sum(run.finished is not None for run in runs)} of them already finished."

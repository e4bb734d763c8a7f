"""Settings of a search: the values of each flag that it varies, and what to do with the runs."""

import dataclasses

from foundation.errors import BertError
from foundation.settings import EVALUATION, OTHER, SAVING, TRAINING, Settings, setting

SEED = "random_seed"
# Flags of the script that have a list of their own; any other is varied by --vary.
LISTS = ("learning_rate", "train_batch_size", "num_train_epochs", SEED)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchSettings(Settings):
    """One `run_search.py` command. The lists default to the grid of the paper's GLUE results (section 4.1)."""

    output_dir: str = setting(group=SAVING, help="Folder of the search, with a folder for each run.")
    learning_rate: tuple[str, ...] = setting(
        ("5e-5", "4e-5", "3e-5", "2e-5"), group=TRAINING, help="Learning rates.")
    train_batch_size: tuple[str, ...] = setting(("32",), group=TRAINING, help="Batch sizes.")
    num_train_epochs: tuple[str, ...] = setting(("3",), group=TRAINING, help="Numbers of epochs.")
    random_seed: tuple[str, ...] = setting(("12345",), group=TRAINING, help="Seeds; each is a restart.")
    vary: tuple[str, ...] = setting(
        (), repeated=True, group=TRAINING,
        help="Another flag of the script and its values: --vary=max_seq_length=64,128. May be repeated.")
    metric: str | None = setting(
        None, group=EVALUATION,
        help="Metric of eval_results.txt that selects the best run; of a loss the lowest is best. Default: the task's "
             "main metric.")
    jobs: int = setting(1, at_least=1, group=OTHER, help="Runs at the same time.")
    delete_models: bool = setting(False, group=SAVING, help="Keep only the weights of the best run.")

    def grid(self) -> dict[str, tuple[str, ...]]:
        """The values of each flag that is varied, by its name; each value once, in its canonical spelling.

        Raises:
            BertError: a list without values, or a --vary that cannot be read.
        """
        grid = {name: getattr(self, name) for name in LISTS}
        for text in self.vary:
            name, _, values = text.partition("=")
            if not name.isidentifier() or not values:
                raise BertError(f"--vary={text}: write --vary=flag=value,value.")
            if name in grid:
                advice = f"write --{name}={values}" if name in LISTS else "give all of its values at once"
                raise BertError(f"--vary={text}: --{name} already has a list; {advice}.")
            grid[name] = tuple(values.split(","))
        for name, values in grid.items():
            if not values:
                raise BertError(f"--{name}: no value. Give one or more, separated by commas.")
        return {name: tuple(dict.fromkeys(map(canonical, values))) for name, values in grid.items()}


def canonical(value: str) -> str:
    """One spelling for equal numbers, so that a finished run is found again: 0.00005 becomes 5e-05, 3.0 becomes 3.

    Text that is not a number is returned without surrounding spaces.
    """
    value = value.strip()
    try:
        number = float(value)
        return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
    except (ValueError, OverflowError):
        return value

"""When fine-tuning packs several examples into a row, and how it plans the rows."""

from finetuning.settings import FineTuningSettings
from foundation.errors import BertError
from inputs import packing
from inputs.features import Features
from inputs.packing import PackedPlan
from tasks.task import Network
from training import packing as pretraining_packing
from training.devices import Placement


def is_on(settings: FineTuningSettings, placement: Placement, network: Network) -> bool:
    """Whether --pack packs: auto where XLA would compute padding, and neither flags nor model speak against it.

    Raises:
        BertError: --pack=true, and something does.
    """
    against = None
    if not getattr(network, "packs", False):
        against = "this model takes one sequence a row"
    elif settings.static_shapes == "false":
        against = "--static_shapes=false asks for batches of several lengths"
    if against and settings.pack == "true":
        raise BertError(f"--pack=true: {against}. Leave one of them out.")
    return not against and pretraining_packing.is_on(settings.pack, placement)


def training_plan(features: Features, settings: FineTuningSettings, max_seq_length: int, placement: Placement
                  ) -> PackedPlan:
    """The rows and batches of a run."""
    divisor = placement.num_replicas * settings.optimization.gradient_accumulation_steps
    return packing.training_plan(features, settings.train_batch_size, settings.num_train_epochs,
                                 settings.optimization.random_seed, max_seq_length, divisor)


def describe(plan: PackedPlan) -> str:
    """One line for the console."""
    rows = plan.examples.shape[1]
    return (f"Packed: an update has {rows:,} row{'s' if rows > 1 else ''} of {plan.length} that hold "
            f"{plan.examples_per_batch:,.1f} examples on average; {plan.filled:.1%} of their positions are tokens.")

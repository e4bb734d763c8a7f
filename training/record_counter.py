"""How far a run of packed batches is in its records, whose number varies from batch to batch."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from foundation.run_files import GLOBAL_STEP
from modeling.checkpoints import google


class RecordCounter:
    """Counts the records trained on; a checkpoint holds the count.

    Args:
        records: trained on before.
    """

    # As a slot of the step, readers of weights leave it aside.
    NAME = f"{GLOBAL_STEP}/records"

    def __init__(self, records: int = 0) -> None:
        self.records = records

    @classmethod
    def of_checkpoint(cls, prefix: str) -> "RecordCounter":
        """Resumes from a checkpoint. Raises BertError where it is damaged or not of a packed run."""
        return cls(int(google.read(prefix).get(cls.NAME)))

    def add(self, sums: Mapping[str, float]) -> None:
        """Adds the records of a call of updates, from the sums of `PretrainingObjective`."""
        self.records += round(sums["examples"])

    def records_of(self, counts: np.ndarray, update: int) -> tuple[int, int]:
        """The numbers of the first record of an update and of the one after its last.

        Args:
            counts: records of each update of a call, which are not yet added.
            update: its number in the call.
        """
        end = self.records + round(float(counts[: update + 1].sum(dtype=np.float64)))
        return end - round(float(counts[update])), end

    def state(self) -> dict[str, Any]:
        """The count by its name in checkpoints."""
        return {self.NAME: np.int64(self.records)}

"""Arrays and variables in memory as a checkpoint's reader."""

import numpy as np


class ArrayReader:
    """See `modeling.checkpoints.format.CheckpointReader`; names keep the order of the values."""

    unknown = ()

    def __init__(self, values):
        self.values = values
        self.shapes = {name: list(value.shape) for name, value in values.items()}
        self.names = list(values)

    def get(self, name):
        """A value as a NumPy array."""
        return np.asarray(self.values[name])

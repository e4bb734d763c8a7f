"""The table of checkpoint formats. A new format is one module with a CheckpointFormat, and one line here."""

from modeling.checkpoints import google, huggingface, keras_weights
from modeling.checkpoints.format import CheckpointFormat

# `load.find` asks them in this order.
FORMATS: dict[str, CheckpointFormat] = {each.name: each for each in (
    google.FORMAT,
    keras_weights.FORMAT,
    huggingface.FORMAT,
)}

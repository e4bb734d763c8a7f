"""What the scripts leave out of Keras' import: a third of the CPU time that importing TensorFlow takes.

Keras imports scikit-learn, with SciPy, for a wrapper and matplotlib for a gallery of images, if they are installed.
Nothing here uses either, but the metrics and the learning curves import both libraries when they need them.
"""

import sys
from collections.abc import Sequence

_UNUSED_BY_KERAS = ("matplotlib", "sklearn")


class _Refusal:
    """An import hook: while Keras is being imported, the libraries seem not to be installed."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """Leaves the import to the next hook, or raises ModuleNotFoundError, which Keras takes for an answer."""
        keras = sys.modules.get("keras")
        if name in _UNUSED_BY_KERAS and getattr(getattr(keras, "__spec__", None), "_initializing", False):
            raise ModuleNotFoundError(f"{name} is not imported together with Keras", name=name)


def shorten() -> None:
    """Installs the hook. Call it before TensorFlow is imported; a second call changes nothing."""
    if _Refusal not in sys.meta_path:
        sys.meta_path.insert(0, _Refusal)

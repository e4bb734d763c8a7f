"""What every optimizer shares: slots, weight decay's exceptions, the plumbing of an update under `tf.distribute`.

An optimizer here is its slots and one update rule. It is no Keras optimizer: it holds no learning rate and no step,
does not change the gradients it is given, and updates through `tf.distribute` on every strategy.
"""

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from training.settings import OPTIMIZERS, OptimizationSettings

# The release's list: variables without weight decay.
NO_DECAY = ("LayerNorm", "layer_norm", "bias")


class Optimizer(tf.Module):
    """Base class: a subclass names its slots and implements `update_variable`.

    Args:
        weight_decay: decoupled; multiplied by the learning rate.
        exclude: regular expressions; a variable whose name matches one of them does not decay.
    """

    SLOTS: tuple[str, ...] = ()
    # Whether `update_variable` depends on the number of the update.
    needs_step = False

    def __init__(self, weight_decay: float = 0.01, exclude: Sequence[str] = NO_DECAY) -> None:
        super().__init__()
        self.weight_decay = weight_decay
        self.exclude = tuple(exclude)
        self._names: list[str] = []
        self._variables: list[tf.Variable] = []
        self._slots: list[list[tf.Variable]] = []

    def build(self, named_variables: Mapping[str, Any]) -> None:
        """Makes the slots, in the current strategy's scope.

        Args:
            named_variables: dict, name to tf.Variable or Keras variable; fixes the order of gradients.
        """
        for name, variable in named_variables.items():
            variable = variable.value if isinstance(variable, keras.Variable) else variable
            self._names.append(name)
            self._variables.append(variable)
            self._slots.append([tf.Variable(tf.zeros(variable.shape, variable.dtype), trainable=False,
                                            name=f"{name}/{slot}") for slot in self.SLOTS])

    def slots(self) -> dict[str, tf.Variable]:
        """`<variable>/<slot>` to tf.Variable, for checkpoints."""
        return {f"{name}/{slot}": value for name, values in zip(self._names, self._slots)
                for slot, value in zip(self.SLOTS, values)}

    def decays(self, name: str) -> bool:
        """Whether a variable of this name decays."""
        return self.weight_decay != 0.0 and not any(re.search(pattern, name) for pattern in self.exclude)

    def apply(self, gradients: Sequence[Any], learning_rate: Any, step: Any = None) -> None:
        """Updates every variable; called in replica context, on every replica with the same values.

        Args:
            gradients: tensors or IndexedSlices, one per variable in `build`'s order, all-reduced and clipped.
            learning_rate: float32 scalar.
            step: updates made so far, int scalar; required where `needs_step`.
        """
        if self.needs_step and step is None:
            raise ValueError("this optimizer needs the step")
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        learning_rate = tf.cast(learning_rate, tf.float32)
        count = tf.cast(0 if step is None else step, tf.float32) + 1.0
        tf.distribute.get_replica_context().merge_call(self._update_all, args=(gradients, learning_rate, count))

    def _update_all(self, strategy, gradients, learning_rate, count):
        for name, variable, slots, gradient in zip(self._names, self._variables, self._slots, gradients):
            decays = self.decays(name)

            def update(variable, *arguments, decays=decays):
                *slots, gradient, learning_rate, count = arguments
                self.update_variable(variable, slots, gradient, learning_rate, count, decays)

            strategy.extended.update(variable, update, args=(*slots, gradient, learning_rate, count), group=False)

    def update_variable(self, variable: tf.Variable, slots: Sequence[tf.Variable], gradient: tf.Tensor,
                        learning_rate: tf.Tensor, count: tf.Tensor, decays: bool) -> None:
        """The update rule.

        Args:
            variable: changed in place, as are its slots.
            slots: in the order of SLOTS.
            gradient: of the variable's shape.
            learning_rate: float32 scalar.
            count: float32 scalar, the number of this update, from 1.
            decays: whether weight decay applies.
        """
        raise NotImplementedError


class AdamMoments(Optimizer):
    """Base of optimizers with Adam's two moments, in slots under the release's names.

    Args:
        weight_decay, exclude: see Optimizer.
        beta_1, beta_2: decay of the moments.
        epsilon: added to the root of the second.
        bias_correction: whether the moments are corrected for starting at zero.
    """

    SLOTS = ("adam_m", "adam_v")

    def __init__(self, weight_decay: float = 0.01, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-6,
                 bias_correction: bool = False, exclude: Sequence[str] = NO_DECAY) -> None:
        super().__init__(weight_decay, exclude)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.bias_correction = self.needs_step = bias_correction

    def powers(self, count: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """beta_1 and beta_2 to the number of this update; 0 where the moments are not corrected."""
        if not self.bias_correction:
            return tf.constant(0.0), tf.constant(0.0)
        return tf.pow(self.beta_1, count), tf.pow(self.beta_2, count)


def make_optimizer(settings: OptimizationSettings) -> Optimizer:
    """The optimizer that the settings name: `make(settings)` of its module (`training.settings.OPTIMIZERS`)."""
    return importlib.import_module(OPTIMIZERS[settings.optimizer]).make(settings)


def clip_by_global_norm(gradients: Sequence[Any], limit: float) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Scales all gradients together so that their global norm is at most `limit`.

    Args:
        gradients: tensors or IndexedSlices, of the whole batch.
        limit: 1.0 in the release; 0 leaves the gradients unchanged.

    Returns:
        list of dense tensors; the norm before clipping, float32 scalar.
    """
    gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
    if limit == 0:
        return gradients, tf.linalg.global_norm(gradients)
    return tf.clip_by_global_norm(gradients, limit)

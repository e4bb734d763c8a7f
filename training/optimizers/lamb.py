"""LAMB, for large batches (You et al. 2020)."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from training.optimizers.optimizer import NO_DECAY, AdamMoments, Optimizer
from training.settings import OptimizationSettings


class Lamb(AdamMoments):
    """LAMB with the values of tensorflow-addons 0.23.

    Decay is inside the trust ratio; a variable excluded from decay has no trust ratio either. The moments are corrected
    for starting at zero.
    """

    def __init__(self, weight_decay: float = 0.01, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-6,
                 bias_correction: bool = True, exclude: Sequence[str] = NO_DECAY) -> None:
        super().__init__(weight_decay, beta_1, beta_2, epsilon, bias_correction, exclude)

    def update_variable(self, variable: tf.Variable, slots: Sequence[tf.Variable], gradient: tf.Tensor,
                        learning_rate: tf.Tensor, count: tf.Tensor, decays: bool) -> None:
        """See Optimizer."""
        m, v = slots
        beta_1_power, beta_2_power = self.powers(count)
        new_m = m.assign(self.beta_1 * m + (1.0 - self.beta_1) * gradient)
        new_v = v.assign(self.beta_2 * v + (1.0 - self.beta_2) * tf.square(gradient))
        root = tf.sqrt(new_v / (1.0 - beta_2_power)) + self.epsilon
        change = new_m / (1.0 - beta_1_power) / root
        if decays:
            change += self.weight_decay * variable
        variable.assign_sub(learning_rate * self._trust_ratio(variable, change, excluded=not decays) * change)

    def _trust_ratio(self, variable: tf.Variable, change: tf.Tensor, excluded: bool) -> Any:
        if excluded and self.weight_decay != 0.0:
            return 1.0
        weight_norm, change_norm = tf.norm(variable), tf.norm(change)
        usable = (weight_norm > 0.0) & (change_norm > 0.0)
        return tf.where(usable, tf.math.divide_no_nan(weight_norm, change_norm), 1.0)


def make(settings: OptimizationSettings) -> Optimizer:
    """The optimizer of these settings."""
    return Lamb(settings.weight_decay)

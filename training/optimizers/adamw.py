"""Adam with decoupled weight decay, as released."""

from collections.abc import Sequence

import tensorflow as tf

from training.optimizers.optimizer import AdamMoments, Optimizer
from training.settings import OptimizationSettings


class AdamWeightDecay(AdamMoments):
    """The release's optimizer: epsilon outside the root, no bias correction by default."""

    def update_variable(self, variable: tf.Variable, slots: Sequence[tf.Variable], gradient: tf.Tensor,
                        learning_rate: tf.Tensor, count: tf.Tensor, decays: bool) -> None:
        """See Optimizer."""
        if decays:
            # Applied to the value before the update, which Adam's part does not read. One product: fewer passes over
            # memory than a subtraction.
            variable.assign(variable * (1.0 - learning_rate * self.weight_decay))
        m, v = slots
        beta_1_power, beta_2_power = self.powers(count)
        # One pass over the four arrays; powers of 0 leave the moments uncorrected.
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.handle,
            v=v.handle,
            beta1_power=beta_1_power,
            beta2_power=beta_2_power,
            lr=learning_rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )


def make(settings: OptimizationSettings) -> Optimizer:
    """The optimizer of these settings."""
    return AdamWeightDecay(settings.weight_decay, bias_correction=settings.adam_bias_correction)

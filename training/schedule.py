"""The learning rate over the steps of a run."""

import dataclasses
from typing import Any

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class WarmupLinearDecay:
    """The release's schedule: linear from 0 over the warm-up, then linear decay to 0, both counted from step 0.

    Attributes:
        peak: the learning rate that the decay starts from, reached at the end of warm-up (less what has decayed).
        num_train_steps: step at which the learning rate is 0.
        num_warmup_steps: 0 for none.
    """

    peak: float
    num_train_steps: int
    num_warmup_steps: int = 0

    def __call__(self, step: Any) -> tf.Tensor:
        """The learning rate of an update: float32 scalar.

        Args:
            step: updates made so far, int scalar tensor or number.
        """
        step = tf.cast(step, tf.float32)
        total = tf.constant(self.num_train_steps, tf.float32)
        warmup = tf.constant(self.num_warmup_steps, tf.float32)
        decayed = self.peak * (1.0 - tf.minimum(step, total) / total)
        if self.num_warmup_steps == 0:
            return decayed
        return tf.where(step < warmup, self.peak * (step / warmup), decayed)

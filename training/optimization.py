"""Learning rate, gradient clipping, and the optimizers: AdamW as released and LAMB.

An optimizer here is its slots and one update rule. It is no Keras optimizer: it holds no rate and no step, changes
nothing of the gradients it is given, and updates through `tf.distribute`'s own means on every strategy.
"""

import re

import keras
import tensorflow as tf

# The release's list: variables without weight decay.
NO_DECAY = ("LayerNorm", "layer_norm", "bias")


def warmup_linear_decay(step, init_lr, num_train_steps, num_warmup_steps):
    """The release's schedule: linear from 0 over the warm-up, then linear decay to 0, counted from step 0.

    Args:
        step: updates made so far, int scalar tensor or number.
        init_lr: the rate that the warm-up leads to.
        num_train_steps: step at which the rate is 0.
        num_warmup_steps: 0 for none.

    Returns:
        float32 scalar tensor.
    """
    step = tf.cast(step, tf.float32)
    total, warmup = tf.constant(num_train_steps, tf.float32), tf.constant(num_warmup_steps, tf.float32)
    decayed = init_lr * (1.0 - tf.minimum(step, total) / total)
    if num_warmup_steps == 0:
        return decayed
    return tf.where(step < warmup, init_lr * (step / warmup), decayed)


def clip_by_global_norm(gradients, limit):
    """Scales all gradients together so that their global norm is at most `limit`.

    Args:
        gradients: list of tensors or IndexedSlices, of the whole batch.
        limit: 1.0 in the release; 0 leaves the gradients as they are.

    Returns:
        list of dense tensors; the norm before clipping, float32 scalar.
    """
    gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
    if limit == 0:
        return gradients, tf.linalg.global_norm(gradients)
    return tf.clip_by_global_norm(gradients, limit)


class Optimizer(tf.Module):
    """Two slots a variable, m and v, and the plumbing of an update.

    Args:
        weight_decay: decoupled; times the rate.
        beta_1, beta_2: decay of m and v.
        epsilon: added to the root of v.
        bias_correction: whether m and v are corrected for their start at zero; None for the algorithm's own habit.
        exclude: regular expressions; a variable whose name one of them is found in does not decay.
    """

    CORRECTS_BIAS = None

    def __init__(self, weight_decay=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-6, bias_correction=None,
                 exclude=NO_DECAY):
        super().__init__()
        self.weight_decay, self.beta_1, self.beta_2, self.epsilon = weight_decay, beta_1, beta_2, epsilon
        self.bias_correction = self.CORRECTS_BIAS if bias_correction is None else bias_correction
        self.exclude = exclude
        self._names, self._variables, self._m, self._v = [], [], [], []

    def build(self, named_variables):
        """Makes the slots, in the current strategy's scope.

        Args:
            named_variables: dict, name to tf.Variable or Keras variable; fixes the order of gradients.
        """
        for name, variable in named_variables.items():
            variable = variable.value if isinstance(variable, keras.Variable) else variable
            self._names.append(name)
            self._variables.append(variable)
            self._m.append(_slot(variable, f"{name}/adam_m"))
            self._v.append(_slot(variable, f"{name}/adam_v"))

    def slots(self):
        """dict, `<variable>/adam_m` and `<variable>/adam_v` to tf.Variable, for checkpoints."""
        slots = {}
        for name, m, v in zip(self._names, self._m, self._v):
            slots[f"{name}/adam_m"], slots[f"{name}/adam_v"] = m, v
        return slots

    def decays(self, name):
        """Whether a variable of this name decays."""
        return self.weight_decay != 0.0 and not any(re.search(pattern, name) for pattern in self.exclude)

    def apply(self, gradients, rate, step=None):
        """Updates every variable; called in replica context, on every replica with the same values.

        Args:
            gradients: list of tensors or IndexedSlices, one a variable in `build`'s order, all-reduced and clipped.
            rate: float32 scalar.
            step: updates made so far, int scalar; only read, and then needed, with bias correction.
        """
        if self.bias_correction and step is None:
            raise ValueError("bias correction needs the step")
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        rate = tf.cast(rate, tf.float32)
        count = tf.cast(0 if step is None else step, tf.float32) + 1.0
        tf.distribute.get_replica_context().merge_call(self._update_all, args=(gradients, rate, count))

    def _update_all(self, strategy, gradients, rate, count):
        for name, variable, m, v, gradient in zip(self._names, self._variables, self._m, self._v, gradients):
            decays = self.decays(name)

            def update(variable, m, v, gradient, rate, count, decays=decays):
                self._update(variable, m, v, gradient, rate, count, decays)

            strategy.extended.update(variable, update, args=(m, v, gradient, rate, count), group=False)

    def _update(self, variable, m, v, gradient, rate, count, decays):
        raise NotImplementedError

    def _powers(self, count):
        """beta_1 and beta_2 to the number of this update, which correct m and v; 0 where they are not corrected."""
        if not self.bias_correction:
            return tf.constant(0.0), tf.constant(0.0)
        return tf.pow(self.beta_1, count), tf.pow(self.beta_2, count)


class AdamWeightDecay(Optimizer):
    """Adam with decoupled weight decay, as released: epsilon outside the root, no bias correction by default."""

    CORRECTS_BIAS = False

    def _update(self, variable, m, v, gradient, rate, count, decays):
        if decays:
            # On the value before the update, which Adam's part does not read. One product: fewer passes over memory
            # than a subtraction.
            variable.assign(variable * (1.0 - rate * self.weight_decay))
        beta_1_power, beta_2_power = self._powers(count)
        # One pass over the four arrays; powers of 0 leave m and v uncorrected.
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.handle,
            v=v.handle,
            beta1_power=beta_1_power,
            beta2_power=beta_2_power,
            lr=rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )


class Lamb(Optimizer):
    """LAMB for large batches (You et al. 2020), with the values of tensorflow-addons 0.23.

    Decay is inside the trust ratio; a variable that is excluded from decay has no trust ratio either.
    """

    CORRECTS_BIAS = True

    def _update(self, variable, m, v, gradient, rate, count, decays):
        beta_1_power, beta_2_power = self._powers(count)
        new_m = m.assign(self.beta_1 * m + (1.0 - self.beta_1) * gradient)
        new_v = v.assign(self.beta_2 * v + (1.0 - self.beta_2) * tf.square(gradient))
        root = tf.sqrt(new_v / (1.0 - beta_2_power)) + self.epsilon
        change = new_m / (1.0 - beta_1_power) / root
        if decays:
            change += self.weight_decay * variable
        variable.assign_sub(rate * self._trust_ratio(variable, change, excluded=not decays) * change)

    def _trust_ratio(self, variable, change, excluded):
        if excluded and self.weight_decay != 0.0:
            return 1.0
        weight_norm, change_norm = tf.norm(variable), tf.norm(change)
        usable = (weight_norm > 0.0) & (change_norm > 0.0)
        return tf.where(usable, tf.math.divide_no_nan(weight_norm, change_norm), 1.0)


def make_optimizer(settings):
    """The optimizer that OptimizationSettings name: "adamw" or "lamb"."""
    if settings.optimizer == "lamb":
        return Lamb(weight_decay=settings.weight_decay)
    return AdamWeightDecay(weight_decay=settings.weight_decay, bias_correction=settings.adam_bias_correction)


def _slot(variable, name):
    return tf.Variable(tf.zeros(variable.shape, variable.dtype), trainable=False, name=name)

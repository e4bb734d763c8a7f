"""A task's loss as a training step sees it."""

import pytest
import tensorflow as tf

from finetuning.objective import TaskObjective


class Network:
    """A term a word: its loss is the number in the batch, and -1 is no word."""

    def term_weights(self, batch):
        real = tf.cast(batch["is_real_example"], tf.float32)[:, None]
        return tf.reshape(tf.cast(batch["words"] >= 0, tf.float32) * real, [-1])

    def losses(self, outputs, batch):
        return tf.reshape(tf.cast(outputs, tf.float32), [-1])


class Model:
    """The words themselves."""

    trainable_weights = ()

    def __call__(self, batch, dropout_seed=None):
        return batch["words"]


def loss_of(words, terms_per_row):
    batch = {"words": tf.constant(words), "is_real_example": tf.ones(len(words), tf.int32)}
    objective = TaskObjective(Network(), Model(), terms_per_row)
    loss, sums = objective.loss(batch, objective.denominators(batch), None)
    return loss, objective.summarize(sums)


@pytest.mark.parametrize("words", [[[4, -1], [6, -1]], [[4, 6], [5, 5]]])
def test_a_word_counts_alike_in_batches_of_short_and_of_long_rows(words):
    loss, metrics = loss_of(words, terms_per_row=1.5)
    assert float(loss) == pytest.approx(sum(word for row in words for word in row if word >= 0) / 3)
    # The reported loss is the mean over words.
    assert metrics == {"loss": 5.0}

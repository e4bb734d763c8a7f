"""The splits of a data set: each read once, its features made once."""

import time


class Splits:
    """What a run reads.

    Args:
        task: Task.
        cache: inputs.feature_cache.FeatureCache.
        is_chief: whether this machine tells of it.
    """

    def __init__(self, task, cache, is_chief=True):
        self.task, self.cache, self.is_chief = task, cache, is_chief
        self._examples = {}

    def examples(self, split):
        """The task's examples of a split. Raises BertError naming file, line and column of a mistake."""
        if split not in self._examples:
            self._examples[split] = self.task.read(split)
        return self._examples[split]

    def features(self, split, training):
        """Features of a split, from the cache where it has them.

        Args:
            split: name of the split.
            training: whether they are for training.
        """
        def make():
            started = time.monotonic()
            features = self.task.features(self.examples(split), self.cache.tokenizer, training)
            if self.is_chief:
                print(f"{split}: {len(features):,} rows of {features.lengths.mean() if len(features) else 0:.0f} word "
                      f"pieces made in {time.monotonic() - started:.1f} s.", flush=True)
            return features

        return self.cache.get(self.task, split, training, make)

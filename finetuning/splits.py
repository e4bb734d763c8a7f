"""The splits of a data set: each read once, its features made once."""

import time
from typing import Any

from inputs.feature_cache import FeatureCache, key_of
from inputs.features import Features
from tasks.task import Task
from training.initial_model import InitialModel


class Splits:
    """The data of a run.

    Args:
        task: Task.
        cache: FeatureCache.
        initial: InitialModel, whose vocabulary and casing features depend on.
    """

    def __init__(self, task: Task, cache: FeatureCache, initial: InitialModel) -> None:
        self.task, self.cache, self.initial = task, cache, initial
        self._examples: dict[str, list[Any]] = {}

    def examples(self, split: str) -> list[Any]:
        """The task's examples of a split. Raises BertError naming file, line and column of a mistake."""
        if split not in self._examples:
            self._examples[split] = self.task.read(split)
        return self._examples[split]

    def key(self, split: str, training: bool) -> str:
        """64 hex digits that differ wherever features would."""
        return key_of(self.task.fingerprint(), self.task.files(split), self.initial, training)

    def has_features(self, split: str, training: bool) -> bool:
        """Whether features are in the cache."""
        return self.cache.has(split, self.key(split, training))

    def features(self, split: str, training: bool, tokenizer: Any, is_chief: bool = True) -> Features:
        """Features of a split, from the cache where it has them.

        Args:
            split: name of the split.
            training: whether they are for training.
            tokenizer: Tokenizer.
            is_chief: whether this machine reports and keeps them.
        """

        def make() -> Features:
            started = time.monotonic()
            features = self.task.features(self.examples(split), tokenizer, training)
            if is_chief:
                print(f"{split}: {len(features):,} rows of {features.lengths.mean() if len(features) else 0:.0f} word "
                      f"pieces made in {time.monotonic() - started:.1f} s.", flush=True)
            return features

        return self.cache.get(split, self.key(split, training), make, keep=is_chief)

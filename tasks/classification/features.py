"""Texts and pairs of texts to rows: `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, with the label of each row."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from foundation.parallel import default_num_workers
from inputs import text_pairs
from inputs.features import Features
from tasks.classification.files import Example

if TYPE_CHECKING:
    from tokenization.tokenizer import Tokenizer


def make_features(examples: Sequence[Example], tokenizer: "Tokenizer", max_seq_length: int,
                  is_regression: bool) -> Features:
    """Makes a row of each example.

    Args:
        examples: all with labels, or all without.
        tokenizer: makes the word pieces.
        max_seq_length: at most this many in a row; longer texts are cut as in the release.
        is_regression: labels are scores.

    Returns:
        rows with `label_ids` [rows], where examples have labels.
    """
    first = [example.text_a for example in examples]
    second = [example.text_b for example in examples if example.text_b is not None]
    tokens, row_splits = text_pairs.pair_features_of_many(
        tokenizer, first, second if len(second) == len(first) else None, max_seq_length, default_num_workers())
    labelled = bool(examples) and examples[0].label is not None
    return Features(tokens, row_splits, {"label_ids": labels_of(examples, is_regression)} if labelled else {})


def labels_of(examples: Sequence[Example], is_regression: bool) -> np.ndarray:
    """Label ids int32 [rows], or scores float32 [rows]."""
    labels = [example.label for example in examples]
    return np.array(labels, np.float32 if is_regression else np.int32)

"""Questions to rows: `[CLS] prompt [SEP] choice [SEP]` for each choice."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from foundation.parallel import default_num_workers
from inputs import text_pairs
from inputs.features import Features
from tasks.multiple_choice.files import Question

if TYPE_CHECKING:
    from tokenization.tokenizer import Tokenizer


def make_features(questions: Sequence[Question], tokenizer: "Tokenizer", max_seq_length: int,
                  num_choices: int) -> Features:
    """Makes a row of each question, of as many sequences as it has choices.

    Args:
        questions: all with labels, or all without.
        tokenizer: makes the word pieces.
        max_seq_length: at most this many in a sequence; longer ones are cut as in the release.
        num_choices: of every question.

    Returns:
        rows with `label_ids` int32 [rows], where questions have labels.
    """
    prompts = [question.prompt for question in questions for _ in question.choices]
    choices = [choice for question in questions for choice in question.choices]
    tokens, row_splits = text_pairs.pair_features_of_many(
        tokenizer, prompts, choices, max_seq_length, default_num_workers())
    labels = [question.label for question in questions]
    values = {} if None in labels else {"label_ids": np.array(labels, np.int32)}
    return Features(tokens, row_splits, values, num_choices)

"""Scores of named entities as conlleval counts them: an entity is right where its type and both its ends are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tasks import metrics

_Tags = Sequence[Sequence[str]]  # of each sentence


class EntityScore(NamedTuple):
    """Scores of one type of entity in percent, and how many entities of it the data has."""

    entity: str
    precision: float
    recall: float
    f1: float
    support: int


def score(gold: _Tags, predicted: _Tags) -> dict[str, float]:
    """F1, precision and recall of entities and the accuracy of tags, in percent.

    Args:
        gold, predicted: tags of each sentence.
    """
    from seqeval.metrics import sequence_labeling  # imports scikit-learn, which takes seconds

    overall = entity_scores(gold, predicted)[0]
    return {"f1": overall.f1, "precision": overall.precision, "recall": overall.recall,
            "accuracy": float(sequence_labeling.accuracy_score(gold, predicted)) * 100}


def entity_scores(gold: _Tags, predicted: _Tags) -> list[EntityScore]:
    """Scores of each type of entity.

    Args:
        gold, predicted: tags of each sentence, BIO or IOB1; a stray I- begins an entity.

    Returns:
        all types together, under the name "all", then each.
    """
    from seqeval.metrics import sequence_labeling

    types = sorted({entity for tags in (gold, predicted) for entity, _, _ in sequence_labeling.get_entities(tags)})
    if not types:
        return [EntityScore("all", 0.0, 0.0, 0.0, 0)]
    each = sequence_labeling.precision_recall_fscore_support(gold, predicted, average=None, zero_division=0)
    overall = sequence_labeling.precision_recall_fscore_support(gold, predicted, average="micro", zero_division=0)
    return [EntityScore(name, float(precision) * 100, float(recall) * 100, float(f1) * 100, int(support))
            for name, precision, recall, f1, support in [("all", *overall), *zip(types, *each)]]


def loss(labels: np.ndarray, logits: np.ndarray) -> float:
    """Mean cross entropy of the labelled tokens.

    Args:
        labels: int [tokens], -1 where a token has no label.
        logits: float [tokens, labels].
    """
    labelled = labels >= 0
    return metrics.mean_cross_entropy(labels[labelled], logits[labelled])

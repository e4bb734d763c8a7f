"""Which of Hugging Face's tensors is which of the release's variables, for each of its BERT classes.

Linear layers are [outputs, inputs] at Hugging Face and [inputs, outputs] in the release, so kernels are transposed; the
last layer of a head is [outputs, inputs] in both.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from modeling.head_table import HEADS, TaskHead


class Pair(NamedTuple):
    """One tensor: Hugging Face's name (with the prefix `bert.`), the release's, and whether they are transposed."""

    theirs: str
    ours: str
    transposed: bool = False


# The classes without a task's head, and what each holds above the encoder's layers.
_PRETRAINING_CLASSES = {
    "BertModel": ("pooler",),
    "BertForPreTraining": ("pooler", "masked_lm", "next_sentence"),
    "BertForMaskedLM": ("masked_lm",),
    "BertLMHeadModel": ("masked_lm",),
    "BertForNextSentencePrediction": ("pooler", "next_sentence"),
}

# Tensors that some files hold as copies of tensors that the model shares with them.
TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def architectures() -> list[str]:
    """Names of all classes."""
    return [*_PRETRAINING_CLASSES, *(head.hugging_face_class for head in HEADS.values())]


def head_of(architecture: str | None) -> TaskHead | None:
    """The task's head of a class; None where it has none or is not known."""
    return next((head for head in HEADS.values() if head.hugging_face_class == architecture), None)


def pairs(layers: Iterable[int], architecture: str) -> list[Pair]:
    """Every tensor of a model.

    Args:
        layers: numbers of the encoder's layers, such as range(12).
        architecture: of `architectures()`.

    Returns:
        embeddings, layers from the lowest, heads.
    """
    found = [Pair(f"bert.embeddings.{kind}_embeddings.weight", f"bert/embeddings/{kind}_embeddings")
             for kind in ("word", "token_type", "position")]
    found += _norm("bert.embeddings")
    for layer in layers:
        found += _layer(f"bert.encoder.layer.{layer}")
    if head := head_of(architecture):
        return [*found, *(_PARTS["pooler"]() if head.has_pooler else ()), *_task_head(head)]
    for part in _PRETRAINING_CLASSES[architecture]:
        found += _PARTS[part]()
    return found


def readable(layers: Iterable[int], architecture: str | None) -> list[Pair]:
    """As `pairs`, with the pooler and the heads of every class.

    Several classes call their head the same (`classifier`): it is that of `architecture`, or else of the first head in
    the table.
    """
    by_module: dict[str, TaskHead] = {}
    for head in (head_of(architecture), *HEADS.values()):
        if head:
            by_module.setdefault(head.hugging_face_module, head)
    return [*pairs(layers, "BertForPreTraining"), *(pair for head in by_module.values() for pair in _task_head(head))]


def architecture_of(names: Collection[str], causal: bool = False) -> str:
    """The class that holds a model's head; a task's head comes before pre-training's.

    Args:
        names: the release's names of the model's variables.
        causal: whether the model reads from left to right.
    """
    for head in HEADS.values():
        if f"{head.scope}output_weights" in names:
            return head.hugging_face_class
    masked_lm, next_sentence = "cls/predictions/output_bias" in names, "cls/seq_relationship/output_weights" in names
    if masked_lm and next_sentence:
        return "BertForPreTraining"
    if masked_lm:
        return "BertLMHeadModel" if causal else "BertForMaskedLM"
    return "BertForNextSentencePrediction" if next_sentence else "BertModel"


def _layer(scope: str) -> list[Pair]:
    dense = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
             "intermediate.dense", "output.dense")
    found = [pair for part in dense for pair in _dense(f"{scope}.{part}")]
    return found + _norm(f"{scope}.attention.output") + _norm(f"{scope}.output")


def _dense(scope: str) -> list[Pair]:
    ours = _scope(scope)
    return [Pair(f"{scope}.weight", f"{ours}/kernel", True), Pair(f"{scope}.bias", f"{ours}/bias")]


def _norm(scope: str) -> list[Pair]:
    theirs, ours = f"{scope}.LayerNorm", f"{_scope(scope)}/LayerNorm"
    return [Pair(f"{theirs}.weight", f"{ours}/gamma"), Pair(f"{theirs}.bias", f"{ours}/beta")]


def _linear(theirs: str, scope: str) -> list[Pair]:
    return [Pair(f"{theirs}.weight", f"{scope}output_weights"), Pair(f"{theirs}.bias", f"{scope}output_bias")]


def _task_head(head: TaskHead) -> list[Pair]:
    return _linear(head.hugging_face_module, head.scope)


def _masked_lm() -> list[Pair]:
    scope = "cls.predictions.transform"
    return [*_dense(f"{scope}.dense"), *_norm(scope), Pair("cls.predictions.bias", "cls/predictions/output_bias")]


_PARTS = {
    "pooler": lambda: _dense("bert.pooler.dense"),
    "masked_lm": _masked_lm,
    "next_sentence": lambda: _linear("cls.seq_relationship", "cls/seq_relationship/"),
}


def _scope(theirs: str) -> str:
    return theirs.replace("layer.", "layer_").replace(".", "/")

"""Which of Hugging Face's tensors is which of the release's variables, for each of its BERT classes.

Linear layers are [outputs, inputs] there and [inputs, outputs] in the release, so kernels are transposed; the last
layer of a head is [outputs, inputs] in both.
"""

from typing import NamedTuple


class Pair(NamedTuple):
    """One tensor: Hugging Face's name (with the prefix `bert.`), the release's, and whether they are transposed."""

    theirs: str
    ours: str
    transposed: bool = False


# What each class holds above the encoder's layers. A task's last layer: its name there, its scope in the release.
ARCHITECTURES = {
    "BertModel": ("pooler",),
    "BertForPreTraining": ("pooler", "masked_lm", "next_sentence"),
    "BertForMaskedLM": ("masked_lm",),
    "BertLMHeadModel": ("masked_lm",),
    "BertForNextSentencePrediction": ("pooler", "next_sentence"),
    "BertForSequenceClassification": ("pooler", ("classifier", "")),
    "BertForTokenClassification": (("classifier", "cls/ner/"),),
    "BertForMultipleChoice": ("pooler", ("classifier", "cls/choice/")),
    "BertForQuestionAnswering": (("qa_outputs", "cls/squad/"),),
}

# The words' copy that some files hold of what the model ties to the embeddings, and the bias's.
TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def pairs(layers, architecture):
    """Every tensor of a model.

    Args:
        layers: numbers of the encoder's layers, as range(12).
        architecture: a key of ARCHITECTURES.

    Returns:
        list of Pair: embeddings, layers from the lowest, heads.
    """
    found = [Pair(f"bert.embeddings.{kind}_embeddings.weight", f"bert/embeddings/{kind}_embeddings")
             for kind in ("word", "token_type", "position")]
    found += _norm("bert.embeddings")
    for layer in layers:
        found += _layer(f"bert.encoder.layer.{layer}")
    for part in ARCHITECTURES[architecture]:
        found += _PARTS[part]() if part in _PARTS else _linear(*part)
    return found


def readable(layers, architecture):
    """As `pairs`, with the pooler and the heads of every class; `classifier` is that of the architecture."""
    parts = ARCHITECTURES.get(architecture, ())
    classifier = architecture if any(part[0] == "classifier" for part in parts) else "BertForSequenceClassification"
    heads = [pair for name in (classifier, "BertForQuestionAnswering") for pair in pairs((), name)]
    return list(dict.fromkeys(pairs(layers, "BertForPreTraining") + heads))


def architecture_of(names, causal=False):
    """The class that holds a model's head, by the release's names; a task's head comes before pre-training's.

    Args:
        names: collection of the release's names.
        causal: whether the model reads from left to right.
    """
    for architecture, parts in ARCHITECTURES.items():
        if any(f"{scope}output_weights" in names for _, scope in (part for part in parts if isinstance(part, tuple))):
            return architecture
    masked_lm, next_sentence = "cls/predictions/output_bias" in names, "cls/seq_relationship/output_weights" in names
    if masked_lm and next_sentence:
        return "BertForPreTraining"
    if masked_lm:
        return "BertLMHeadModel" if causal else "BertForMaskedLM"
    return "BertForNextSentencePrediction" if next_sentence else "BertModel"


def head_of(architecture):
    """The release's name of the last layer's weights of a task's class, or None."""
    scopes = [part[1] for part in ARCHITECTURES[architecture] if isinstance(part, tuple)]
    return f"{scopes[0]}output_weights" if scopes else None


def _layer(scope):
    dense = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
             "intermediate.dense", "output.dense")
    found = [pair for part in dense for pair in _dense(f"{scope}.{part}")]
    return found + _norm(f"{scope}.attention.output") + _norm(f"{scope}.output")


def _dense(scope):
    ours = _scope(scope)
    return [Pair(f"{scope}.weight", f"{ours}/kernel", True), Pair(f"{scope}.bias", f"{ours}/bias")]


def _norm(scope):
    theirs, ours = f"{scope}.LayerNorm", f"{_scope(scope)}/LayerNorm"
    return [Pair(f"{theirs}.weight", f"{ours}/gamma"), Pair(f"{theirs}.bias", f"{ours}/beta")]


def _linear(theirs, scope):
    return [Pair(f"{theirs}.weight", f"{scope}output_weights"), Pair(f"{theirs}.bias", f"{scope}output_bias")]


def _masked_lm():
    scope = "cls.predictions.transform"
    return [*_dense(f"{scope}.dense"), *_norm(scope), Pair("cls.predictions.bias", "cls/predictions/output_bias")]


_PARTS = {
    "pooler": lambda: _dense("bert.pooler.dense"),
    "masked_lm": _masked_lm,
    "next_sentence": lambda: _linear("cls.seq_relationship", "cls/seq_relationship/"),
}


def _scope(theirs):
    return theirs.replace("layer.", "layer_").replace(".", "/")

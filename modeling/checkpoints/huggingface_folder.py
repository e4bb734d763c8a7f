"""What stands beside the weights in a Hugging Face folder: the configuration, the vocabulary, its casing."""

import os

from foundation import files
from foundation.errors import BertError
from modeling.config import BertConfig

CONFIG, VOCABULARY, TOKENIZER, TOKENIZER_CONFIG = "config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json"

_TO_THEIR_ACTIVATION = {"gelu": "gelu_new", "gelu_erf": "gelu"}
_SPECIAL_TOKENS = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]",
                   "mask_token": "[MASK]"}


def config_from_json(values, source="config.json"):
    """BertConfig of the values of a `config.json`: GELU's form by its name there, a decoder as causal.

    Raises:
        BertError: another model than BERT, other than absolute positions, cross attention, or a wrong value.
    """
    return BertConfig.from_dict({"model_type": "bert", **values} if isinstance(values, dict) else values, source)


def config_to_json(config, architecture, labels=None):
    """Values of `config.json`.

    Args:
        config: BertConfig.
        architecture: name of the class that loads the folder.
        labels: names of the classes in the order of their numbers, or None.

    Returns:
        dict.
    """
    values = config.to_dict() | {
        "architectures": [architecture],
        "dtype": "float32",
        "hidden_act": _TO_THEIR_ACTIVATION.get(config.hidden_act, config.hidden_act),
        "is_decoder": config.causal,
        "layer_norm_eps": config.layer_norm_eps,
        "model_type": "bert",
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
    }
    values.pop("causal", None)
    if labels is not None:
        values["id2label"] = {str(index): label for index, label in enumerate(labels)}
        values["label2id"] = {label: index for index, label in enumerate(labels)}
    return values


def config_values(folder):
    """What a folder's `config.json` holds as a dict, or None where there is none."""
    return _json(folder, CONFIG)


def labels_of(values):
    """Names of the classes in the order of their numbers, from the values of a `config.json`; None where unnamed."""
    named = values.get("id2label")
    if not isinstance(named, dict) or sorted(named) != sorted(map(str, range(len(named)))):
        return None
    return [str(named[str(index)]) for index in range(len(named))]


def lower_case_of(folder):
    """Whether a folder's tokenizer lower-cases: True, False, or None where nothing there says so."""
    said = (_json(folder, TOKENIZER_CONFIG) or {}).get("do_lower_case")
    if isinstance(said, bool):
        return said
    normalizer = (_json(folder, TOKENIZER) or {}).get("normalizer") or {}
    return _lower_cases(normalizer)


def _lower_cases(normalizer):
    if normalizer.get("type") == "Sequence":
        said = [_lower_cases(part) for part in normalizer.get("normalizers", ())]
        return next((value for value in said if value is not None), None)
    if normalizer.get("type") == "Lowercase":
        return True
    return normalizer.get("lowercase")


def vocabulary_of(folder):
    """Word pieces in the order of their ids, from `vocab.txt` or else `tokenizer.json`.

    Returns:
        list of str, or None where the folder has neither.

    Raises:
        BertError: the tokenizer is not WordPiece, or ids are missing.
    """
    path = os.path.join(folder, VOCABULARY)
    if files.exists(path):
        return [line.strip() for line in files.read_text(path).removesuffix("\n").split("\n")]
    tokenizer = _json(folder, TOKENIZER)
    if tokenizer is None:
        return None
    path, model = os.path.join(folder, TOKENIZER), tokenizer.get("model") or {}
    vocabulary = model.get("vocab")
    if model.get("type", "WordPiece") != "WordPiece" or not isinstance(vocabulary, dict):
        raise BertError(f"{path}: the tokenizer is {model.get('type')}, not WordPiece.")
    ids = dict(vocabulary)
    ids.update((added["content"], added["id"]) for added in tokenizer.get("added_tokens") or ())
    tokens = sorted(ids, key=ids.get)
    if sorted(ids.values()) != list(range(len(ids))):
        raise BertError(f"{path}: the ids of its {len(ids)} word pieces are not 0 to {len(ids) - 1}.")
    return tokens


def write_tokenizer(folder, config, tokens=None, do_lower_case=None):
    """Writes `vocab.txt` and `tokenizer_config.json`, each atomically.

    Args:
        tokens: list of str in the order of their ids; None writes no vocabulary.
        do_lower_case: None leaves it unsaid.
    """
    values = {"tokenizer_class": "BertTokenizer", "model_max_length": config.max_position_embeddings, **_SPECIAL_TOKENS}
    if do_lower_case is not None:
        values["do_lower_case"] = bool(do_lower_case)
    if tokens is not None:
        files.write_text(os.path.join(folder, VOCABULARY), "".join(f"{token}\n" for token in tokens))
    files.write_json(os.path.join(folder, TOKENIZER_CONFIG), values)


def _json(folder, name):
    path = os.path.join(folder, name)
    if not files.exists(path):
        return None
    values = files.read_json(path)
    if not isinstance(values, dict):
        raise BertError(f"{path}: not one JSON object.")
    return values

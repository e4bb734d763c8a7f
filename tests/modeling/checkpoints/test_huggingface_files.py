"""The files next to the weights in a Hugging Face folder: configuration, labels, tokenizer."""

import json

import pytest

from foundation.errors import BertError
from modeling.checkpoints import huggingface_config, tokenizer_files
from modeling.config import BertConfig
from tests.modeling.checkpoints.huggingface_example import CONFIG, release_values, write


def test_labels_are_written_and_read_in_order(tmp_path):
    values = release_values("BertForTokenClassification")
    write(str(tmp_path / "a"), values, CONFIG, labels=["O", "B-PER", "I-PER"])
    config = json.loads((tmp_path / "a/config.json").read_text())
    assert config["label2id"] == {"O": 0, "B-PER": 1, "I-PER": 2}
    assert huggingface_config.labels_of(config) == ["O", "B-PER", "I-PER"]
    write(str(tmp_path / "b"), values, CONFIG)
    numbered = huggingface_config.labels_of(huggingface_config.values_in(str(tmp_path / "b")))
    assert numbered == ["LABEL_0", "LABEL_1", "LABEL_2"]
    with pytest.raises(BertError, match="cls/ner/output_weights has 3 rows for 2 labels"):
        write(str(tmp_path / "c"), values, CONFIG, labels=["O", "B-PER"])


@pytest.mark.parametrize("theirs, ours, back", [
    ("gelu", "gelu_erf", "gelu"), ("gelu_new", "gelu", "gelu_new"), ("gelu_pytorch_tanh", "gelu", "gelu_new"),
    ("gelu_fast", "gelu", "gelu_new"), ("relu", "relu", "relu"),
])
def test_activation_keeps_its_curve(theirs, ours, back):
    config = BertConfig.from_dict({"model_type": "bert", "vocab_size": 9, "hidden_act": theirs})
    assert config.hidden_act == ours
    assert huggingface_config.values_of(config, "BertModel")["hidden_act"] == back


def test_configuration_survives_the_round_trip():
    config = CONFIG.replace(causal=True)
    assert BertConfig.from_dict(huggingface_config.values_of(config, "BertModel")) == config
    assert BertConfig.from_dict({"model_type": "bert", "vocab_size": 9}).hidden_act == "gelu_erf"


@pytest.mark.parametrize("key, value, message", [
    ("model_type", "roberta", "config.json: the model is a roberta, not a BERT"),
    ("position_embedding_type", "relative_key", "position_embedding_type is 'relative_key'"),
    ("add_cross_attention", True, "cross_attention"),
    ("hidden_act", "silu", "hidden_act is 'silu'"),
])
def test_configuration_of_another_architecture_is_refused(key, value, message):
    with pytest.raises(BertError, match=message):
        BertConfig.from_dict({"model_type": "bert", "vocab_size": 9, key: value}, "config.json")


def test_tokenizer_files_hold_vocabulary_casing_and_length(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "é", "##\u2028"]
    write(str(tmp_path), release_values("BertModel"), CONFIG.replace(do_lower_case=False), tokens=tokens)
    assert (tmp_path / "vocab.txt").read_bytes() == "".join(f"{token}\n" for token in tokens).encode()
    assert json.loads((tmp_path / "tokenizer_config.json").read_text()) == {
        "tokenizer_class": "BertTokenizer", "do_lower_case": False, "model_max_length": 5, "unk_token": "[UNK]",
        "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]"}
    assert tokenizer_files.lower_case_of(str(tmp_path)) is False


@pytest.mark.parametrize("normalizer, expected", [
    ({"type": "BertNormalizer", "lowercase": False}, False),
    ({"type": "BertNormalizer", "lowercase": True}, True),
    ({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]}, True),
    ({"type": "NFD"}, None),
    (None, None),
])
def test_casing_is_found_in_tokenizer_json(tmp_path, normalizer, expected):
    assert tokenizer_files.lower_case_of(str(tmp_path)) is None
    (tmp_path / "tokenizer.json").write_text(json.dumps({"normalizer": normalizer}))
    assert tokenizer_files.lower_case_of(str(tmp_path)) is expected


def test_vocabulary_is_found_in_tokenizer_json(tmp_path):
    assert tokenizer_files.vocabulary_of(str(tmp_path)) is None
    tokenizer = {"model": {"type": "WordPiece", "vocab": {"a": 1, "[PAD]": 0, "b": 2}},
                 "added_tokens": [{"content": "[PAD]", "id": 0}, {"content": "<new>", "id": 3}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert tokenizer_files.vocabulary_of(str(tmp_path)) == ["[PAD]", "a", "b", "<new>"]
    (tmp_path / "vocab.txt").write_text("[PAD]\n x \n", newline="\n")
    assert tokenizer_files.vocabulary_of(str(tmp_path)) == ["[PAD]", "x"]


@pytest.mark.parametrize("model, message", [
    ({"type": "BPE", "vocab": {"a": 0}}, "the tokenizer is BPE, not WordPiece"),
    ({"type": "WordPiece", "vocab": {"a": 0, "b": 2}}, "ids of its 2 word pieces are not 0 to 1"),
])
def test_tokenizer_json_without_a_wordpiece_vocabulary_is_refused(tmp_path, model, message):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model}))
    with pytest.raises(BertError, match=message):
        tokenizer_files.vocabulary_of(str(tmp_path))

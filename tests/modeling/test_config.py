"""The configuration: its file, Hugging Face's keys, refused values."""

import json
import math

import pytest

from foundation.errors import BertError
from modeling.config import PRESETS, BertConfig

SMALL = {"vocab_size": 100, "hidden_size": 8, "num_attention_heads": 2}


def written(tmp_path, values):
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps(values))
    return str(path)


def test_released_file_comes_back_key_for_key(golden, tmp_path):
    source = golden / "model/bert_config.json"
    BertConfig.from_json_file(str(source)).to_json_file(str(tmp_path / "x/bert_config.json"))
    assert json.loads((tmp_path / "x/bert_config.json").read_text()) == json.loads(source.read_text())


def test_own_fields_survive_the_file_when_they_differ_from_the_default(tmp_path):
    config = BertConfig(**SMALL, causal=True, layer_norm_eps=1e-6)
    config.to_json_file(str(tmp_path / "c.json"))
    assert BertConfig.from_json_file(str(tmp_path / "c.json")) == config


def test_unknown_keys_are_ignored_and_gelu_new_is_the_tanh_form(tmp_path):
    extra = {**SMALL, "model_type": "bert", "architectures": ["x"], "pad_token_id": 0, "hidden_act": "gelu_new"}
    assert BertConfig.from_json_file(written(tmp_path, extra)).hidden_act == "gelu"


@pytest.mark.parametrize(("theirs", "ours"), [
    ("gelu", "gelu_erf"), ("gelu_new", "gelu"), ("gelu_pytorch_tanh", "gelu"), ("gelu_fast", "gelu"), ("relu", "relu"),
    ("tanh", "tanh")])
@pytest.mark.parametrize("key", [{"model_type": "bert"}, {"architectures": ["BertModel"]},
                                 {"transformers_version": "4.0"}])
def test_activation_in_a_hugging_face_file_has_hugging_face_s_meaning(tmp_path, key, theirs, ours):
    assert BertConfig.from_json_file(written(tmp_path, {**SMALL, **key, "hidden_act": theirs})).hidden_act == ours


def test_plain_gelu_is_the_erf_form_in_a_hugging_face_file_and_the_tanh_form_in_a_release_s(tmp_path):
    assert BertConfig.from_dict({**SMALL, "hidden_act": "gelu"}).hidden_act == "gelu"
    assert BertConfig.from_dict(SMALL).hidden_act == "gelu"
    # Hugging Face's files leave out default values.
    assert BertConfig.from_dict({**SMALL, "model_type": "bert"}).hidden_act == "gelu_erf"


def test_decoder_of_a_hugging_face_file_is_causal():
    assert BertConfig.from_dict({**SMALL, "model_type": "bert", "is_decoder": True}).causal is True
    assert BertConfig.from_dict({**SMALL, "model_type": "bert", "is_decoder": False}).causal is False


def test_epsilon_segments_and_casing_of_a_hugging_face_file_are_honoured():
    config = BertConfig.from_dict({**SMALL, "model_type": "bert", "layer_norm_eps": 1e-5, "type_vocab_size": 1,
                                   "do_lower_case": False})
    assert (config.layer_norm_eps, config.type_vocab_size, config.do_lower_case) == (1e-5, 1, False)


@pytest.mark.parametrize(("changes", "message"), [
    ({"model_type": "roberta"}, "the model is a roberta, not a BERT."),
    ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'; BERT's is 'absolute'."),
    ({"add_cross_attention": True},
     "the model has cross attention (add_cross_attention), BERT has none."),
    ({"hidden_act": "silu"}, "hidden_act is 'silu'; supported are gelu, gelu_erf, relu, tanh, linear."),
    ({"hidden_act": None}, "hidden_act is None, not a string."),
    ({"hidden_act": "GELU"}, "hidden_act is 'GELU'; supported are gelu, gelu_erf, relu, tanh, linear."),
    ({"do_lower_case": "yes"}, "do_lower_case is 'yes', not true or false."),
])
def test_hugging_face_model_that_is_not_a_bert_is_refused(tmp_path, changes, message):
    path = written(tmp_path, {**SMALL, "model_type": "bert", **changes})
    with pytest.raises(BertError) as error:
        BertConfig.from_json_file(path)
    assert str(error.value) == f"{path}: {message}"


@pytest.mark.parametrize("casing", [True, False])
def test_casing_survives_the_file(tmp_path, casing):
    BertConfig(**SMALL, do_lower_case=casing).to_json_file(str(tmp_path / "c.json"))
    assert BertConfig.from_json_file(str(tmp_path / "c.json")).do_lower_case is casing


def test_whole_number_is_accepted_for_a_rate(tmp_path):
    config = BertConfig.from_json_file(written(tmp_path, {**SMALL, "hidden_dropout_prob": 0}))
    assert config.hidden_dropout_prob == 0.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": 9}, ("hidden_size 9", "num_attention_heads 2")),
        ({"hidden_size": "8"}, ("hidden_size", "'8'", "whole number")),
        ({"num_hidden_layers": 1.5}, ("num_hidden_layers", "1.5")),
        ({"vocab_size": 0}, ("vocab_size is 0",)),
        ({"vocab_size": True}, ("vocab_size is True",)),
        ({"hidden_dropout_prob": 1.0}, ("hidden_dropout_prob is 1.0", "[0, 1)")),
        ({"initializer_range": 0.0}, ("initializer_range", "positive")),
        ({"hidden_act": "swish"}, ("hidden_act", "'swish'", "gelu")),
        ({"hidden_act": ["gelu"]}, ("hidden_act", "string")),
        ({"layer_norm_eps": math.inf}, ("layer_norm_eps is inf", "finite")),
        ({"initializer_range": math.nan}, ("initializer_range is nan", "finite")),
        ({"hidden_dropout_prob": -math.inf}, ("hidden_dropout_prob is -inf", "finite")),
        ({"layer_norm_eps": 10**400}, ("layer_norm_eps is 1000", "not a number")),
        ({"vocab_size": 10**400}, ("vocab_size is 1000", "at most 2147483647")),
        ({"num_attention_heads": -10**400}, ("num_attention_heads is -1000", "at least 1")),
    ],
)
def test_wrong_value_names_file_and_key(tmp_path, changes, words):
    path = written(tmp_path, {**SMALL, **changes})
    with pytest.raises(BertError) as error:
        BertConfig.from_json_file(path)
    assert all(word in str(error.value) for word in (path, *words))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ['{"vocab_size": ' + "9" * 5000 + "}", "[" * 100_000, '{"a":' * 100_000])
def test_numbers_and_nesting_without_bounds_are_one_line(tmp_path, text):
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(BertError, match=r"c\.json: (JSON nested|holds a number)") as error:
        BertConfig.from_json_file(str(tmp_path / "c.json"))
    assert len(str(error.value)) < 300 and "\n" not in str(error.value)


@pytest.mark.parametrize(("theirs", "ours"), [
    ("GELU", "gelu"), ("ReLU", "relu"), ("linear", "linear"), ("", "linear"), (None, "linear")])
def test_activation_is_read_as_the_release_reads_it(tmp_path, theirs, ours):
    assert BertConfig.from_json_file(written(tmp_path, {**SMALL, "hidden_act": theirs})).hidden_act == ours


def test_missing_vocabulary_size_names_the_key(tmp_path):
    with pytest.raises(BertError, match="vocab_size is missing"):
        BertConfig.from_json_file(written(tmp_path, {"hidden_size": 8}))


def test_file_that_is_not_an_object_is_refused(tmp_path):
    with pytest.raises(BertError, match="a list where"):
        BertConfig.from_json_file(written(tmp_path, [1]))


def test_presets_have_the_published_parameter_counts():
    def encoder_parameters(c):
        layer = 4 * c.hidden_size**2 + 2 * c.hidden_size * c.intermediate_size + 9 * c.hidden_size + c.intermediate_size
        tables = (c.vocab_size + c.max_position_embeddings + c.type_vocab_size + 2) * c.hidden_size
        return tables + c.num_hidden_layers * layer + c.hidden_size**2 + c.hidden_size

    millions = {name: round(encoder_parameters(config) / 1e6, 1) for name, config in PRESETS.items()}
    published = {"tiny": 4.4, "mini": 11.2, "small": 28.8, "medium": 41.4, "base": 109.5, "large": 335.1}
    assert {name: millions[name] for name in published} == published

"""Models and folders of the `transformers` library, both ways: outputs equal to 1e-5, no key missing, none too many.

Needs `transformers` and PyTorch: `make test-interop`. With BERT_TEST_MINILM set to the folder of all-MiniLM-L6-v2, its
real weights are compared too.
"""

import os
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

transformers = pytest.importorskip("transformers", reason="transformers is not installed: run `make test-interop`")
torch = pytest.importorskip("torch", reason="PyTorch is not installed: run `make test-interop`")

from foundation.errors import BertError  # noqa: E402
from modeling import models  # noqa: E402
from modeling.checkpoints import huggingface, load, tokenizer_files  # noqa: E402
from modeling.config import BertConfig  # noqa: E402
from modeling.encoder import BertEncoder  # noqa: E402
from tests.modeling.checkpoints.huggingface_example import write  # noqa: E402

TOLERANCE = 1e-5
SIZES = {
    "vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 40,
    "max_position_embeddings": 24, "type_vocab_size": 3, "layer_norm_eps": 3e-4,
}
ACTIVATIONS = pytest.mark.parametrize("theirs, ours", [("gelu", "gelu_erf"), ("gelu_new", "gelu")])


class Case(NamedTuple):
    """One class of `transformers` and its counterpart in this project.

    Attributes:
        make: function from a BertConfig to our model.
        outputs: names of its outputs to names of ours.
        without: variables of ours that the class does not have.
        options: of the configuration of the class.
    """

    make: Any
    outputs: dict
    without: tuple = ()
    options: dict = {}  # noqa: RUF012


POOLER = ("bert/pooler/dense/kernel", "bert/pooler/dense/bias")
CASES = {
    "BertModel": Case(
        lambda config: Encoder(config), {"last_hidden_state": "sequence_output", "pooler_output": "pooled_output"}),
    "BertForPreTraining": Case(
        models.PretrainingModel,
        {"prediction_logits": "masked_lm_logits", "seq_relationship_logits": "next_sentence_logits"}),
    "BertForMaskedLM": Case(
        lambda config: models.PretrainingModel(config, next_sentence=False), {"logits": "masked_lm_logits"}, POOLER),
    "BertForSequenceClassification": Case(
        lambda config: models.ClassificationModel(config, 4), {"logits": "logits"}, (), {"num_labels": 4}),
    "BertForTokenClassification": Case(
        lambda config: models.TokenClassificationModel(config, 5), {"logits": "logits"}, POOLER, {"num_labels": 5}),
    "BertForMultipleChoice": Case(models.MultipleChoiceModel, {"logits": "logits"}),
    "BertForQuestionAnswering": Case(
        models.QuestionAnsweringModel, {"start_logits": "start_logits", "end_logits": "end_logits"}, POOLER),
}
ALL = pytest.mark.parametrize("name", CASES)


class Encoder(BertEncoder):
    """An encoder with the call signature of whole models."""

    def call(self, features):
        return super().call(features["input_ids"], features["input_mask"], features["segment_ids"])


def inputs_of(name, rows=3, seq=20):
    """Random ids, lengths and segments: [rows, seq], or [rows, 2, seq] for a choice."""
    rng = np.random.default_rng(5)
    shape = (rows, 2, seq) if name == "BertForMultipleChoice" else (rows, seq)
    lengths = rng.integers(4, seq + 1, shape[:-1])
    return {
        "input_ids": rng.integers(0, SIZES["vocab_size"], shape),
        "input_mask": (np.arange(seq) < lengths[..., None]).astype(np.int64),
        "segment_ids": rng.integers(0, SIZES["type_vocab_size"], shape),
        "masked_lm_positions": np.broadcast_to(np.arange(seq), (rows, seq)),
    }


def outputs_there(model, inputs):
    tensors = {theirs: torch.tensor(inputs[ours]) for theirs, ours in (
        ("input_ids", "input_ids"), ("attention_mask", "input_mask"), ("token_type_ids", "segment_ids"))}
    with torch.no_grad():
        return {name: value.numpy() for name, value in model.eval()(**tensors).items() if torch.is_tensor(value)}


def outputs_here(model, inputs):
    return model({name: tf.constant(value, tf.int32) for name, value in inputs.items()})


def assert_equal_outputs(name, theirs, ours):
    inputs = inputs_of(name)
    there, here = outputs_there(theirs, inputs), outputs_here(ours, inputs)
    for left, right in CASES[name].outputs.items():
        assert there[left].std() > 0.1, "the outputs are all alike"
        np.testing.assert_allclose(here[right].numpy(), there[left], rtol=0, atol=TOLERANCE, err_msg=right)


def random_model(name, **options):
    """A model of `transformers` with random tensors, biases and LayerNorm included."""
    config = transformers.BertConfig(**SIZES, **CASES[name].options, **options)
    model = getattr(transformers, name)(config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.3 * noise if "LayerNorm.weight" in parameter_name else 0.3 * noise)
    return model


def randomize(model):
    """Gives every variable of ours random values."""
    rng = np.random.default_rng(2)
    for name, variable in models.named_variables(model).items():
        noise = 0.3 * rng.standard_normal(variable.shape)
        variable.assign(1 + noise if name.endswith("gamma") else noise)


def from_pretrained(name, folder):
    """Loads a folder with `transformers`; no key may be missing, unexpected or of another shape."""
    model, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), info
    return model


@ALL
@ACTIVATIONS
def test_their_model_computes_the_same_in_this_project(tmp_path, name, theirs, ours):
    model = random_model(name, hidden_act=theirs)
    model.save_pretrained(tmp_path)
    config = load.find(str(tmp_path)).config()
    assert config == BertConfig(**SIZES, hidden_act=ours)
    mine = CASES[name].make(config)
    report = load.load_into(mine, str(tmp_path))
    assert set(report.initial) == set(CASES[name].without)
    assert report.unused == ()
    assert_equal_outputs(name, model, mine)


@ALL
@ACTIVATIONS
def test_our_model_computes_the_same_in_transformers(tmp_path, name, theirs, ours):
    config = BertConfig(**SIZES, hidden_act=ours)
    mine = CASES[name].make(config)
    randomize(mine)
    written = write(str(tmp_path), models.named_variables(mine), config)
    assert (written.architecture, set(written.left_out)) == (name, set(CASES[name].without))
    model = from_pretrained(name, tmp_path)
    assert model.config.hidden_act == theirs
    assert_equal_outputs(name, model, mine)


@ALL
def test_their_weights_come_back_bit_for_bit(tmp_path, name):
    model = random_model(name)
    model.save_pretrained(tmp_path / "in")
    config = load.find(str(tmp_path / "in")).config()
    write(str(tmp_path / "out"), huggingface.read(str(tmp_path / "in")), config)
    state, back = model.state_dict(), from_pretrained(name, tmp_path / "out").state_dict()
    assert state.keys() == back.keys()
    assert [key for key in state if not torch.equal(state[key], back[key])] == []


def test_decoder_is_causal_in_both(tmp_path):
    model = transformers.BertLMHeadModel(transformers.BertConfig(**SIZES, is_decoder=True))
    model.save_pretrained(tmp_path / "in")
    config = load.find(str(tmp_path / "in")).config()
    assert config.causal
    mine = models.PretrainingModel(config, next_sentence=False)
    load.load_into(mine, str(tmp_path / "in"))
    inputs = inputs_of("BertForMaskedLM")
    # No token attends to padding alone: the first token is real.
    there, here = outputs_there(model, inputs)["logits"], outputs_here(mine, inputs)["masked_lm_logits"].numpy()
    np.testing.assert_allclose(here, there, rtol=0, atol=TOLERANCE)
    write(str(tmp_path / "out"), models.named_variables(mine), config)
    back = outputs_there(from_pretrained("BertLMHeadModel", tmp_path / "out"), inputs)["logits"]
    np.testing.assert_allclose(back, there, rtol=0, atol=TOLERANCE)


def test_shards_are_read(tmp_path):
    model = random_model("BertForPreTraining")
    model.save_pretrained(tmp_path / "shards", max_shard_size="8KB")
    model.save_pretrained(tmp_path / "whole")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    whole, shards = (huggingface.read(str(tmp_path / name)) for name in ("whole", "shards"))
    assert whole.names == shards.names
    for name in whole.names:
        np.testing.assert_array_equal(whole.get(name), shards.get(name))


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_becomes_float32(tmp_path, kind):
    model = random_model("BertModel").to(getattr(torch, kind))
    model.save_pretrained(tmp_path)
    value = huggingface.read(str(tmp_path)).get("bert/encoder/layer_1/intermediate/dense/kernel")
    np.testing.assert_array_equal(
        value, model.encoder.layer[1].intermediate.dense.weight.detach().float().numpy().T, strict=True)


@pytest.mark.parametrize("zipped", [True, False])
def test_file_of_torch_save_is_refused(tmp_path, zipped):
    state = random_model("BertModel").state_dict()
    torch.save(state, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    for path in (tmp_path, tmp_path / "pytorch_model.bin"):
        with pytest.raises(BertError, match="a pickled PyTorch file"):
            load.find(str(path))


def test_refused_file_can_be_converted_as_the_message_advises(tmp_path):
    model = random_model("BertModel")
    model.save_pretrained(tmp_path / "out", safe_serialization=True)
    assert huggingface.read(str(tmp_path / "out")).unknown == ()


@pytest.mark.parametrize("lower_case, pieces", [
    (True, ["[CLS]", "hello", "wo", "##rld", "[MASK]", "[SEP]"]),
    (False, ["[CLS]", "Héllo", "wo", "##rld", "[MASK]", "[SEP]"]),
])
def test_written_folder_gives_its_tokenizer(tmp_path, lower_case, pieces):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "Héllo", "wo", "##rld"]
    config = BertConfig(**SIZES).replace(vocab_size=len(tokens))
    model = Encoder(config)
    write(str(tmp_path), models.named_variables(model), config.replace(do_lower_case=lower_case), tokens)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer.convert_ids_to_tokens(tokenizer("Héllo world [MASK]")["input_ids"]) == pieces
    assert tokenizer.model_max_length == SIZES["max_position_embeddings"]
    # What the library writes in turn reads the same.
    tokenizer.save_pretrained(tmp_path / "again")
    assert tokenizer_files.vocabulary_of(str(tmp_path / "again")) == tokens
    assert tokenizer_files.lower_case_of(str(tmp_path / "again")) is lower_case


def test_labels_are_read_by_transformers(tmp_path):
    model = models.ClassificationModel(config := BertConfig(**SIZES), 3)
    labels = ["contradiction", "entailment", "neutral"]
    write(str(tmp_path), models.named_variables(model), config, labels=labels)
    assert from_pretrained("BertForSequenceClassification", tmp_path).config.id2label == dict(enumerate(labels))


@pytest.mark.skipif(not os.environ.get("BERT_TEST_MINILM"), reason="BERT_TEST_MINILM names no all-MiniLM-L6-v2 folder")
def test_minilm_computes_the_same_in_this_project(tmp_path):
    folder = os.environ["BERT_TEST_MINILM"]
    mine = Encoder(load.find(folder).config())
    report = load.load_into(mine, folder)
    assert (len(report.read), report.initial, report.unused) == (103, (), ("embeddings.position_ids",))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encoded = tokenizer(["The quick brown fox jumps over the lazy dog.", "Paris is the capital of France."],
                        ["It was tired.", "It has two million people in it " * 9], padding=True, return_tensors="np")
    inputs = {"input_ids": encoded["input_ids"], "input_mask": encoded["attention_mask"],
              "segment_ids": encoded["token_type_ids"]}
    theirs = outputs_there(transformers.BertModel.from_pretrained(folder), inputs)
    ours = outputs_here(mine, inputs)
    for left, right in CASES["BertModel"].outputs.items():
        np.testing.assert_allclose(ours[right].numpy(), theirs[left], rtol=0, atol=TOLERANCE, err_msg=right)

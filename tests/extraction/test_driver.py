"""Vectors of text: equal to the encoder's own, in the order of the lines, in each format."""

import json
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from extraction import driver, text_encoder, vector_files
from extraction.settings import ExtractionSettings
from foundation.errors import BertError
from modeling.checkpoints import google
from modeling.config import BertConfig
from modeling.encoder import BertEncoder
from modeling.models import named_variables
from tests.conftest import TINY_CONFIG
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from training.settings import InitialModelSettings

WORDS = ["one", "two", "three", "four", "##teen", ",", "|"]
LINES = ["one two three", "four", "", "fourteen, two ||| three one", "two " * 40, "unheard one"]
PIECES = [
    "[CLS] one two three [SEP]", "[CLS] four [SEP]", "[CLS] [SEP]",
    "[CLS] four ##teen , two [SEP] three one [SEP]", f"[CLS] {'two ' * 10}[SEP]", "[CLS] [UNK] one [SEP]"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Folder of a tiny released model, and its encoder."""
    folder = tmp_path_factory.mktemp("model")
    config = BertConfig.from_dict(TINY_CONFIG)
    (folder / "bert_config.json").write_text(json.dumps(TINY_CONFIG))
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in [*SPECIAL_TOKENS, *WORDS]))
    encoder = BertEncoder(config)
    rng = np.random.default_rng(0)
    for variable in named_variables(encoder).values():
        variable.assign(rng.normal(0, 0.3, variable.shape))
    google.write(str(folder / "bert_model.ckpt"),
                 {name: tf.convert_to_tensor(value) for name, value in named_variables(encoder).items()})
    return folder, encoder


@pytest.fixture
def extract(model, tmp_path):
    """Writes lines to a file, extracts; returns the path of the output."""

    def run(lines=LINES, name="out.npz", raw=None, **changes):
        (tmp_path / "in.txt").write_bytes(raw if raw is not None else "".join(f"{line}\n" for line in lines).encode())
        settings = {"input_file": str(tmp_path / "in.txt"), "output_file": str(tmp_path / name),
                    "initial_model": InitialModelSettings(init_checkpoint=str(model[0])), "layers": (-1, 0),
                    "max_seq_length": 12, "batch_size": 2}
        return driver.run(ExtractionSettings(**{**settings, **changes})).path

    return run


def directly(model):
    """The encoder's output for each line alone: pieces, layers, pooled."""
    folder, encoder = model
    tokenizer = Tokenizer(Vocabulary.from_file(str(folder / "vocab.txt")))
    for pieces in PIECES:
        ids = tokenizer.vocabulary.ids_of(pieces.split())[None]
        first_sep = list(ids[0]).index(tokenizer.vocabulary.sep_id)
        yield pieces.split(), encoder(ids, None, (np.arange(ids.shape[1]) > first_sep).astype(np.int32)[None])


def lines_of(path):
    return pathlib.Path(path).read_text().splitlines()


def error(function):
    with pytest.raises(BertError) as caught:
        function()
    return str(caught.value)


def test_token_vectors_are_the_encoder_s_own(model, extract):
    arrays = np.load(extract())
    assert {name: arrays[name].dtype.str for name in arrays.files} == {
        "layer_-1": "<f4", "layer_0": "<f4", "input_ids": "<i4", "segment_ids": "<i4", "row_splits": "<i8"}
    vocabulary = Vocabulary.from_file(str(model[0] / "vocab.txt"))
    for row, (pieces, encoded) in enumerate(directly(model)):
        span = slice(*arrays["row_splits"][row : row + 2])
        assert vocabulary.tokens_of(arrays["input_ids"][span]) == pieces
        np.testing.assert_allclose(arrays["layer_-1"][span], encoded["layer_outputs"][1][0], atol=2e-6)
        np.testing.assert_allclose(arrays["layer_0"][span], encoded["layer_outputs"][0][0], atol=2e-6)
    assert row == len(arrays["row_splits"]) - 2 == len(LINES) - 1


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_there_is_one_pooled_vector_a_line(pooling, model, extract):
    arrays = np.load(extract(pooling=pooling))
    assert arrays.files == (["pooled_output"] if pooling == "pooler" else ["layer_-1", "layer_0"])
    for row, (_, encoded) in enumerate(directly(model)):
        last = np.asarray(encoded["sequence_output"][0])
        expected = {"mean": last.mean(axis=0), "cls": last[0], "pooler": np.asarray(encoded["pooled_output"][0])}
        np.testing.assert_allclose(arrays[arrays.files[0]][row], expected[pooling], atol=2e-6)


def test_json_is_the_release_s(extract):
    arrays = np.load(extract())
    text = lines_of(extract(name="out.jsonl"))
    begin = arrays["row_splits"][1]

    def layers(token):
        return [{"index": index, "values": [round(float(value), 6) for value in arrays[f"layer_{index}"][token]]}
                for index in (-1, 0)]

    expected = {"linex_index": 1, "features": [
        {"token": "[CLS]", "layers": layers(begin)}, {"token": "four", "layers": layers(begin + 1)},
        {"token": "[SEP]", "layers": layers(begin + 2)}]}
    assert text[1] == json.dumps(expected)
    lines = [json.loads(line) for line in text]
    assert [line["linex_index"] for line in lines] == list(range(len(LINES)))
    assert [" ".join(each["token"] for each in line["features"]) for line in lines] == PIECES


def test_json_of_pooled_vectors(extract):
    vectors = np.load(extract(pooling="mean", layers=(-2,)))["layer_-2"]
    first = lines_of(extract(name="out.json", pooling="mean", layers=(-2,)))[0]
    values = [round(float(value), 6) for value in vectors[0]]
    assert first == json.dumps({"linex_index": 0, "layers": [{"index": -2, "values": values}]})
    pooler = json.loads(lines_of(extract(name="out.json", pooling="pooler"))[0])
    assert [each["index"] for each in pooler["layers"]] == ["pooled_output"]


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
@hypothesis_settings(deadline=None, max_examples=200)
def test_numbers_are_written_as_python_rounds_them(values):
    values = np.array([values], np.float32)
    assert vector_files._number_lists(values) == [json.dumps([round(float(each), 6) for each in values[0]])[1:-1]]


def test_arrow_holds_the_same(extract):
    pyarrow = pytest.importorskip("pyarrow")
    arrays = np.load(extract(output_dtype="float16"))
    table = pyarrow.ipc.open_file(extract(name="out.arrow", output_dtype="float16")).read_all()
    assert table.column_names == ["linex_index", "input_ids", "tokens", "layer_-1", "layer_0"]
    assert [" ".join(tokens) for tokens in table["tokens"].to_pylist()] == PIECES
    vectors = np.concatenate([np.array(each, np.float16) for each in table["layer_-1"].to_pylist()])
    assert arrays["layer_-1"].dtype == np.float16
    np.testing.assert_array_equal(vectors, arrays["layer_-1"])
    pooled = pyarrow.ipc.open_file(extract(name="out.arrow", pooling="mean")).read_all()
    assert pooled.column_names == ["linex_index", "layer_-1", "layer_0"] and pooled.num_rows == len(LINES)


def test_chunks_do_not_change_what_is_written(extract, monkeypatch):
    whole = dict(np.load(extract()))
    monkeypatch.setattr(driver, "_BLOCK_LINES", 4)
    monkeypatch.setattr(text_encoder, "_CHUNK_BYTES", 4 * 16 * 2 * 20)  # twenty tokens: a few lines
    cut = np.load(extract())
    for name, values in whole.items():
        np.testing.assert_allclose(cut[name], values, atol=2e-6)
    lines = [json.loads(line) for line in lines_of(extract(name="out.jsonl"))]
    assert [line["linex_index"] for line in lines] == list(range(len(LINES)))
    vectors = [token["layers"][1]["values"] for line in lines for token in line["features"]]
    np.testing.assert_allclose(vectors, whole["layer_0"], atol=3e-6)


def test_a_line_without_line_feed_counts(extract):
    assert len(np.load(extract(raw=b"one\n\ntwo", pooling="mean"))["layer_-1"]) == 3


def test_mistakes_are_named_and_leave_no_file(extract, tmp_path):
    assert error(lambda: extract(layers=(-1, -3))) == (
        "--layers: there is no layer -3. The model has 2 layers: 0 to 1, or -1 (the last) to -2.")
    assert error(lambda: extract(raw=b"one\ntwo \xff\n")) == (
        f"{tmp_path}/in.txt, line 2: byte 8 is not UTF-8 (0xff). Re-encode the file.")
    assert error(lambda: extract(raw=b"")) == f"{tmp_path}/in.txt: empty. Write a sequence in each line."
    assert error(lambda: extract(max_seq_length=64)).startswith("--max_seq_length=64 exceeds the model's")
    assert error(lambda: extract(input_file=f"{tmp_path}/none.txt")) == (
        f"{tmp_path}/none.txt: no such file (--input_file).")
    assert error(lambda: extract(name="in.txt/out.npz")) == (
        f"{tmp_path}/in.txt/out.npz: cannot be written, {tmp_path}/in.txt is not a folder (--output_file).")
    assert error(lambda: extract(name="")) == f"{tmp_path}: is a folder. --output_file names a file."
    assert error(lambda: extract(initial_model=InitialModelSettings())) == (
        "No weights given: --init_checkpoint is required.")
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_a_checkpoint_without_pooler_has_no_pooled_output(model, extract, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("bert_config.json", "vocab.txt"):
        (folder / name).write_bytes((model[0] / name).read_bytes())
    google.write(str(folder / "bert_model.ckpt"), {
        name: tf.convert_to_tensor(value) for name, value in named_variables(model[1]).items() if "pooler" not in name})
    initial_model = InitialModelSettings(init_checkpoint=str(folder))
    assert error(lambda: extract(initial_model=initial_model, pooling="pooler")) == (
        f"{folder}/bert_model.ckpt: has no pooler. --pooling=mean and --pooling=cls need none.")


def test_without_pyarrow_the_message_names_its_installation(extract, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert error(lambda: extract(name="out.arrow")) == "Arrow files need pyarrow: pip install pyarrow. Or write npz."

"""Vectors and blanks from Python: the numbers of the scripts, and mistakes in one line."""

import numpy as np
import pytest

import bert
from extraction import driver
from extraction.settings import ExtractionSettings
from foundation.errors import BertError
from modeling.checkpoints import convert
from training.settings import InitialModelSettings

TEXTS = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w10", ("w11 w12", "w13")]


@pytest.fixture(scope="module")
def model(tiny_release):
    return bert.load(str(tiny_release))


@pytest.fixture
def extracted(tiny_release, tmp_path):
    """Runs extract_features.py's work on TEXTS; returns what it wrote, by name."""
    lines = [text if isinstance(text, str) else " ||| ".join(text) for text in TEXTS]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")

    def run(**settings):
        driver.run(ExtractionSettings(
            input_file=str(tmp_path / "lines.txt"), output_file=str(tmp_path / "vectors.npz"), max_seq_length=32,
            initial_model=InitialModelSettings(init_checkpoint=str(tiny_release)), **settings))
        return dict(np.load(tmp_path / "vectors.npz"))

    return run


def error(action, *arguments, **options):
    with pytest.raises(BertError) as raised:
        action(*arguments, **options)
    return str(raised.value)


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_pooled_vectors_are_those_of_the_script(model, extracted, pooling):
    vectors = model.encode(TEXTS, layer=-2, pooling=pooling, batch_size=2)
    name = "pooled_output" if pooling == "pooler" else "layer_-2"
    np.testing.assert_allclose(vectors, extracted(layers=(-2,), pooling=pooling)[name], atol=1e-6)
    assert vectors.dtype == np.float32


def test_every_token_has_a_vector_without_pooling(model, extracted):
    vectors = model.encode(TEXTS, pooling=None)
    assert [len(each) for each in vectors] == [5, 3, 8, 6]
    np.testing.assert_allclose(np.concatenate(vectors), extracted(layers=(-1,))["layer_-1"], atol=1e-6)


def test_a_separator_within_a_text_does_not_make_it_a_pair(model):
    (text,), (pair,) = (model.encode([each], pooling=None) for each in ("w1 ||| w2", ("w1", "w2")))
    assert len(text) == 7 and len(pair) == 5  # the bars are three tokens


def test_long_texts_are_cut_and_no_texts_have_no_vectors(model):
    assert len(model.encode(["w1 " * 40], pooling=None)[0]) == 32
    assert len(model.encode(["w1 " * 40], pooling=None, max_seq_length=8)[0]) == 8
    assert model.encode([]).shape == (0, 16) and model.encode([], pooling=None) == []


def test_blanks_are_filled_in_their_context(model):
    (first, second) = model.fill("w1 [MASK] w2 w3 [MASK].", top_k=100)
    ids = model.vocabulary.ids_of(["[CLS]", "w1", "[MASK]", "w2", "w3", "[MASK]", "[UNK]", "[SEP]"])
    logits = model.network({"input_ids": ids[None], "input_mask": np.ones_like(ids)[None],
                            "segment_ids": np.zeros_like(ids)[None], "masked_lm_positions": np.array([[2, 5]])})
    logits = np.asarray(logits["masked_lm_logits"][0])[:, : model.vocabulary.size]
    for found, row in zip((first, second), logits):
        assert len(found) == model.vocabulary.size
        assert sum(probability for _, probability in found) == pytest.approx(1)
        assert [word for word, _ in found] == [model.vocabulary.tokens[index] for index in np.argsort(-row)]
        assert found[0][1] / found[1][1] == pytest.approx(np.exp(np.diff(np.sort(row))[-1]), rel=1e-4)
    assert model.fill("w1 [MASK] w2 w3 [MASK].", top_k=2) == [first[:2], second[:2]]


def test_hugging_face_s_folder_gives_the_same(model, tiny_release, tmp_path):
    convert.convert(str(tiny_release), str(tmp_path / "hf"), "huggingface")
    other = bert.load(str(tmp_path / "hf"))
    np.testing.assert_allclose(other.encode(TEXTS), model.encode(TEXTS), atol=1e-6)
    assert other.fill("w1 [MASK]")[0][0][0] == model.fill("w1 [MASK]")[0][0][0]


def test_encoder_of_a_fine_tuned_model_gives_vectors_and_fills_no_blanks(models, model):
    tuned = bert.load(str(models.folder / "mrpc"))
    np.testing.assert_allclose(tuned.encode(TEXTS), model.encode(TEXTS), atol=1e-6)
    assert "no masked-LM head" in error(tuned.fill, "w1 [MASK]")


def test_mistakes_are_reported(model, models, tmp_path):
    assert "no such checkpoint" in error(bert.load, str(tmp_path / "nothing"))
    assert "no [MASK]" in error(model.fill, "w1 w2")
    assert "32 positions" in error(model.fill, "w1 " * 40 + "[MASK]")
    assert "there is no layer 7" in error(model.encode, ["w1"], layer=7)
    assert "pooling" in error(model.encode, ["w1"], pooling="max")
    assert "32 positions" in error(model.encode, ["w1"], max_seq_length=64)
    assert "One text in place of a list" in error(model.encode, "w1")
    assert "Element 0 is ('a', 'b', 'c')" in error(model.encode, [("a", "b", "c")])

"""The BiLSTM on a frozen encoder: its inputs, and which variables are trained."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from foundation.errors import BertError
from modeling.config import BertConfig
from modeling.feature_tagger import LAYERS, FeatureTaggerModel
from modeling.models import named_variables

CONFIG = BertConfig(vocab_size=30, hidden_size=8, num_hidden_layers=5, num_attention_heads=2, intermediate_size=16,
                    max_position_embeddings=16, hidden_dropout_prob=0.1)
LABELS = 3


def model(features, config=CONFIG):
    made = FeatureTaggerModel(config, LABELS, features, lstm_size=4)
    rng = np.random.default_rng(0)
    for variable in made.weights:
        variable.assign(rng.normal(0, 0.3, variable.shape))
    return made


def batch(lengths=(10, 6), seq=10):
    rng = np.random.default_rng(1)
    mask = np.arange(seq) < np.array(lengths)[:, None]
    starts = mask & (np.arange(seq) % 3 != 0) & (np.arange(seq) < np.array(lengths)[:, None] - 1)
    arrays = {"input_ids": rng.integers(5, 30, mask.shape) * mask, "input_mask": mask,
              "segment_ids": np.zeros_like(mask), "word_starts": starts}
    return {name: tf.constant(array, tf.int32) for name, array in arrays.items()}


def lstm(x, cell):
    """The equations of an LSTM (Hochreiter and Schmidhuber 1997) on one sequence [words, width]."""
    kernel, recurrent, bias = (each.numpy() for each in (cell.kernel, cell.recurrent_kernel, cell.bias))
    hidden = memory = np.zeros(len(recurrent))
    found = []
    for inputs in x @ kernel + bias:
        new, forget, candidate, output = np.split(inputs + hidden @ recurrent, 4)
        memory = special.expit(forget) * memory + special.expit(new) * np.tanh(candidate)
        hidden = special.expit(output) * np.tanh(memory)
        found.append(hidden)
    return np.array(found)


def vectors(features, encoded, tagger):
    """The rows of the paper's table 7."""
    layers = [layer.numpy() for layer in encoded["layer_outputs"]]
    if features == "embeddings":
        return encoded["embedding_output"].numpy()
    if features == "second_to_last":
        return layers[-2]
    if features == "last":
        return layers[-1]
    taken = layers if features == "weighted_sum_all" else layers[-4:]
    if features == "concat_last_four":
        return np.concatenate(taken, axis=-1)
    weights = np.exp(tagger.layer_weights.numpy())
    weights = weights / weights.sum() * tagger.layer_scale.numpy()
    return np.einsum("l,lbsh->bsh", weights, taken)


@pytest.mark.parametrize("features", LAYERS)
def test_scores_equal_those_of_a_bilstm_over_the_first_word_pieces(features):
    made, rows = model(features), batch()
    tagger = made.tagger
    encoded = made.bert(rows["input_ids"], rows["input_mask"], rows["segment_ids"])
    expected = np.zeros((2, 10, LABELS))
    for row, starts in enumerate(rows["word_starts"].numpy() > 0):
        words = vectors(features, encoded, tagger)[row, starts]
        for layer in tagger.lstms:
            backward = lstm(words[::-1], layer.backward_layer.cell)[::-1]
            words = np.concatenate([lstm(words, layer.forward_layer.cell), backward], axis=-1)
        expected[row, starts] = words @ tagger.output_dense.kernel.numpy() + tagger.output_dense.bias.numpy()
    np.testing.assert_allclose(made(rows)["logits"], expected, atol=1e-5)


def test_only_the_tagger_is_trained():
    made, rows = model("weighted_sum_last_four"), batch()

    @tf.function
    def gradients(rows, seed):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(made(rows, dropout_seed=seed)["logits"] ** 2)
        return tape.gradient(loss, made.trainable_variables)

    assert all(np.abs(each).max() > 0 for each in gradients(rows, tf.constant([1, 2])))
    trained = named_variables(made)
    assert {name.split("/")[0] for name in trained} == {"tagger"}
    assert {"tagger/layer_weights", "tagger/layer_scale", "tagger/bilstm_1/backward_lstm/lstm_cell/recurrent_kernel",
            "tagger/output/kernel"} < set(trained)


def test_the_encoder_s_variables_are_reached_by_their_names_in_checkpoints():
    names = [variable.path for variable in model("last").weights]
    assert len(set(names)) == len(names)
    assert "bert/encoder/layer_4/attention/self/query/kernel" in names


def test_two_models_have_the_same_names():
    first, second = ([variable.path for variable in model("last").weights] for _ in range(2))
    assert first == second


def test_padding_changes_nothing():
    made = model("concat_last_four")
    wide = made(batch())["logits"][1:, :6]
    alone = made({name: array[1:, :6] for name, array in batch().items()})["logits"]
    np.testing.assert_allclose(wide, alone, atol=1e-6)


def test_dropout_is_the_tagger_s_alone():
    made, rows = model("last"), batch()
    plain, dropped, again = (made(rows, dropout_seed=seed)["logits"].numpy() for seed in (None, [1, 2], [1, 2]))
    assert np.abs(plain - dropped).max() > 1e-3
    np.testing.assert_array_equal(dropped, again)


def test_an_encoder_with_too_few_layers_is_named():
    with pytest.raises(BertError) as raised:
        model("concat_last_four", CONFIG.replace(num_hidden_layers=3))
    assert str(raised.value) == (
        "--features=concat_last_four needs layer 4 from the top, but the model has 3 layers. Choose another of "
        "embeddings, second_to_last, last, weighted_sum_last_four, concat_last_four, weighted_sum_all.")

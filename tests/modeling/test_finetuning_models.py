"""Fine-tuning models: the recorded classifier of the original and its updates; names, shapes and padding of all."""

import numpy as np
import pytest
import tensorflow as tf

from modeling.checkpoints import load
from modeling.config import BertConfig
from modeling.losses import cross_entropy
from modeling.models import (
    ClassificationModel,
    MultipleChoiceModel,
    QuestionAnsweringModel,
    TokenClassificationModel,
    named_variables,
)
from training.optimizers.adamw import AdamWeightDecay

TINY = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                  max_position_embeddings=16)
MODELS = {
    "classification": (lambda **options: ClassificationModel(TINY, 3, **options), "", 3),
    "multiple_choice": (lambda **options: MultipleChoiceModel(TINY, **options), "cls/choice/", 1),
    "question_answering": (lambda **options: QuestionAnsweringModel(TINY, **options), "cls/squad/", 2),
    "token_classification": (lambda **options: TokenClassificationModel(TINY, 5, **options), "cls/ner/", 5),
}


def batch(choices=(), seq=12, lengths=(12, 7, 3)):
    rng = np.random.default_rng(0)
    shape = (3, *choices, seq)
    mask = np.broadcast_to((np.arange(seq) < np.array(lengths)[:, None]).reshape(3, *[1] * len(choices), seq), shape)
    return {"input_ids": tf.constant(rng.integers(0, 50, shape) * mask, tf.int32),
            "input_mask": tf.constant(mask, tf.int32), "segment_ids": tf.zeros(shape, tf.int32)}


@pytest.mark.parametrize(("make", "scope", "units"), MODELS.values(), ids=MODELS)
def test_heads_have_the_names_that_checkpoints_give_them(make, scope, units):
    heads = {name: tuple(variable.shape) for name, variable in named_variables(make()).items()
             if not name.startswith("bert/")}
    assert heads == {f"{scope}output_weights": (units, 16), f"{scope}output_bias": (units,)}


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize(("name", "shapes"), [
    ("classification", {"logits": (3, 3)}), ("multiple_choice", {"logits": (3, 4)}),
    ("question_answering", {"start_logits": (3, 12), "end_logits": (3, 12)}),
    ("token_classification", {"logits": (3, 12, 5)})])
def test_scores_are_float32_in_any_precision(name, shapes, dtype):
    outputs = MODELS[name][0](dtype=dtype)(batch((4,) if name == "multiple_choice" else ()))
    assert {key: tuple(value.shape) for key, value in outputs.items()} == shapes
    assert {value.dtype for value in outputs.values()} == {tf.float32}


def test_each_choice_is_scored_as_if_alone():
    model, together = MultipleChoiceModel(TINY, dtype="float32"), batch((4,))
    scores = model(together)["logits"]
    for choice in range(4):
        alone = {name: value[:, choice : choice + 1] for name, value in together.items()}
        np.testing.assert_allclose(model(alone)["logits"][:, 0], scores[:, choice], atol=1e-5)


def test_dropout_follows_its_seed_and_reaches_the_head():
    model = ClassificationModel(TINY.replace(hidden_dropout_prob=0.5), 3, dtype="float32")
    one, same, other = (model(batch(), dropout_seed=tf.constant(seed))["logits"] for seed in ([1, 2], [1, 2], [1, 3]))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3
    plain = ClassificationModel(TINY.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), 3)
    np.testing.assert_array_equal(plain(batch())["logits"], plain(batch(), dropout_seed=tf.constant([1, 2]))["logits"])


@pytest.fixture(scope="module")
def recorded(golden):
    return np.load(golden / "model/golden_finetune_cls.npz")


@pytest.fixture
def golden_classifier(golden, golden_config, recorded):
    config = golden_config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = ClassificationModel(config, 3, dtype="float32")
    load.load_into(model, str(golden / "model/bert_model.ckpt"), load.LoadOptions(new_head=True))
    model.head.output_weights.assign(recorded["output_weights"])
    model.head.output_bias.assign(recorded["output_bias"])
    return model


def test_classifier_gives_the_release_s_logits_and_losses(golden_classifier, golden_features, recorded):
    logits = golden_classifier(golden_features)["logits"]
    np.testing.assert_allclose(logits, recorded["out/logits"], rtol=1e-4, atol=1e-5)
    losses = cross_entropy(logits, recorded["labels"])
    np.testing.assert_allclose(losses, recorded["out/per_example_loss"], rtol=1e-4, atol=1e-5)


def test_ten_updates_lead_to_the_release_s_classifier(golden_classifier, golden_features, recorded):
    variables = {name: variable.value for name, variable in named_variables(golden_classifier).items()}
    optimizer = AdamWeightDecay()
    optimizer.build(variables)

    @tf.function
    def gradients_of():
        with tf.GradientTape() as tape:
            logits = golden_classifier(golden_features)["logits"]
            loss = tf.reduce_mean(cross_entropy(logits, recorded["labels"]))
        found = tape.gradient(loss, list(variables.values()), unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return loss, [tf.convert_to_tensor(gradient) for gradient in found]

    for index, rate in enumerate(recorded["lr"]):
        loss, gradients = gradients_of()
        assert float(loss) == pytest.approx(float(recorded["losses"][index]), rel=1e-3)
        if index == 0:
            assert float(tf.linalg.global_norm(gradients)) == pytest.approx(
                float(recorded["out/global_norm_dense"]), rel=1e-4)
        # The release takes the norm over the rows of the word embeddings' gradient before they are summed.
        scale = 1.0 / max(1.0, float(recorded["gnorm"][index]))
        optimizer.apply([gradient * scale for gradient in gradients], tf.constant(rate))
    for name in (name for name in recorded.files if name.startswith("param_after10/")):
        np.testing.assert_allclose(variables[name.split("/", 1)[1]], recorded[name], rtol=1e-3, atol=1e-3, err_msg=name)

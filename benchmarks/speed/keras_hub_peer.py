"""keras-hub's BertBackbone and MaskedLMHead in a graph, with Keras' AdamW."""

from benchmarks.speed import batches
from benchmarks.speed.batches import PREDICTIONS, SIZES, VOCABULARY
from benchmarks.speed.job import Job


def pretraining(size: str, precision: str, by_length: bool, xla: bool) -> Job:
    """Full pre-training steps.

    Args:
        size: key of SIZES.
        precision: "float32" or "bfloat16".
        by_length: sort rows by length.
        xla: compile the step with XLA, a program for each length.
    """
    import keras
    import tensorflow as tf

    keras.config.set_dtype_policy("mixed_bfloat16" if precision == "bfloat16" else "float32")
    model = _model(size)
    optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    optimizer.build(model.trainable_variables)
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits

    @tf.function(jit_compile=xla, reduce_retracing=not xla)
    def step(batch):
        with tf.GradientTape() as tape:
            inputs = {
                "token_ids": batch["input_ids"],
                "padding_mask": batch["input_mask"],
                "segment_ids": batch["segment_ids"],
                "mask_positions": batch["masked_lm_positions"],
            }
            logits, following = model(inputs, training=True)
            losses = cross_entropy(batch["masked_lm_ids"], tf.cast(logits, tf.float32))
            weights = batch["masked_lm_weights"]
            loss = tf.reduce_sum(losses * weights) / (tf.reduce_sum(weights) + 1e-5)
            labels = batch["next_sentence_labels"][:, 0]
            loss += tf.reduce_mean(cross_entropy(labels, tf.cast(following, tf.float32)))
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, [variable.value for variable in variables]), variables)
        return loss

    sample = batches.sample(size, by_length)
    tensors = [{name: tf.constant(value) for name, value in batch.items()} for batch in sample.batches]
    return Job([lambda batch=batch: float(step(batch)) for batch in tensors], sample.weights, sample.tokens,
               len(tensors) if by_length else 1)


def _model(size):
    import keras
    import keras_hub

    layers, hidden, heads = SIZES[size]
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=VOCABULARY, num_layers=layers, num_heads=heads, hidden_dim=hidden, intermediate_dim=4 * hidden,
        dropout=0.1, max_sequence_length=512)
    positions = keras.Input((PREDICTIONS,), dtype="int32", name="mask_positions")
    head = keras_hub.layers.MaskedLMHead(
        vocabulary_size=VOCABULARY, token_embedding=backbone.token_embedding,
        intermediate_activation=lambda x: keras.activations.gelu(x, approximate=True))
    logits = head(backbone.output["sequence_output"], mask_positions=positions)
    following = keras.layers.Dense(2)(backbone.output["pooled_output"])
    return keras.Model({**backbone.input, "mask_positions": positions}, [logits, following])

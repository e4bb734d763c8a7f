"""The engines that `benchmarks.train_step` compares: each makes a function that runs one full training step.

Each engine's own interpreter runs this module, so an engine's imports are inside its function. A worker builds its
step, then answers each line of its standard input with one line of measurements: rounds can be interleaved.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

Batch = dict[str, Any]
Step = Callable[[int], float]  # of the step's number; returns the loss

SIZES = {  # layers, hidden size, heads
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "base": (12, 768, 12),
}
VOCABULARY, SEQUENCE, PREDICTIONS, USED_PREDICTIONS = 30522, 128, 20, 19


def batch_size(size: str) -> int:
    """Rows of a batch."""
    return 8 if size == "base" else 32


def make_batches(size: str, count: int = 4, seed: int = 0) -> list[Batch]:
    """Batches with the padding of pre-training records: 76 % of the rows are full, the rest of uniform lengths.

    Returns:
        dicts of int32 and float32 arrays, with the records' keys.
    """
    import numpy as np

    draw, rows = np.random.default_rng(seed), batch_size(size)
    order = draw.permutation(count * rows)
    short = round(0.24 * count * rows)
    # Evenly spread lengths in place of a uniform draw: few batches have the padding of the whole distribution.
    lengths = np.concatenate([np.linspace(20, SEQUENCE, short).astype(int), np.full(count * rows - short, SEQUENCE)])
    batches = []
    for chosen in lengths[order].reshape(count, rows):
        mask = (np.arange(SEQUENCE) < chosen[:, None]).astype(np.int32)
        positions = np.sort(
            [draw.choice(np.arange(1, n - 1), PREDICTIONS, replace=n < PREDICTIONS + 2) for n in chosen]
        )
        used = np.minimum(USED_PREDICTIONS, np.maximum(1, np.round(0.15 * chosen).astype(int)))[:, None]
        weights = (np.arange(PREDICTIONS) < used).astype(np.float32)
        batches.append(
            {
                "input_ids": (draw.integers(1000, VOCABULARY, (rows, SEQUENCE)) * mask).astype(np.int32),
                "input_mask": mask,
                "segment_ids": ((np.arange(SEQUENCE) >= chosen[:, None] // 2) * mask).astype(np.int32),
                "masked_lm_positions": (np.sort(positions) * weights).astype(np.int32),
                "masked_lm_ids": (draw.integers(1000, VOCABULARY, (rows, PREDICTIONS)) * weights).astype(np.int32),
                "masked_lm_weights": weights,
                "next_sentence_labels": draw.integers(0, 2, (rows, 1)).astype(np.int32),
            }
        )
    return batches


def useful_flops(size: str, real_tokens: float) -> float:
    """Floating point operations of one step's matrix products, forward and backward, without those of padding."""
    layers, hidden, _ = SIZES[size]
    predictions = batch_size(size) * PREDICTIONS
    dense = layers * 12 * hidden * hidden  # 4 of attention, 8 of feed-forward
    attention = layers * 2 * SEQUENCE * hidden  # scores and context
    vocabulary = hidden * (VOCABULARY + hidden)
    return 3 * 2 * (real_tokens * (dense + attention) + predictions * vocabulary)


def ours(size: str, batches: list[Batch]) -> Step:
    """This project's step in run_pretraining.py: bfloat16 compute, no XLA, unpadded, AdamW."""
    import tensorflow as tf

    from modeling.config import PRESETS
    from modeling.models import PretrainingModel
    from training import devices
    from training.optimizers.optimizer import make_optimizer
    from training.pretraining_objective import PretrainingObjective
    from training.settings import HardwareSettings, OptimizationSettings
    from training.step import TrainStep

    placement = devices.create(HardwareSettings(precision="bfloat16", xla="false"))
    settings = OptimizationSettings()
    with placement.strategy.scope():
        objective = PretrainingObjective(PretrainingModel(PRESETS[size], unpad=True, dtype=placement.dtype))
        optimizer = make_optimizer(settings)
        optimizer.build(objective.variables)
    train = TrainStep(placement, objective, optimizer, lambda step: 1e-4, settings, seed=7)

    @tf.function(reduce_retracing=True)
    def step(features, index):
        return placement.strategy.run(train.update, args=(features, index))

    batches = [{name: tf.constant(value) for name, value in batch.items()} for batch in batches]
    return lambda index: float(step(batches[index % len(batches)], tf.constant(index, tf.int64))[0])


def torch(size: str, batches: list[Batch]) -> Step:
    """Hugging Face's BertForPreTraining: bfloat16 autocast, compiled, masked positions gathered, fused AdamW."""
    import torch
    from transformers import BertConfig, BertForPreTraining

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    layers, hidden, heads = SIZES[size]
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        hidden_act="gelu_pytorch_tanh",
    )
    model = BertForPreTraining(config).train()
    decayed = [p for n, p in model.named_parameters() if "bias" not in n and "LayerNorm" not in n]
    others = [p for n, p in model.named_parameters() if "bias" in n or "LayerNorm" in n]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
        lr=1e-4,
        eps=1e-6,
        fused=True,
    )
    cross_entropy = torch.nn.functional.cross_entropy

    def loss_of(batch):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            encoded = model.bert(batch["input_ids"], batch["input_mask"], batch["segment_ids"])
            sequence, pooled = encoded.last_hidden_state, encoded.pooler_output
            positions = batch["masked_lm_positions"][:, :, None].expand(-1, -1, hidden)
            logits = model.cls.predictions(torch.gather(sequence, 1, positions))
            following = model.cls.seq_relationship(pooled)
        losses = cross_entropy(logits.float().view(-1, VOCABULARY), batch["masked_lm_ids"].view(-1), reduction="none")
        weights = batch["masked_lm_weights"].view(-1)
        masked = (losses * weights).sum() / (weights.sum() + 1e-5)
        return masked + cross_entropy(following.float(), batch["next_sentence_labels"].view(-1))

    compiled = torch.compile(loss_of)

    def step(index):
        loss = compiled(tensors[index % len(tensors)])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    tensors = [
        {k: torch.from_numpy(v) if v.dtype.kind == "f" else torch.from_numpy(v).long() for k, v in batch.items()}
        for batch in batches
    ]
    return step


def keras_hub(size: str, batches: list[Batch]) -> Step:
    """keras-hub's BertBackbone and MaskedLMHead: mixed_bfloat16, graph, Keras' AdamW."""
    import keras
    import keras_hub
    import tensorflow as tf

    keras.config.set_dtype_policy("mixed_bfloat16")
    layers, hidden, heads = SIZES[size]
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=VOCABULARY,
        num_layers=layers,
        num_heads=heads,
        hidden_dim=hidden,
        intermediate_dim=4 * hidden,
        dropout=0.1,
        max_sequence_length=512,
    )
    positions = keras.Input((PREDICTIONS,), dtype="int32", name="mask_positions")
    head = keras_hub.layers.MaskedLMHead(
        vocabulary_size=VOCABULARY,
        token_embedding=backbone.token_embedding,
        intermediate_activation=lambda x: keras.activations.gelu(x, approximate=True),
    )
    logits = head(backbone.output["sequence_output"], mask_positions=positions)
    following = keras.layers.Dense(2)(backbone.output["pooled_output"])
    model = keras.Model({**backbone.input, "mask_positions": positions}, [logits, following])
    optimizer = keras.optimizers.AdamW(1e-4, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    optimizer.build(model.trainable_variables)
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits

    @tf.function
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

    batches = [{name: tf.constant(value) for name, value in batch.items()} for batch in batches]
    return lambda index: float(step(batches[index % len(batches)]))


def matrix_products() -> tuple[Callable[[], float], int]:
    """The bound, a large bfloat16 product: a function that runs it once, and its operations."""
    import tensorflow as tf

    left, right = (tf.cast(tf.random.normal(shape), tf.bfloat16) for shape in ((4096, 2048), (2048, 2048)))
    multiply = tf.function(lambda: tf.matmul(left, right)[0, 0])
    return lambda: float(multiply()), 2 * 4096 * 2048 * 2048


ENGINES = {"ours": ours, "torch": torch, "keras_hub": keras_hub}


def work(engine: str, size: str) -> None:
    """Builds a step, warms up, then prints one JSON line of measurements for each line that is a number of steps."""
    batches = make_batches(size)
    started = time.perf_counter()
    step = ENGINES[engine](size, batches)
    # Batches differ in length: after each has been used once, no measured step compiles.
    losses = [step(index) for index in range(len(batches))]
    print(json.dumps({"ready": True, "seconds": time.perf_counter() - started, "losses": losses}), flush=True)
    product = matrix_products() if engine == "ours" else None
    done = len(batches)
    for line in sys.stdin:
        steps, wall, cpu = int(line), [], []
        for index in range(done, done + steps):
            wall_start, cpu_start = time.perf_counter(), time.process_time()
            step(index)
            wall.append(time.perf_counter() - wall_start)
            cpu.append(time.process_time() - cpu_start)
        done += steps
        # Means, not medians: batches differ in length, and a round uses each equally often.
        result = {"wall": statistics.mean(wall), "cpu": statistics.mean(cpu)}
        if product:
            result["flops"] = _flops_per_second(*product)
        print(json.dumps(result), flush=True)


def _flops_per_second(multiply: Callable[[], float], flops: int, repeats: int = 8) -> float:
    """Operations per second, the median of a few runs."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        multiply()
        seconds.append(time.perf_counter() - start)
    return flops / statistics.median(seconds)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    work(*sys.argv[1:])

"""Hugging Face's BERT on PyTorch: eager or compiled, with a fused AdamW."""

import functools

import numpy as np

from benchmarks.speed import batches, rows
from benchmarks.speed.batches import SIZES, VOCABULARY
from benchmarks.speed.job import Job


def pretraining(size: str, precision: str, by_length: bool, compiled: bool, attention: str, threads: int) -> Job:
    """Full pre-training steps, the masked positions gathered before their head.

    Args:
        size: key of SIZES.
        precision: "float32" or "bfloat16" (autocast).
        by_length: sort rows by length.
        compiled: whether torch.compile makes the forward and backward pass.
        attention: "sdpa" or "eager", of transformers.
        threads: of OpenMP.
    """
    import torch
    from transformers import BertConfig, BertForPreTraining

    _settle(threads)
    layers, hidden, heads = SIZES[size]
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * hidden, hidden_act="gelu_pytorch_tanh")
    model = BertForPreTraining._from_config(config, attn_implementation=attention).train()
    cross_entropy = torch.nn.functional.cross_entropy

    def loss_of(batch):
        with _precision(precision):
            encoded = model.bert(batch["input_ids"], batch["input_mask"], batch["segment_ids"])
            positions = batch["masked_lm_positions"][:, :, None].expand(-1, -1, hidden)
            logits = model.cls.predictions(torch.gather(encoded.last_hidden_state, 1, positions))
            following = model.cls.seq_relationship(encoded.pooler_output)
        losses = cross_entropy(logits.float().view(-1, VOCABULARY), batch["masked_lm_ids"].view(-1), reduction="none")
        weights = batch["masked_lm_weights"].view(-1)
        masked = (losses * weights).sum() / (weights.sum() + 1e-5)
        return masked + cross_entropy(following.float(), batch["next_sentence_labels"].view(-1))

    sample = batches.sample(size, by_length)
    step = _step(model, torch.compile(loss_of, dynamic=by_length) if compiled else loss_of)
    tensors = [{name: _tensor(value) for name, value in batch.items()} for batch in sample.batches]
    return Job([functools.partial(step, batch) for batch in tensors], sample.weights, sample.tokens,
               len(tensors) if by_length else 1)


def finetuning(outputs: int, features: str, model: str, batch_size: int, count: int, precision: str,
               by_length: bool, compiled: bool, attention: str, threads: int) -> Job:
    """Full steps of fine-tuning, batches padded to their longest row.

    Args:
        outputs: of the head; 0 for spans of text.
        features: file of the training set's features.
        model: folder of the initial model.
        batch_size: rows of a batch.
        count: batches, drawn evenly from those of an epoch.
        precision, attention, threads: as above.
        compiled: whether torch.compile makes the embeddings and the layer, one program for all layers.
        by_length: group rows by length as transformers' Trainer does; else shuffled.
    """
    from transformers.trainer_pt_utils import LengthGroupedSampler

    _settle(threads)
    found = rows.load(features)
    if by_length:
        order = np.array(list(LengthGroupedSampler(batch_size, lengths=found.lengths.tolist())))
    else:
        order = np.random.default_rng(0).permutation(len(found))
    plan = order[: len(found) // batch_size * batch_size].reshape(-1, batch_size)
    plan = plan[rows.spread(found.lengths, plan, count)]
    network = load(model, outputs, attention).train()

    def loss_of(batch):
        with _precision(precision):
            return network(**batch).loss

    step = _step(network, loss_of)
    if compiled:
        for part in (network.bert.embeddings, *network.bert.encoder.layer):
            part.compile(dynamic=True)

    def run(chosen):
        return step(_batch(found, chosen, outputs))

    return Job.of([functools.partial(run, chosen) for chosen in plan], count * batch_size,
                  warmups=count if compiled else 1)


def prediction(outputs: int, features: str, model: str, batch_size: int, count: int, precision: str,
               compiled: bool, attention: str, threads: int) -> Job:
    """Predictions of rows sorted by length, in weights of the precision; arguments as above."""
    import torch

    _settle(threads)
    found = rows.load(features)
    plan = rows.sorted_batches(found.lengths, batch_size, count)
    network = load(model, outputs, attention).eval().to(getattr(torch, precision))

    def outputs_of(batch):
        result = network(**batch)
        return (result.logits,) if outputs else (result.start_logits, result.end_logits)

    function = outputs_of
    if compiled:
        torch._inductor.config.freezing = True  # weights are laid out once
        function = torch.compile(outputs_of, dynamic=True)

    def run(chosen):
        with torch.inference_mode():
            return [each.float().numpy() for each in function(_batch(found, chosen))]

    return Job.of([functools.partial(run, chosen) for chosen in plan], count * batch_size,
                  warmups=count if compiled else 1)


def _settle(threads):
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)


def _precision(precision):
    import torch

    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bfloat16")


def load(folder, outputs, attention):
    """The network with the weights of a folder; `outputs` of its head, 0 for spans of text."""
    import transformers

    kind = transformers.BertForSequenceClassification if outputs else transformers.BertForQuestionAnswering
    labels = {"num_labels": outputs} if outputs else {}
    return kind.from_pretrained(folder, attn_implementation=attention, **labels)


def _step(model, loss_of):
    """Forward, backward, clipping and update: a function of a batch that returns the loss."""
    import torch

    exempt = ("bias", "LayerNorm")
    named = list(model.named_parameters())
    groups = [{"params": [value for name, value in named if not any(each in name for each in exempt)],
               "weight_decay": 0.01},
              {"params": [value for name, value in named if any(each in name for each in exempt)],
               "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-5, eps=1e-6, fused=True)

    def step(batch):
        loss = loss_of(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    return step


def _tensor(array):
    import torch

    return torch.from_numpy(array if array.dtype.kind == "f" else array.astype(np.int64))


def _batch(found, chosen, outputs=None):
    """Rows as `transformers` takes them, with labels where `outputs` of the head are given."""
    columns = rows.padded(found, chosen)
    batch = {"input_ids": columns["input_ids"], "token_type_ids": columns["segment_ids"],
             "attention_mask": columns["input_mask"]}
    if outputs == 0:
        batch |= {name: found.values[name][chosen] for name in ("start_positions", "end_positions")}
    elif outputs is not None:
        batch["labels"] = found.values["label_ids"][chosen]
    return {name: _tensor(value) for name, value in batch.items()}

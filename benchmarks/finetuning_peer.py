"""The other side of `benchmarks.finetuning_quality`: a plain PyTorch loop over a `transformers` model.

Run by it, in an interpreter that has torch and transformers. Reads the features that this project made, trains on
shuffled batches padded to their longest row with PyTorch's AdamW and clipping at 1, and writes the dev set's logits.
"""

import itertools
import json
import os
import sys

import numpy as np
import torch
from transformers import BertForSequenceClassification, BertForTokenClassification, get_linear_schedule_with_warmup

IGNORED = -100


def load(path):
    """Rows of a features file: list of dicts of arrays."""
    arrays = np.load(path)
    splits = arrays["row_splits"]
    columns = {name.split("/", 1)[1]: arrays[name] for name in arrays.files if name.startswith("tokens/")}
    labels = arrays["values/label_ids"] if "values/label_ids" in arrays.files else None
    rows = []
    for row, (first, end) in enumerate(itertools.pairwise(splits)):
        rows.append({name: column[first:end] for name, column in columns.items()})
        if labels is not None:
            rows[-1]["label"] = labels[row]
    return rows


def collate(rows):
    """A batch, padded to its longest row."""
    longest = max(len(row["input_ids"]) for row in rows)

    def padded(name, value):
        return torch.tensor(np.stack([np.pad(row[name], (0, longest - len(row[name])), constant_values=value)
                                      for row in rows]), dtype=torch.long)

    batch = {"input_ids": padded("input_ids", 0), "token_type_ids": padded("segment_ids", 0)}
    batch["attention_mask"] = torch.tensor(
        np.stack([np.arange(longest) < len(row["input_ids"]) for row in rows]), dtype=torch.long)
    if "token_labels" in rows[0]:
        labels = padded("token_labels", -1)
        batch["labels"] = torch.where(labels < 0, torch.tensor(IGNORED), labels)
    else:
        batch["labels"] = torch.tensor(np.array([row["label"] for row in rows]), dtype=torch.long)
    return batch


def train(model, rows, told):
    """Trains as told; all rows but the last few of an epoch."""
    size = told["train_batch_size"]
    steps = int(len(rows) / size * told["num_train_epochs"])
    decayed = [value for name, value in model.named_parameters() if not ("bias" in name or "LayerNorm" in name)]
    others = [value for name, value in model.named_parameters() if "bias" in name or "LayerNorm" in name]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
                                  lr=told["learning_rate"], eps=1e-6)
    schedule = make_schedule(told["schedule"], optimizer, steps)
    order = np.concatenate([np.random.default_rng([told["seed"], epoch]).permutation(len(rows))
                            for epoch in range(-(-steps * size // len(rows)))])
    model.train()
    for step in range(steps):
        batch = collate([rows[row] for row in order[step * size : (step + 1) * size]])
        with torch.autocast("cpu", torch.bfloat16, enabled=told["bfloat16"]):
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def make_schedule(name, optimizer, steps):
    """Warm-up, then a line to 0: the release's counts from step 0 on, that of transformers from the end of warm-up."""
    warmup = int(steps * 0.1)
    if name == "transformers":
        return get_linear_schedule_with_warmup(optimizer, warmup, steps)
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: step / warmup if step < warmup else 1 - step / steps)


def predict(model, rows):
    """Logits of all rows, each row's own positions only, end to end."""
    model.eval()
    found = []
    for first in range(0, len(rows), 64):
        part = rows[first : first + 64]
        batch = collate(part)
        del batch["labels"]
        with torch.no_grad():
            logits = model(**batch).logits.float().numpy()
        found += [row_logits[: len(row["input_ids"])] if row_logits.ndim == 2 else row_logits[None]
                  for row, row_logits in zip(part, logits)]
    return np.concatenate(found)


def main():
    """Told by one JSON argument."""
    told = json.loads(sys.argv[1])
    torch.manual_seed(told["seed"])
    kind = BertForTokenClassification if told["family"] == "ner" else BertForSequenceClassification
    model = kind.from_pretrained(told["model"], num_labels=told["num_labels"])
    train(model, load(os.path.join(told["features"], "train.npz")), told)
    np.save(told["output"], predict(model, load(os.path.join(told["features"], "dev.npz"))))


if __name__ == "__main__":
    main()

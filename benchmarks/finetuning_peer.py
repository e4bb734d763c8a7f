"""The peer of `benchmarks.finetuning_quality`: a plain PyTorch loop over a `transformers` model.

The benchmark runs it with an interpreter that has torch and transformers. It reads the features that this project made,
trains on shuffled batches padded to their longest row with PyTorch's AdamW and clipping at 1, and writes the dev set's
logits.
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
    """Rows of a features file: a dict of arrays for each."""
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


def train(model, rows, settings):
    """Trains on whole batches, as this project counts them: the last few rows of the last epoch are left out."""
    size = settings["train_batch_size"]
    steps = int(len(rows) / size * settings["num_train_epochs"])
    decayed = [value for name, value in model.named_parameters() if not ("bias" in name or "LayerNorm" in name)]
    others = [value for name, value in model.named_parameters() if "bias" in name or "LayerNorm" in name]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
                                  lr=settings["learning_rate"], eps=1e-6)
    schedule = make_schedule(settings["schedule"], optimizer, steps)
    order = np.concatenate([np.random.default_rng([settings["seed"], epoch]).permutation(len(rows))
                            for epoch in range(-(-steps * size // len(rows)))])
    model.train()
    for step in range(steps):
        batch = collate([rows[row] for row in order[step * size : (step + 1) * size]])
        with torch.autocast("cpu", torch.bfloat16, enabled=settings["bfloat16"]):
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def make_schedule(name, optimizer, steps):
    """Linear warm-up, then linear decay to 0: the release's from step 0, transformers' from the end of warm-up."""
    warmup = int(steps * 0.1)
    if name == "transformers":
        return get_linear_schedule_with_warmup(optimizer, warmup, steps)
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: step / warmup if step < warmup else 1 - step / steps)


def predict(model, rows):
    """Logits of all rows without padding, end to end."""
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
    """Trains and predicts with the settings of one JSON argument."""
    settings = json.loads(sys.argv[1])
    torch.manual_seed(settings["seed"])
    kind = BertForTokenClassification if settings["family"] == "ner" else BertForSequenceClassification
    model = kind.from_pretrained(settings["model"], num_labels=settings["num_labels"])
    train(model, load(os.path.join(settings["features"], "train.npz")), settings)
    np.save(settings["output"], predict(model, load(os.path.join(settings["features"], "dev.npz"))))


if __name__ == "__main__":
    main()

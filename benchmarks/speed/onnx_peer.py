"""onnxruntime: Hugging Face's BERT as ONNX, its attention fused by onnxruntime's own optimizer."""

import functools
import os
import tempfile

import numpy as np

from benchmarks.speed import rows, torch_peer
from benchmarks.speed.job import Job


def prediction(outputs: int, features: str, model: str, batch_size: int, count: int, precision: str, threads: int
               ) -> Job:
    """Predictions of rows sorted by length, in float32; arguments as those of `torch_peer.prediction`."""
    import onnxruntime

    if precision != "float32":
        raise RuntimeError("onnxruntime has no bfloat16 on CPUs")
    found = rows.load(features)
    plan = rows.sorted_batches(found.lengths, batch_size, count)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    with tempfile.TemporaryDirectory() as folder:
        session = onnxruntime.InferenceSession(_export(model, outputs, folder), options, ["CPUExecutionProvider"])

    def run(chosen):
        columns = rows.padded(found, chosen)
        return session.run(None, {
            "input_ids": columns["input_ids"].astype(np.int64),
            "attention_mask": columns["input_mask"].astype(np.int64),
            "token_type_ids": columns["segment_ids"].astype(np.int64)})

    return Job.of([functools.partial(run, chosen) for chosen in plan], count * batch_size, warmups=1)


def _export(model, outputs, folder):
    import torch
    from onnxruntime.transformers import optimizer

    network = torch_peer.load(model, outputs, "eager").eval()
    network.config.return_dict = False
    example = torch.ones((2, 8), dtype=torch.int64)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "rows", 1: "length"} for name in names}
    plain, fused = (os.path.join(folder, name) for name in ("plain.onnx", "fused.onnx"))
    torch.onnx.export(network, (example, example, example), plain, input_names=names, dynamic_axes=axes, dynamo=False)
    heads, hidden = network.config.num_attention_heads, network.config.hidden_size
    optimizer.optimize_model(plain, "bert", num_heads=heads, hidden_size=hidden).save_model_to_file(fused)
    return fused

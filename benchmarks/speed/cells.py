"""The cells of the table: who computes what, in which variants."""

import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.speed.data_sets import DataSet
from benchmarks.speed.job import Case
from benchmarks.speed.turns import Engine

OURS, TORCH, KERAS_HUB, ONNX = "ours", "PyTorch", "keras-hub", "onnxruntime"
PEERS = (TORCH, KERAS_HUB, ONNX)
_MODULES = {OURS: "ours", TORCH: "torch_peer", KERAS_HUB: "keras_hub_peer", ONNX: "onnx_peer"}
Variants = Mapping[str, Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Peers:
    """Where the peers run, and how.

    Attributes:
        python: their interpreter; None: they are not measured.
        names: those to measure.
        threads: numbers of threads that PyTorch is tried with.
    """

    python: str | None
    names: Sequence[str]
    threads: Sequence[int]


def pretraining(size: str, precision: str, peers: Peers) -> list[Engine]:
    """Full pre-training steps of a size."""
    torch = {
        "eager, by length": {"by_length": True, "compiled": False, "attention": "eager"},
        "compiled": {"by_length": False, "compiled": True, "attention": "eager"},
        "compiled, by length": {"by_length": True, "compiled": True, "attention": "eager"},
    }
    keras_hub = {
        "graph, by length": {"by_length": True, "xla": False},
        "XLA": {"by_length": False, "xla": True},
    }
    variants = {OURS: {"scripts' defaults": {}}, TORCH: _with_threads(torch, peers), KERAS_HUB: keras_hub}
    return list(_engines("pretraining", precision, {"size": size}, variants, peers))


def finetuning(data: DataSet, precision: str, shared: Mapping[str, Any], peers: Peers) -> list[Engine]:
    """Full steps of fine-tuning; `shared` has model, batch_size and count."""
    torch = {
        "eager, random": {"by_length": False, "compiled": False, "attention": "eager"},
        "eager, by length": {"by_length": True, "compiled": False, "attention": "eager"},
        "eager, SDPA, by length": {"by_length": True, "compiled": False, "attention": "sdpa"},
        "compiled, by length": {"by_length": True, "compiled": True, "attention": "eager"},
    }
    torch = {name: {**variant, "outputs": data.outputs} for name, variant in torch.items()}
    variants = {OURS: {"scripts' defaults": {"task": data.task}}, TORCH: _with_threads(torch, peers)}
    return list(_engines("finetuning", precision, {**shared, "features": data.features}, variants, peers))


def prediction(data: DataSet, precision: str, shared: Mapping[str, Any], peers: Peers) -> list[Engine]:
    """Predictions; `shared` as above."""
    torch = {mode: {"outputs": data.outputs, "compiled": mode == "compiled",
                    "attention": "sdpa" if mode == "compiled" else "eager"}
             for mode in ("eager", "compiled")}
    onnx = {"fused": {"outputs": data.outputs}} if precision == "float32" else {}
    variants = {OURS: {"scripts' defaults": {"task": data.task}}, TORCH: _with_threads(torch, peers),
                ONNX: _with_threads(onnx, peers)}
    return list(_engines("prediction", precision, {**shared, "features": data.features}, variants, peers))


def products(precision: str, peers: Peers) -> list[Engine]:
    """One large matrix product of each library."""
    libraries = {"TensorFlow": (sys.executable, "tensorflow"), "PyTorch": (peers.python, "torch"),
                 "NumPy": (sys.executable, "numpy")}
    if precision == "bfloat16":
        libraries.pop("NumPy")
    return [Engine(name, "", python, Case("product", "products", precision, {"library": library}))
            for name, (python, library) in libraries.items() if python]


def _engines(part: str, precision: str, data: Mapping[str, Any], variants: Mapping[str, Variants], peers: Peers
             ) -> Iterator[Engine]:
    for name, named in variants.items():
        python = sys.executable if name == OURS else peers.python
        if not python or (name != OURS and name not in peers.names):
            continue
        for variant, settings in named.items():
            yield Engine(name, variant, python, Case(part, _MODULES[name], precision, data, settings))


def _with_threads(variants: Variants, peers: Peers) -> Variants:
    """Each variant with each number of threads, named where it is not that of the cores."""
    cores = len(os.sched_getaffinity(0))
    return {name if threads == cores else f"{name}, {threads} thread{'s' if threads > 1 else ''}":
            {**settings, "threads": threads} for name, settings in variants.items() for threads in peers.threads}

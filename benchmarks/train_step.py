"""Speed of a full training step next to Hugging Face on PyTorch and keras-hub.

    python -m benchmarks.train_step --sizes=tiny,mini,small,base --peers_python=peers/bin/python

A step is forward, backward, clipping and AdamW with dropout 0.1, on 32 rows of 128 tokens (base: 8 rows) with the
padding of pre-training records. The peers need an environment of their own (`pip install -r
benchmarks/requirements-peers.txt`); without `--peers_python` only this project is measured. All engines run at the same
time and take turns, so that other jobs on the machine slow all of them down alike. The table has medians of rounds. "of
bound" is the useful matrix operations per second (without those of padding), divided by those of one large bfloat16
product in the same run.
"""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks import train_step_engines as engines
from foundation import command
from foundation.settings import EVALUATION, MODEL, OTHER, Settings, setting

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


# Engine to measurement to a value per round.
Results = Mapping[str, Mapping[str, list[float]]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepSettings(Settings):
    """One command."""

    sizes: tuple[str, ...] = setting(
        tuple(engines.SIZES), group=MODEL, help="Sizes to measure, separated by commas.")
    peers: tuple[str, ...] = setting(
        ("torch", "keras_hub"), group=MODEL, help="Peers to measure, separated by commas.")
    rounds: int = setting(5, at_least=1, group=EVALUATION, help="Rounds; the median is reported.")
    steps: int = setting(4, at_least=1, group=EVALUATION, help="Steps of an engine in a round.")
    peers_python: str | None = setting(
        None, group=OTHER, help="Python interpreter that has torch, transformers and keras-hub.")


class Worker:
    """An engine in a process of its own.

    Args:
        engine: key of ENGINES.
        process: of `train_step_engines`.

    `start` makes one.
    """

    def __init__(self, engine: str, process: "subprocess.Popen[str]") -> None:
        self.engine, self.process = engine, process

    def measure(self, steps: int) -> dict[str, float]:
        """Runs steps; returns seconds per step, `wall` and `cpu`."""
        assert self.process.stdin
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, float]:
        """The next line of measurements. Raises RuntimeError where the process has ended."""
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError(f"{self.engine} ended with exit code {self.process.wait()}")

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def start(python: str, engine: str, size: str) -> Worker:
    """Starts an engine and waits until it is ready."""
    worker = Worker(engine, subprocess.Popen(
        [python, "-m", "benchmarks.train_step_engines", engine, size],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # OpenMP's threads sleep while they wait: on a shared machine, spinning would slow PyTorch down.
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_WAIT_POLICY": "PASSIVE"},
    ))
    worker.answer()
    return worker


def measure(size: str, peers_python: str | None, peers: Sequence[str], rounds: int, steps: int) -> Results:
    """Interleaved rounds of all engines at one size.

    Returns:
        by engine, a value per round of `wall` and `cpu`, seconds per step, and of this project's `flops` per second.
    """
    workers = [start(sys.executable, "ours", size)]
    workers += [start(peers_python, peer, size) for peer in peers] if peers_python else []
    results: dict[str, dict[str, list[float]]] = {worker.engine: {} for worker in workers}
    for _ in range(rounds):
        for worker in workers:
            for name, value in worker.measure(steps).items():
                results[worker.engine].setdefault(name, []).append(value)
    for worker in workers:
        worker.close()
    return results


def report(size: str, results: Results) -> None:
    """Prints the rows of one size."""
    batches = engines.make_batches(size)
    real = statistics.mean(int(batch["input_mask"].sum()) for batch in batches)
    every = engines.batch_size(size) * engines.SEQUENCE
    bound = statistics.median(results["ours"]["flops"])
    flops = engines.useful_flops(size, real)
    for engine, values in results.items():
        wall, cpu = statistics.median(values["wall"]), statistics.median(values["cpu"])
        ratios = [theirs / own for theirs, own in zip(values["wall"], results["ours"]["wall"])]
        cpu_ratios = [theirs / own for theirs, own in zip(values["cpu"], results["ours"]["cpu"])]
        print(f"{size:6s} {engine:10s} {real / wall:14,.0f} {every / wall:13,.0f} {real / cpu:18,.0f} "
              f"{flops / wall / bound:9.0%} {statistics.median(ratios):12.2f} {statistics.median(cpu_ratios):9.2f}",
              flush=True)
    print(f"{size:6s} bound: {bound / 1e9:,.0f} GFLOP/s in bfloat16; {real / every:.0%} of tokens are real", flush=True)


def main(settings: StepSettings) -> None:
    """Prints the rows of each size."""
    print("                   real tokens/s  all tokens/s  real tokens/CPU-s  of bound  ours faster  in CPU-s")
    for size in settings.sizes:
        report(size, measure(size, settings.peers_python, settings.peers, settings.rounds, settings.steps))


if __name__ == "__main__":
    command.run_with(main, StepSettings, __doc__)

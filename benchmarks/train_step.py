"""Speed of a full training step beside Hugging Face on PyTorch and keras-hub.

    python -m benchmarks.train_step --sizes=tiny,mini,small,base --peers_python=peers/bin/python

A step is forward, backward, clipping and AdamW with dropout 0.1, on 32 rows of 128 tokens (base: 8), padded as
pre-training records are. The peers are installed apart (`pip install -r benchmarks/requirements-peers.txt` into an
environment of its own); without `--peers_python` only this project is measured. All engines live at the same time
and take turns, so that what else the machine does hits them alike; a figure is the median of rounds. "of bound" is
the useful matrix operations a second (padding's do not count) over what one large bfloat16 product reaches in the
same run.
"""

import json
import os
import statistics
import subprocess
import sys

from absl import app, flags

from benchmarks import train_step_engines as engines

FLAGS = flags.FLAGS
flags.DEFINE_list("sizes", ["tiny", "mini", "small", "base"], "Sizes to measure.")
flags.DEFINE_string("peers_python", None, "Interpreter that has torch, transformers and keras-hub.")
flags.DEFINE_list("peers", ["torch", "keras_hub"], "Peers to measure.")
flags.DEFINE_integer("rounds", 5, "Rounds; the median is shown.", lower_bound=1)
flags.DEFINE_integer("steps", 4, "Steps an engine makes in a round.", lower_bound=1)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Worker:
    """An engine in a process of its own."""

    def __init__(self, python, engine, size):
        self.engine = engine
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.train_step_engines", engine, size],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # OpenMP's threads sleep while they wait: spinning would cost PyTorch dearly on a machine that is shared.
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_WAIT_POLICY": "PASSIVE"},
        )
        self._answer()

    def measure(self, steps):
        """Runs steps; returns seconds a step, `wall` and `cpu`."""
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError(f"{self.engine} ended with exit code {self.process.wait()}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(size, peers_python, peers, rounds, steps):
    """Interleaved rounds of all engines at one size.

    Returns:
        dict, engine to dict of lists, a value a round: `wall` and `cpu` seconds a step, and ours `flops` a second.
    """
    workers = [Worker(sys.executable, "ours", size)]
    workers += [Worker(peers_python, peer, size) for peer in peers] if peers_python else []
    results = {worker.engine: {} for worker in workers}
    for _ in range(rounds):
        for worker in workers:
            for name, value in worker.measure(steps).items():
                results[worker.engine].setdefault(name, []).append(value)
    for worker in workers:
        worker.close()
    return results


def report(size, results):
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
        print(
            f"{size:6s} {engine:10s} {real / wall:14,.0f} {every / wall:12,.0f} {real / cpu:18,.0f} "
            f"{flops / wall / bound:9.0%} {statistics.median(ratios):11.2f} {statistics.median(cpu_ratios):10.2f}",
            flush=True,
        )
    print(
        f"{size:6s} bound: {bound / 1e9:,.0f} GFLOP/s in bfloat16; {real / every:.0%} of tokens are real", flush=True
    )


def main(_):
    print("                   real tokens/s  all tokens/s  real tokens/CPU-s  of bound  ours faster  in CPU-s")
    for size in FLAGS.sizes:
        report(size, measure(size, FLAGS.peers_python, FLAGS.peers, FLAGS.rounds, FLAGS.steps))


if __name__ == "__main__":
    app.run(main)

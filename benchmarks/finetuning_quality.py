"""Quality and speed of fine-tuning beside a plain PyTorch loop over the same weights, features, settings and seeds.

    python -m benchmarks.finetuning_quality --init_checkpoint=minilm --cola_dir=glue/CoLA --wnut_dir=wnut17 \\
        --peer_python=peers/bin/python

The checkpoint is a Hugging Face folder, which both sides read. Both take turns, a seed each, each run a process of its
own whose whole time counts: importing, loading, compiling, training, predicting. Both correct Adam's bias, as PyTorch
does. The dev set is scored by this project's tasks for both.
"""

import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
from absl import flags

import foundation  # noqa: F401  before TensorFlow, whose notices it keeps away
from foundation import command, files
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tasks.ner.task import NerSettings, NerTask
from tasks.task import Predicted
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary

FLAGS = flags.FLAGS
flags.DEFINE_string("init_checkpoint", None, "Folder of a Hugging Face BERT with its vocabulary.", required=True)
flags.DEFINE_string("peer_python", None, "Interpreter that has torch and transformers.", required=True)
flags.DEFINE_string("cola_dir", None, "GLUE's folder of CoLA.")
flags.DEFINE_string("wnut_dir", None, "Folder with WNUT-17's train.txt and dev.txt.")
flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds.")
flags.DEFINE_float("learning_rate", 1e-4, "Of both sides.")
flags.DEFINE_float("num_train_epochs", 3.0, "Of both sides.")
flags.DEFINE_integer("train_batch_size", 32, "Of both sides.")
flags.DEFINE_enum("peer_schedule", "release", ("release", "transformers"), "The peer's rate after warm-up: the "
                  "release's, as here, or that of transformers, a ninth above it.")
flags.DEFINE_bool("bfloat16", True, "Whether both sides compute in bfloat16.")

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclasses.dataclass
class Comparison:
    """A data set: its task here, the script that trains it, and the script's flags."""

    family: str
    task: object
    script: str
    flags: list
    metric: str

    @property
    def num_labels(self):
        return len(self.task.data.labels)


def comparisons():
    """What the flags ask for."""
    if FLAGS.cola_dir:
        settings = ClassificationSettings(task_name="cola", data_dir=FLAGS.cola_dir, max_seq_length=128)
        yield Comparison("cola", ClassificationTask(settings), "run_classifier.py",
                         ["--task_name=cola", f"--data_dir={FLAGS.cola_dir}"], "matthews")
    if FLAGS.wnut_dir:
        paths = {f"{split}_file": os.path.join(FLAGS.wnut_dir, f"{split}.txt") for split in ("train", "dev")}
        yield Comparison("ner", NerTask(NerSettings(**paths, max_seq_length=128)), "run_ner.py",
                         [f"--{name}={path}" for name, path in paths.items()], "f1")


def timed(arguments):
    """Runs a process; returns its seconds and CPU-seconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(arguments, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - started, cpu


def ours(comparison, seed, folder):
    """Trains and evaluates here; returns the metric, seconds, CPU-seconds."""
    output = os.path.join(folder, f"ours-{comparison.family}-{seed}")
    times = timed([
        sys.executable, comparison.script, *comparison.flags, f"--init_checkpoint={FLAGS.init_checkpoint}",
        "--do_train=true", "--do_eval=true", "--max_seq_length=128", f"--output_dir={output}",
        "--eval_batch_size=64", f"--train_batch_size={FLAGS.train_batch_size}", f"--random_seed={seed}",
        f"--learning_rate={FLAGS.learning_rate}", f"--num_train_epochs={FLAGS.num_train_epochs}",
        "--adam_bias_correction=true", f"--precision={'bfloat16' if FLAGS.bfloat16 else 'float32'}"])
    results = dict(line.split(" = ") for line in files.read_text(f"{output}/eval_results.txt").splitlines())
    return float(results[comparison.metric]), *times


def peer(comparison, seed, folder):
    """Trains there, scores the logits here; returns the metric, seconds, CPU-seconds."""
    output = os.path.join(folder, f"peer-{comparison.family}-{seed}.npy")
    told = {"family": comparison.family, "model": FLAGS.init_checkpoint, "num_labels": comparison.num_labels,
            "features": os.path.join(folder, comparison.family), "output": output, "seed": int(seed),
            "learning_rate": FLAGS.learning_rate, "num_train_epochs": FLAGS.num_train_epochs,
            "train_batch_size": FLAGS.train_batch_size, "bfloat16": FLAGS.bfloat16,
            "schedule": FLAGS.peer_schedule}
    times = timed([FLAGS.peer_python, "-m", "benchmarks.finetuning_peer", json.dumps(told)])
    task, logits = comparison.task, np.load(output)
    features = comparison.dev_features
    if "logits" in task.token_outputs:
        logits = np.split(logits, features.row_splits[1:-1])
    metrics = task.score("dev", Predicted(task.read("dev"), features, {"logits": logits}, None))
    return float(metrics[comparison.metric]), *times


def make_features(comparison, tokenizer, folder):
    """Writes train.npz and dev.npz, with labels, for the peer."""
    task = comparison.task
    files.make_folder(os.path.join(folder, comparison.family))
    for split in ("train", "dev"):
        features = task.features(task.read(split), tokenizer, True)
        with open(os.path.join(folder, comparison.family, f"{split}.npz"), "wb") as file:
            features.save(file)
    comparison.dev_features = features


def show(comparison, side, seed, metric, seconds, cpu, more=""):
    """Prints a line."""
    print(f"{comparison.family:6} {side:6} {seed:>4} {metric:10.4f} {seconds:8.0f} {cpu:8.0f}{more}", flush=True)


def main(_):
    """One line a run, then means."""
    tokenizer = Tokenizer(Vocabulary.from_file(os.path.join(FLAGS.init_checkpoint, "vocab.txt")))
    print(f"{'data':6} {'side':6} {'seed':>4} {'metric':>10} {'s':>8} {'CPU-s':>8}")
    for comparison in comparisons():
        with tempfile.TemporaryDirectory() as folder:
            make_features(comparison, tokenizer, folder)
            found = {"ours": [], "peer": []}
            for seed in FLAGS.seeds:
                for name, side in (("ours", ours), ("peer", peer)):
                    found[name].append(side(comparison, seed, folder))
                    metric, seconds, cpu = found[name][-1]
                    show(comparison, name, seed, metric, seconds, cpu)
            for name, rows in found.items():
                metric, seconds, cpu = np.array(rows).T
                spread = metric.std(ddof=1) if len(rows) > 1 else 0.0
                show(comparison, name, "mean", metric.mean(), seconds.mean(), cpu.mean(),
                     f"  {comparison.metric}, standard deviation {spread:.4f}")


if __name__ == "__main__":
    command.run(main)

"""The jobs that compute - pre-training, fine-tuning, search, conversion, extraction - as they are killed.

All models are tiny, with dropout, so that a run that resumes with other random numbers ends with other weights.
"""

import fcntl
import functools
import importlib
import json
import os
import pathlib
from typing import Any

import numpy as np

from benchmarks.reliability import kills
from benchmarks.reliability.kills import Job, Outcome
from extraction import driver as extraction
from extraction.settings import ExtractionSettings
from finetuning import driver as finetuning
from finetuning.settings import FineTuningSettings
from foundation import files, run_files
from modeling.checkpoints import convert, formats, google
from modeling.config import BertConfig
from search import driver as search
from search.folder import BEST, FINISHED, LOG, RESULTS
from search.script import Script
from search.settings import SearchSettings
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tests import conftest
from tests.search import stand_in
from training import pretraining
from training.settings import (
    HardwareSettings,
    InitialModelSettings,
    LoopSettings,
    OptimizationSettings,
    PretrainingSettings,
)

_CONFIG = {**conftest.TINY_CONFIG, "num_hidden_layers": 1, "initializer_range": 0.2, "hidden_dropout_prob": 0.1,
           "attention_probs_dropout_prob": 0.1}
# Bit by bit the same numbers in every run: what is compared are bytes.
_HARDWARE = HardwareSettings(precision="float32", deterministic=True)
_STEPS = 6
_ROWS = {"train": 24, "dev": 24, "test": 10}
_EXTRACTED = ("npz", "jsonl")
_IMPORTED = (
    "tensorflow_text", "h5py", "safetensors.numpy", "matplotlib.figure", "matplotlib.backends.backend_agg",
    "training.pretraining_steps", "finetuning.steps", "tasks.classification.network", "extraction.text_encoder")


def import_all() -> None:
    """Imports what the jobs need, before the fork: children share it. Nothing of TensorFlow is run here."""
    for module in _IMPORTED:
        importlib.import_module(module)


def jobs(material: str, folder: str) -> list[Job]:
    """The jobs, in one process each; a search runs a stub of a fine-tuning script.

    Args:
        material: from `write_material`.
        folder: to write to.
    """
    return [
        Job("pretraining", folder, functools.partial(pretraining.run, _pretraining(material, folder)),
            outcome=outcome_of_run),
        Job("finetuning", folder, functools.partial(_fine_tune, material, folder), outcome=outcome_of_run),
        Job("search", folder, functools.partial(_search, folder), outcome=outcome_of_search),
        *(Job(f"conversion to {name}", folder,
              functools.partial(convert.convert, f"{material}/release", f"{folder}/converted", name))
          for name in sorted(formats.FORMATS)),
        *(Job(f"extraction to {name}", folder, functools.partial(extraction.run, _extraction(material, folder, name)))
          for name in _EXTRACTED),
    ]


def commands(material: str, folder: str) -> list[tuple[Job, list[str]]]:
    """The scripts that train, and the arguments of Python that start them."""
    shared = ["--precision=float32", "--deterministic=true", "--do_train=true", "--do_eval=true", "--eval_every=2",
              "--save_checkpoints_steps=2", "--iterations_per_loop=1", f"--output_dir={folder}/run"]
    arguments = {
        "pretraining": [
            "run_pretraining.py", f"--bert_config_file={material}/release/bert_config.json",
            f"--input_file={material}/train.tfrecord", f"--eval_input_file={material}/dev.tfrecord",
            "--max_seq_length=16", "--max_predictions_per_seq=3", "--train_batch_size=8",
            f"--num_train_steps={_STEPS}", "--num_warmup_steps=2", "--learning_rate=1e-2",
            "--keep_checkpoint_max=2"],
        "finetuning": [
            "run_classifier.py", "--task_name=custom", "--text_a_column=text", "--label_column=label",
            *(f"--{split}_file={material}/{split}.tsv" for split in _ROWS), "--max_seq_length=24",
            f"--init_checkpoint={material}/release/bert_model.ckpt", "--train_batch_size=8", "--num_train_epochs=2",
            "--learning_rate=3e-3", "--random_seed=1", "--do_predict=true"],
    }
    return [(Job(f"{name} (processes)", folder, lambda: None, outcome=outcome_of_run), [*flags, *shared])
            for name, flags in arguments.items()]


def outcome_of_run(folder: str) -> Outcome:
    """All files of a training run by their bytes, except for what holds times: TensorBoard's files count once a
    folder, and the reports in metrics.jsonl are compared without their speeds.
    """
    outcome: Outcome = {}
    for path, content in kills.contents(folder).items():
        if "tfevents" in path:
            outcome[os.path.join(os.path.dirname(path), "events")] = None
        elif os.path.basename(path) == run_files.METRICS:
            outcome[path] = [_without_speed(json.loads(line)) for line in content.splitlines()]
        else:
            outcome[path] = content
    return outcome


def _without_speed(report: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in report.items() if not name.endswith("_per_second")}


def outcome_of_search(folder: str) -> Outcome:
    """All files of a search by their bytes, without seconds. Output logs and the stub's journal record every start, so
    they only have to exist.
    """
    outcome: Outcome = {}
    for path, content in kills.contents(folder).items():
        name = os.path.basename(path)
        if name in (LOG, "journal.txt"):
            outcome[path] = None
        elif name in (FINISHED, BEST):
            outcome[path] = {key: value for key, value in json.loads(content).items() if key != "seconds"}
        elif name == RESULTS:
            rows = [line.split("\t") for line in content.decode().splitlines()]
            outcome[path] = [[cell for column, cell in zip(rows[0], row) if column != "seconds"] for row in rows]
        else:
            outcome[path] = content
    return outcome


def _pretraining(material: str, folder: str) -> PretrainingSettings:
    return PretrainingSettings(
        initial_model=InitialModelSettings(bert_config_file=f"{material}/release/bert_config.json"),
        input_file=f"{material}/train.tfrecord", eval_input_file=f"{material}/dev.tfrecord", do_train=True,
        do_eval=True, max_seq_length=16, max_predictions_per_seq=3, train_batch_size=8, num_train_steps=_STEPS,
        num_warmup_steps=2, hardware=_HARDWARE, optimization=OptimizationSettings(learning_rate=1e-2),
        loop=_loop(folder, keep_checkpoint_max=2))


def _fine_tune(material: str, folder: str) -> None:
    paths: dict[str, Any] = {f"{split}_file": f"{material}/{split}.tsv" for split in _ROWS}
    task = ClassificationTask(ClassificationSettings(
        task_name="custom", text_a_column="text", label_column="label", header=True, max_seq_length=24, **paths))
    finetuning.run(task, FineTuningSettings(
        initial_model=InitialModelSettings(init_checkpoint=f"{material}/release/bert_model.ckpt"),
        do_train=True, do_eval=True, do_predict=True, train_batch_size=8, num_train_epochs=2.0, hardware=_HARDWARE,
        optimization=OptimizationSettings(learning_rate=3e-3, random_seed=1), loop=_loop(folder)))


def _loop(folder: str, **rest: Any) -> LoopSettings:
    # A report of each step, so that they do not depend on where a run was interrupted.
    return LoopSettings(output_dir=f"{folder}/run", save_checkpoints_steps=2, eval_every_steps=2, iterations_per_loop=1,
                        **rest)


def _search(folder: str) -> None:
    path = f"{folder}/search"
    if os.path.exists(lock := f"{path}/lock"):
        # A run whose search was killed ends by itself, and holds the folder until then.
        with open(lock, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
    search.run(SearchSettings(output_dir=path, learning_rate=("1e-05", "3e-05"), train_batch_size=("16",),
                              random_seed=("1",)), Script(stand_in.__file__, ()))


def _extraction(material: str, folder: str, name: str) -> ExtractionSettings:
    return ExtractionSettings(
        input_file=f"{material}/lines.txt", output_file=f"{folder}/vectors.{name}", max_seq_length=16, batch_size=8,
        layers=(-1,), hardware=_HARDWARE,
        initial_model=InitialModelSettings(init_checkpoint=f"{material}/release/bert_model.ckpt"))


def write_material(folder: str) -> str:
    """Writes what the jobs read, in a process of its own because TensorFlow runs there; returns the folder."""
    status, log, _ = kills.run_forked(functools.partial(_write_material, pathlib.Path(folder)))
    if status:
        raise RuntimeError(log)
    return folder


def _write_material(folder: pathlib.Path) -> None:
    from modeling.models import PretrainingModel, named_variables

    release = folder / "release"
    release.mkdir(parents=True)
    (release / run_files.VOCABULARY).write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *conftest.WORDS]) + "\n")
    config = BertConfig.from_dict(_CONFIG)
    config.to_json_file(str(release / run_files.CONFIG))
    values = {name: variable.numpy() for name, variable in named_variables(PretrainingModel(config)).items()}
    google.write(str(release / run_files.RELEASED_CHECKPOINT), values)
    for seed, (name, rows) in enumerate((("train", 64), ("dev", 16))):
        conftest.write_records(folder / f"{name}.tfrecord", conftest.tiny_arrays(rows=rows, seed=seed))
    _write_examples(folder)


def _write_examples(folder: pathlib.Path) -> None:
    """Sentences whose label says which words they are made of, and lines to extract vectors of."""
    rng = np.random.default_rng(0)
    for split, rows in _ROWS.items():
        lines = ["text\tlabel"] if split != "test" else ["text"]
        for row in range(rows):
            words = " ".join(rng.choice(conftest.WORDS[:50] if row % 2 else conftest.WORDS[40:], rng.integers(2, 20)))
            lines.append(words if split == "test" else f"{words}\t{'yes' if row % 2 else 'no'}")
        files.write_text(f"{folder}/{split}.tsv", "\n".join(lines) + "\n")
    files.write_text(f"{folder}/lines.txt", "".join(" ".join(rng.choice(conftest.WORDS, 6)) + "\n" for _ in range(40)))

"""Readers of state files, flags and TF_CONFIG, for `fuzz`."""

import dataclasses
import json
import os
import random
from typing import Any

from benchmarks.reliability import mutations
from benchmarks.reliability.fuzz import Reader, bytes_of, expect, one_file
from data_prep import id_store, records, work_folder
from data_prep.workers import Workers
from docs.make_flags import SCRIPTS
from finetuning import best_model, description
from finetuning.settings import FineTuningSettings
from foundation import files, run_files
from foundation.flags import CommandLine
from search import folder as search_folder
from search import results as search_results
from search.run import Run, read_metrics
from search.script import Script
from search.settings import SearchSettings
from tasks.families import FAMILIES, described_by
from tasks.ner.files import NerSettings
from training import curve, metrics_log
from training.run_directory import RunDirectory

# --- State -----------------------------------------------------------------------------------------------------------


def _read_results(path: str) -> None:
    """A result that is damaged is none: the unit is done again."""
    with Workers(1) as workers:
        [kept] = workers.run(_done_again, [("unit",)], os.path.dirname(path), "", schema=_RESULT_SCHEMA)
    assert kept in (_RESULT, _done_again(None))


def _done_again(unit: object) -> dict[str, Any]:
    return dict.fromkeys(id_store.COUNTS, 6)


_RESULT = dict.fromkeys(id_store.COUNTS, 5)
_RESULT_SCHEMA = dict.fromkeys(id_store.COUNTS, int)


def _keep_result(folder: str) -> None:
    with Workers(1) as workers:
        workers.run(lambda unit: _RESULT, [("unit",)], folder, "", schema=_RESULT_SCHEMA)


_MANIFEST = json.dumps({
    "format": 2, "settings": {"max_seq_length": 128}, "vocabulary": {"path": "v.txt", "size": 10, "sha256": "ab"},
    "inputs": [{"path": "a.txt", "bytes": 10, "sha256": "cd"}], "counts": {"instances": 5},
    "outputs": [{"name": "r.tfrecord", "bytes": 0, "records": 0}]})


def _read_manifest(path: str) -> None:
    found = records.manifest_of(path.removesuffix(records.MANIFEST_SUFFIX))
    assert isinstance(found["vocabulary"]["size"], int)


_EVALUATIONS = json.dumps([{"step": 5, "accuracy": 0.5, "loss": 1.5}, {"step": 10, "accuracy": 0.75, "loss": 1.25}])
_METRICS = "".join(json.dumps({"kind": kind, "step": step, "loss": 1.5, "accuracy": 0.5}) + "\n"
                   for step in (1, 2, 3) for kind in ("train", "eval"))


def _read_evaluations(path: str) -> None:
    folder = os.path.dirname(path)
    evaluations = best_model.read_evaluations(folder, 10)
    found = best_model.BestModel(RunDirectory(folder, writable=False), "accuracy", 1, evaluations)
    found.table(), found.given_up, found.at(5)
    assert not found.best or found.prefix
    found.add(15, {"accuracy": 0.1}, {})


def _read_metrics(path: str) -> None:
    folder = os.path.dirname(path)
    directory = RunDirectory(folder)
    directory.has_evaluation(2)
    before = metrics_log.read(folder)
    directory.drop_reports_after(2)
    expect(repr(metrics_log.read(folder)), repr([report for report in before if report["step"] <= 2]))


def _claim(path: str) -> None:
    RunDirectory(os.path.dirname(path)).claim({"train_batch_size": 32, "num_train_steps": 20, "learning_rate": 5e-5})


_JOB = {"description": {"settings": {"max_seq_length": 128}}, "outputs": ["r.tfrecord"], "stamps": [[10, 20]]}


def _begin_job(path: str) -> None:
    """A job takes up its own work, and makes the folder its own where that was another's."""
    folder = os.path.dirname(path)
    files.make_folder(os.path.join(folder, work_folder.TOKENIZED_DONE))
    files.write_text(os.path.join(folder, work_folder.TOKENIZED_DONE, "unit.json"), "{}")
    with work_folder.locked(folder):
        if not work_folder.belongs_to(folder, _JOB):
            work_folder.begin(folder, _JOB)
            expect(os.listdir(folder), ["job.json"])
        assert work_folder.belongs_to(folder, _JOB)


def _draw(path: str) -> None:
    folder = os.path.dirname(path)
    curve.draw(folder, os.path.join(folder, run_files.LEARNING_CURVE), "run", [
        curve.LOSS, curve.Panel("accuracy", {"accuracy": "accuracy"}, limits=(0, 1))])


def _finished_at(path: str) -> None:
    assert isinstance(RunDirectory(os.path.dirname(path)).finished_at(), int)


def _read_task(path: str) -> None:
    folder = os.path.dirname(path)
    for family in FAMILIES.values():
        CommandLine((family.settings,)).settings(family.settings, description.settings(folder, family.settings))
    described_by(description.read(folder))
    description.metric(folder)


_TASK = json.dumps({"task_name": "custom", "metric": "accuracy", "max_seq_length": 128, "labels": ["O", "B-PER"],
                    "text_a_column": "1", "header": True, "regression": False, "n_best_size": 20,
                    "null_score_diff_threshold": -1.5, "tag_scheme": "bio", "prompt_columns": ["1", "2"],
                    "lstm_size": 8, "features": "last", "answer_text": "release", "language": "zh"})


def _search_owner(path: str) -> None:
    with search_folder.claimed(os.path.dirname(path), Script("run_ner.py", ("--a=1",))):
        pass


class _Finished(Run):
    @property
    def folder(self) -> str:
        return self.settings.output_dir


def _search_finished(path: str) -> None:
    run = _Finished(SearchSettings(output_dir=os.path.dirname(path)), Script("run_ner.py"), {"learning_rate": "1"})
    search_results.best_run([run])
    search_results.write(run.folder, [run], {}).summary()


def _search_metrics(path: str) -> None:
    assert all(isinstance(value, float) for value in read_metrics(path).values())
    _Finished(SearchSettings(output_dir=os.path.dirname(path)), Script("run_ner.py"), {}).finish(1.0)


def _metric_of_task(path: str) -> None:
    folder = os.path.dirname(path)
    files.write_text(os.path.join(folder, run_files.EVAL_RESULTS), "accuracy = 0.5\nf1 = 0.25\nloss = 1.5\n")
    _Finished(SearchSettings(output_dir=folder), Script("run_ner.py"), {}).finish(1.0)


# --- Flags and environment -------------------------------------------------------------------------------------------

_SCRIPTS = tuple(SCRIPTS.values())


def _random_flags(_: bytes, rng: random.Random) -> bytes:
    """A script's number and a command line for it, a flag a line."""
    number = rng.randrange(len(_SCRIPTS))
    line = CommandLine(_SCRIPTS[number])
    names = rng.sample(list(line.fields), min(len(line.fields), rng.choice((1, 2, 4))))
    required = [f"--{name}=x" for name, field in line.fields.items() if field.required and name not in names]
    given = []
    for name in names:
        field = line.fields[name]
        value = rng.choice((mutations.text(rng), mutations.number(rng), "1", "0.5", "true",
                            *field.description.choices))
        given.append(rng.choice((f"--{name}={value}",) * 8 + (f"--no{name}", f"--{name}", f"-{name[:-1]}={value}",
                                                              f"--{name}", value)))
    return json.dumps([number, *required, *given]).encode()


def _parse_flags(folder: str) -> None:
    number, *flags = json.loads(bytes_of(os.path.join(folder, "flags.json")))
    line = CommandLine(_SCRIPTS[number])
    line.parse(["script.py", *flags])
    for kind in _SCRIPTS[number]:
        settings = line.settings(kind)
        repr(dataclasses.asdict(settings))
        if isinstance(settings, SearchSettings):
            settings.grid()


def _parse_flag_file(path: str) -> None:
    line = CommandLine((NerSettings, FineTuningSettings))
    line.parse(["script.py", f"--flagfile={path}"])
    line.settings(NerSettings), line.settings(FineTuningSettings)


_TF_CONFIG = json.dumps({"cluster": {"chief": ["a:1"], "worker": ["host1:12345", "host2:12345"]},
                         "task": {"type": "worker", "index": 1}})


def _read_cluster(path: str) -> None:
    import tensorflow as tf

    from training import devices

    os.environb[b"TF_CONFIG"] = bytes_of(path).replace(b"\0", b"")
    cluster = devices._cluster()
    if cluster:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        expect({job: hosts for job, hosts in resolver.cluster_spec().as_dict().items() if hosts},
               {job: hosts for job, hosts in cluster.items() if hosts})
        assert 0 <= resolver.task_id < len(cluster[resolver.task_type])


_FLAG_FILE = "--output_dir=x\n--do_train\n# comment\n--train_batch_size=16\n--labels=O,B-PER\n"
# What a message about a flag has in place of a path.
_FLAG = ("--", " is not a flag")

READERS = (
    Reader("job_results", _keep_result, {"unit.json": mutations.json_edited}, lambda folder: _read_results(
        os.path.join(folder, "unit.json"))),
    one_file("manifests", "r.tfrecord.manifest.json", _MANIFEST, mutations.json_edited, _read_manifest),
    one_file("evaluations", run_files.EVALUATIONS, _EVALUATIONS, mutations.json_edited, _read_evaluations),
    one_file("metrics", run_files.METRICS, _METRICS, mutations.json_lines_edited, _read_metrics),
    one_file("learning_curve", run_files.METRICS, _METRICS, mutations.json_lines_edited, _draw),
    one_file("job", "job.json", json.dumps(_JOB), mutations.json_edited, _begin_job),
    one_file("run", run_files.RUN, json.dumps({"train_batch_size": 32, "num_train_steps": 10, "learning_rate": 5e-5}),
         mutations.json_edited, _claim),
    one_file("run_finished", run_files.RUN_FINISHED, json.dumps({"step": 10}), mutations.json_edited, _finished_at),
    one_file("task.json", run_files.TASK, _TASK, mutations.json_edited, _read_task),
    one_file("search", search_folder.SEARCH, json.dumps({"script": "run_ner.py", "flags": ["--a=1"]}),
         mutations.json_edited, _search_owner),
    one_file("search_finished", search_folder.FINISHED, json.dumps(
        {"metric": "f1", "figures": {"f1": 0.5, "loss": 1.5}, "seconds": 5.5}), mutations.json_edited,
         _search_finished),
    one_file("search_metrics", run_files.EVAL_RESULTS, "f1 = 0.5\nloss = 1.5\n", mutations.edited, _search_metrics,
         ("eval_results.txt", "--metric")),
    one_file("search_task", run_files.TASK, _TASK, mutations.json_edited, _metric_of_task, ("task.json", "--metric")),
    Reader("flags", lambda folder: files.write_text(f"{folder}/flags.json", '[0, "--input_file=a", "--output_file=b"]'),
           {"flags.json": _random_flags}, _parse_flags, _FLAG),
    one_file("flag_files", "flags.txt", _FLAG_FILE, mutations.edited, _parse_flag_file, _FLAG),
    one_file("TF_CONFIG", "config.json", _TF_CONFIG, mutations.json_edited, _read_cluster, ("TF_CONFIG",)),
)

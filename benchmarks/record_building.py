"""Pre-training records made per CPU-second, next to the original release or by size of text, and the memory they take.

    python -m benchmarks.record_building --input_file=documents.txt --vocab_file=vocab.txt
    python -m benchmarks.record_building --input_file=documents.txt --vocab_file=vocab.txt --sizes=1,100,300,1000

Each row makes records of the whole input (one sentence per line, an empty line between documents) with settings that
the release was measured with on 10 MB of English prose: google-research/bert, commit eedf571, TensorFlow 1.15.5, one
process. Start-up is left out: modules are imported and the tokenizer has run once before the clock starts. CPU-seconds
are those of all threads together; the median of --repeats runs is reported. Memory is the proportional set size of all
processes of one separate command with all workers, start-up included.

With --sizes, each row is one command with all workers on so many MB of text, start-up included, and CPU-seconds are
those of all its processes. The text is the input again and again; each copy has its documents and their sentences in
another order and its digits exchanged. It has no words that the input lacks, apart from numbers.
"""

import dataclasses
import itertools
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from data_prep import pretraining_job
from data_prep.records import MANIFEST_SUFFIX
from data_prep.settings import CorpusSettings, InstanceSettings, RecordSettings
from data_prep.workers import Workers
from foundation import command, files
from foundation.settings import DATA, EVALUATION, Settings, setting


class Job(NamedTuple):
    """The settings of a row."""

    max_seq_length: int
    max_predictions_per_seq: int
    dupe_factor: int


# Of a row of --sizes.
_JOB_OF_SIZES = Job(128, 20, 1)

# Instances that the release makes per CPU-second.
RELEASE = {Job(128, 20, 1): 687, Job(128, 20, 5): 1366, Job(512, 77, 1): 222, Job(512, 77, 5): 470}


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildingSettings(Settings):
    """One command."""

    input_file: str = setting(group=DATA, help="Documents, one sentence per line.")
    vocab_file: str = setting(group=DATA, help="Vocabulary, one word piece per line.")
    repeats: int = setting(3, at_least=1, group=EVALUATION, help="Runs of each row; the median is reported.")
    memory: bool = setting(True, group=EVALUATION, help="Measure memory too.")
    sizes: tuple[str, ...] = setting(
        (), group=EVALUATION, help="Measure texts of so many MB, made of the input, in place of the input itself.")
    work_dir: str | None = setting(
        None, group=EVALUATION,
        help="Folder for texts and records, which are removed. Default: that for temporary files.")


def main(settings: BuildingSettings) -> None:
    """Prints one row per job, or per size."""
    if settings.sizes:
        _measure_sizes(settings)
    else:
        _measure_jobs(settings)


def _measure_sizes(settings: BuildingSettings) -> None:
    print(f"{'MB of text':>10} {'instances':>10} {'CPU-s':>7} {'seconds':>8} {'MB/CPU-s':>9} {'instances/CPU-s':>15} "
          f"{'peak memory MB':>14}")
    for megabytes in map(int, settings.sizes):
        with tempfile.TemporaryDirectory(dir=settings.work_dir) as folder:
            text = os.path.join(folder, "text.txt")
            write_varied(settings.input_file, text, megabytes * 1_000_000)
            run = _run_command(dataclasses.replace(settings, input_file=text), folder, _JOB_OF_SIZES)
            made = files.read_json(os.path.join(folder, f"command.tfrecord{MANIFEST_SUFFIX}"))
            size, instances = os.path.getsize(text) / 1e6, made["counts"]["instances"]
            print(f"{size:10,.0f} {instances:10,} {run.cpu_seconds:7.1f} {run.seconds:8.1f} "
                  f"{size / run.cpu_seconds:9.2f} {instances / run.cpu_seconds:15,.0f} {run.peak_bytes / 1e6:14.0f}",
                  flush=True)


def write_varied(source: str, target: str, size: int) -> None:
    """Writes about so many bytes of documents: those of a file, then varied copies of them.

    Args:
        source: documents, one sentence per line, an empty line between them.
        target: the file to write.
        size: bytes; the last document is not cut off.
    """
    documents = [document.split("\n") for document in files.read_text(source).strip().split("\n\n")]
    written = 0
    with open(target, "w", encoding="utf-8") as output:
        for copy in itertools.count():
            rng = random.Random(copy)
            digits = str.maketrans("0123456789", "".join(rng.sample("0123456789", 10)) if copy else "0123456789")
            for document in rng.sample(documents, len(documents)):
                sentences = rng.sample(document, len(document)) if copy else document
                text = "\n".join(sentences).translate(digits) + "\n\n"
                written += len(text.encode())
                output.write(text)
                if written >= size:
                    return


def _measure_jobs(settings: BuildingSettings) -> None:
    print(f"{'length':>6} {'predictions':>11} {'dupe':>4} {'instances/CPU-s':>15} {'release':>8} {'ratio':>6} "
          f"{'MB of text/CPU-s':>16} {'peak memory MB':>14}")
    with tempfile.TemporaryDirectory() as folder:
        # The tokenizer and caches warm up.
        _measure_speed(dataclasses.replace(settings, input_file=_first_lines(settings.input_file, folder)), folder,
                       Job(128, 20, 1))
        for job, release in RELEASE.items():
            runs = [_measure_speed(settings, folder, job) for _ in range(settings.repeats)]
            speed = statistics.median(instances / seconds for instances, _, seconds in runs)
            text = statistics.median(size / seconds / 1e6 for _, size, seconds in runs)
            memory = f"{_run_command(settings, folder, job).peak_bytes / 1e6:14.0f}" if settings.memory else ""
            print(f"{job.max_seq_length:6} {job.max_predictions_per_seq:11} {job.dupe_factor:4} {speed:15,.0f} "
                  f"{release:8,} {speed / release:5.1f}x {text:16.2f} {memory}", flush=True)


def _first_lines(path: str, folder: str) -> str:
    """A small file with the beginning of another."""
    small = os.path.join(folder, "first_lines.txt")
    with open(path, encoding="utf-8") as file, open(small, "w", encoding="utf-8") as output:
        output.writelines(file.readlines(100_000))
        output.write("\n\nAnother document.\n")
    return small


def _measure_speed(settings: BuildingSettings, folder: str, job: Job) -> tuple[int, int, float]:
    """Instances, bytes of text and CPU-seconds of one job in this process."""
    records = RecordSettings(
        input_file=settings.input_file, output_file=os.path.join(folder, "speed.tfrecord"), overwrite=True,
        corpus=CorpusSettings(vocab_file=settings.vocab_file), instances=InstanceSettings(**job._asdict()))
    begin = time.process_time()
    with Workers(1) as workers:
        made = pretraining_job.run(records, workers)
    return made["counts"]["instances"], made["counts"]["corpus_bytes"], time.process_time() - begin


class Run(NamedTuple):
    """One command: seconds of all its processes together, seconds that it took, and peak bytes of all its processes
    together, shared pages counted once."""

    cpu_seconds: float
    seconds: float
    peak_bytes: int


def _run_command(settings: BuildingSettings, folder: str, job: Job) -> Run:
    began, used_before = time.monotonic(), _used_by_children()
    script = pathlib.Path(__file__).resolve().parent.parent / "data_prep" / "create_pretraining_data.py"
    process = subprocess.Popen(
        [sys.executable, str(script), f"--input_file={settings.input_file}", f"--vocab_file={settings.vocab_file}",
         f"--output_file={os.path.join(folder, 'command.tfrecord')}", "--overwrite",
         *(f"--{name}={value}" for name, value in job._asdict().items())],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # its processes are found by their session
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, _session_bytes(process.pid))
        time.sleep(0.1)
    if process.returncode:
        raise RuntimeError(f"{script}: exit code {process.returncode}")
    return Run(_used_by_children() - used_before, time.monotonic() - began, peak)


def _used_by_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _session_bytes(session: int) -> int:
    """Bytes of a session's processes; 0 where one began or ended meanwhile: what they share would count twice."""
    before, total = _processes(session), 0
    for process in before:
        try:
            rollup = (process / "smaps_rollup").read_text()
            total += next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
        except (OSError, StopIteration):
            return 0  # the process has ended
    return total if _processes(session) == before else 0


def _processes(session: int) -> set[pathlib.Path]:
    found = set()
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[3]) == session:
                found.add(stat.parent)
        except OSError:
            continue
    return found


if __name__ == "__main__":
    command.run_with(main, BuildingSettings, __doc__)

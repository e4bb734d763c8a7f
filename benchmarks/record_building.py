"""Pre-training records made per CPU-second, next to the original release, and the memory it takes.

    python -m benchmarks.record_building --input_file=documents.txt --vocab_file=vocab.txt

Each row makes records of the whole input (one sentence per line, an empty line between documents) with settings that
the release was measured with on 10 MB of English prose: google-research/bert, commit eedf571, TensorFlow 1.15.5, one
process. Start-up is left out: modules are imported and the tokenizer has run once before the clock starts. CPU-seconds
are those of all threads together; the median of --repeats runs is reported. Memory is the proportional set size of all
processes of one separate command with all workers, start-up included.
"""

import dataclasses
import glob
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from data_prep import pretraining_job
from data_prep.settings import CorpusSettings, InstanceSettings, RecordSettings
from data_prep.workers import Workers
from foundation import command
from foundation.settings import DATA, EVALUATION, Settings, setting


class Job(NamedTuple):
    """The settings of a row."""

    max_seq_length: int
    max_predictions_per_seq: int
    dupe_factor: int


# Instances that the release makes per CPU-second.
RELEASE = {Job(128, 20, 1): 687, Job(128, 20, 5): 1366, Job(512, 77, 1): 222, Job(512, 77, 5): 470}


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildingSettings(Settings):
    """One command."""

    input_file: str = setting(group=DATA, help="Documents, one sentence per line.")
    vocab_file: str = setting(group=DATA, help="Vocabulary, one word piece per line.")
    repeats: int = setting(3, at_least=1, group=EVALUATION, help="Runs of each row; the median is reported.")
    memory: bool = setting(True, group=EVALUATION, help="Measure memory too.")


def main(settings: BuildingSettings) -> None:
    """Prints one row per job."""
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
            memory = f"{_measure_memory(settings, folder, job) / 1e6:14.0f}" if settings.memory else ""
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


def _measure_memory(settings: BuildingSettings, folder: str, job: Job) -> int:
    """Peak bytes of all processes of the command together; shared pages are counted once."""
    script = pathlib.Path(__file__).resolve().parent.parent / "data_prep" / "create_pretraining_data.py"
    process = subprocess.Popen(
        [sys.executable, str(script), f"--input_file={settings.input_file}", f"--vocab_file={settings.vocab_file}",
         f"--output_file={os.path.join(folder, 'memory.tfrecord')}", "--overwrite",
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
    return peak


def _session_bytes(session: int) -> int:
    total = 0
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = pathlib.Path(stat).read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                rollup = pathlib.Path(stat).with_name("smaps_rollup").read_text()
                total += next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
        except (OSError, StopIteration):
            continue  # the process has ended in the meantime
    return total


if __name__ == "__main__":
    command.run_with(main, BuildingSettings, __doc__)

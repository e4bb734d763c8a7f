"""Pre-training records made per CPU-second, beside the original release, and the memory that takes.

    python -m benchmarks.record_building --input_file=documents.txt --vocab_file=vocab.txt

Each row makes records of the whole input (one sentence a line, an empty line between documents) at a setting for
which the release was measured on 10 MB of English prose: google-research/bert, commit eedf571, TensorFlow 1.15.5, one
process. Start-up is left out: modules are imported and the tokenizer has run once before the clock starts. A
CPU-second is one of all threads together; the median of --repeats runs is shown. Memory is the proportional set size
of all processes of the command, run once by itself with all workers, start-up included.
"""

import glob
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from absl import flags

from foundation import command

FLAGS = flags.FLAGS
# (max_seq_length, max_predictions_per_seq, dupe_factor): instances per CPU-second of the release.
RELEASE = {(128, 20, 1): 687, (128, 20, 5): 1366, (512, 77, 1): 222, (512, 77, 5): 470}


def define_flags():
    flags.DEFINE_string("input_file", None, "Documents, one sentence a line.", required=True)
    flags.DEFINE_string("vocab_file", None, "The vocabulary.", required=True)
    flags.DEFINE_integer("repeats", 3, "Runs of each setting; the median counts.")
    flags.DEFINE_bool("memory", True, "Measure memory too.")


def main(_):
    print(
        f"{'length':>6} {'predictions':>11} {'dupe':>4} {'instances/CPU-s':>15} {'release':>8} {'ratio':>6} "
        f"{'MB of text/CPU-s':>16} {'peak memory MB':>14}"
    )
    with tempfile.TemporaryDirectory() as folder:
        _measure_speed(_first_lines(FLAGS.input_file, folder), folder, (128, 20, 1))  # tokenizer and caches warm up
        for setting, release in RELEASE.items():
            runs = [_measure_speed(FLAGS.input_file, folder, setting) for _ in range(FLAGS.repeats)]
            rate = statistics.median(instances / seconds for instances, _, seconds in runs)
            text = statistics.median(size / seconds / 1e6 for _, size, seconds in runs)
            memory = f"{_measure_memory(folder, setting) / 1e6:14.0f}" if FLAGS.memory else ""
            length, predictions, dupe = setting
            print(
                f"{length:6} {predictions:11} {dupe:4} {rate:15,.0f} {release:8,} {rate / release:5.1f}x "
                f"{text:16.2f} {memory}",
                flush=True,
            )


def _first_lines(path, folder):
    small = os.path.join(folder, "first_lines.txt")
    with open(path, encoding="utf-8") as file, open(small, "w", encoding="utf-8") as output:
        output.writelines(file.readlines(100_000))
        output.write("\n\nAnother document.\n")
    return small


def _measure_speed(input_file, folder, setting):
    """Instances, bytes of text and CPU-seconds of one job in this process."""
    from data_prep import pretraining_job
    from data_prep.settings import CorpusSettings, InstanceSettings, RecordSettings
    from data_prep.workers import Workers

    length, predictions, dupe = setting
    settings = RecordSettings(
        input_file=input_file,
        output_file=os.path.join(folder, "speed.tfrecord"),
        corpus=CorpusSettings(vocab_file=FLAGS.vocab_file),
        instances=InstanceSettings(max_seq_length=length, max_predictions_per_seq=predictions, dupe_factor=dupe),
        overwrite=True,
    )
    begin = time.process_time()
    with Workers(1) as workers:
        made = pretraining_job.run(settings, workers)
    return made["counts"]["instances"], made["counts"]["corpus_bytes"], time.process_time() - begin


def _measure_memory(folder, setting):
    """The most bytes that all processes of the command held at a time, shared pages counted once."""
    length, predictions, dupe = setting
    process = subprocess.Popen(
        [
            sys.executable,
            str(pathlib.Path(__file__).resolve().parent.parent / "data_prep" / "create_pretraining_data.py"),
            f"--input_file={FLAGS.input_file}",
            f"--vocab_file={FLAGS.vocab_file}",
            f"--output_file={os.path.join(folder, 'memory.tfrecord')}",
            f"--max_seq_length={length}",
            f"--max_predictions_per_seq={predictions}",
            f"--dupe_factor={dupe}",
            "--overwrite",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # its processes are found by the session
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, _session_bytes(process.pid))
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"the command failed with exit code {process.returncode}")
    return peak


def _session_bytes(session):
    total = 0
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = pathlib.Path(stat).read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                rollup = pathlib.Path(stat).with_name("smaps_rollup").read_text()
                total += next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
        except (OSError, StopIteration):
            continue  # it ended meanwhile
    return total


if __name__ == "__main__":
    define_flags()
    command.run(main)

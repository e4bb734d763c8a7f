"""The jobs of data preparation, killed at each of their file operations and as processes.

    python -m benchmarks.reliability.data_jobs
    python -m benchmarks.reliability.data_jobs --points=10 --processes=3
"""

import dataclasses
import functools
import os
import shutil
import sys
import tempfile

from benchmarks.reliability import kills
from benchmarks.reliability.kills import Job, Report
from data_prep import build_vocab, instances, pretraining_job, sentence_pairs, split_sentences
from data_prep.settings import CorpusSettings, InstanceSettings, RecordSettings, SentenceSettings, VocabularySettings
from data_prep.workers import Workers
from foundation import command, files, parallel
from foundation.errors import BertError
from foundation.settings import EVALUATION, Settings, setting
from tests.data_prep import corpora

# So small that a small text has several of each.
_CHUNK_ROWS = 300
_BLOCK_TOKENS = 4000
_BLOCK_BYTES = 8000


@dataclasses.dataclass(frozen=True, kw_only=True)
class KillSettings(Settings):
    """How often to kill."""

    points: int | None = setting(
        None, at_least=1, group=EVALUATION, help="File operations of each job to kill it at. Default: all.")
    twice: int = setting(
        20, at_least=0, group=EVALUATION, help="Further times that the start after the kill is killed too.")
    processes: int = setting(
        10, at_least=0, group=EVALUATION, help="Times that each command is killed with its workers.")


def run(settings: KillSettings, folder: str) -> list[Report]:
    """Kills all jobs; prints a line for each."""
    import tensorflow_text  # noqa: F401  (before the fork, and not run: children share it)

    material = _material(os.path.join(folder, "material"))
    reports = []
    print(kills.HEADING)
    for job in jobs(material, os.path.join(folder, "out")):
        reports.append(kills.kill_points(job, settings.points, settings.twice))
        print(reports[-1].summary(), flush=True)
    if settings.processes:
        for job, arguments in _commands(material, os.path.join(folder, "out")):
            reports.append(kills.kill_processes(job.name, [sys.executable, *arguments], job, settings.processes))
            print(reports[-1].summary(), flush=True)
    return reports


def jobs(material: str, folder: str) -> list[Job]:
    """The three jobs, in one process each.

    Args:
        material: a folder with `text.txt`, two files of documents and `vocab.txt`.
        folder: to write to.
    """
    text = os.path.join(material, "text.txt")

    def split() -> None:
        split_sentences.run(SentenceSettings(input_file=text, output_file=f"{folder}/s.txt", num_workers=1),
                            _BLOCK_BYTES)

    def learn() -> None:
        build_vocab.run(VocabularySettings(input_file=text, output_file=f"{folder}/v.txt", vocab_size=200,
                                           num_workers=1))

    def make(seed: int = 1, overwrite: bool = False) -> None:
        instances.CHUNK_ROWS = _CHUNK_ROWS
        sentence_pairs.plan_blocks.__defaults__ = (_BLOCK_TOKENS,)
        with Workers(1) as workers:
            pretraining_job.run(_records(material, folder, seed, overwrite), workers)

    def others() -> None:
        """Records of another seed, which --overwrite replaces."""
        if not os.path.exists(f"{material}/others"):
            kills.run_forked(functools.partial(make, seed=2))
            shutil.copytree(folder, f"{material}/others")
        shutil.copytree(f"{material}/others", folder, dirs_exist_ok=True)

    return [Job("split_sentences", folder, split), Job("build_vocab", folder, learn),
            Job("create_pretraining_data", folder, make),
            Job("create_pretraining_data --overwrite", folder, functools.partial(make, overwrite=True), others)]


def _records(material: str, folder: str, seed: int, overwrite: bool) -> RecordSettings:
    return RecordSettings(
        input_file=f"{material}/one.txt,{material}/two.txt", output_file=f"{folder}/r@3", num_workers=1,
        overwrite=overwrite,
        corpus=CorpusSettings(vocab_file=f"{material}/vocab.txt"),
        instances=InstanceSettings(max_seq_length=32, max_predictions_per_seq=5, dupe_factor=2, random_seed=seed))


def _commands(material: str, folder: str) -> list[tuple[Job, list[str]]]:
    """The three commands with two workers, and the arguments of Python that start them."""
    workers = "--num_workers=2"
    text = f"--input_file={material}/text.txt"
    arguments = {
        "split_sentences": [text, f"--output_file={folder}/s.txt"],
        "build_vocab": [text, f"--output_file={folder}/v.txt", "--vocab_size=200"],
        "create_pretraining_data": [
            f"--input_file={material}/one.txt,{material}/two.txt", f"--vocab_file={material}/vocab.txt",
            f"--output_file={folder}/r@3", "--max_seq_length=32", "--max_predictions_per_seq=5", "--dupe_factor=20"],
    }
    return [(Job(f"{name} (processes)", folder, lambda: None), ["-m", f"data_prep.{name}", workers, *flags])
            for name, flags in arguments.items()]


def _material(folder: str) -> str:
    files.make_folder(folder)
    documents = corpora.make_documents(60)
    for name, part in (("one", documents[:30]), ("two", documents[30:])):
        files.write_text(f"{folder}/{name}.txt",
                         "".join("".join(f"{line}\n" for line in document) + "\n" for document in part))
    files.write_text(f"{folder}/text.txt", "\n\n".join(" ".join(f"{line.capitalize()}." for line in document)
                                                       for document in documents) + "\n")
    pieces = [*corpora.SPECIAL, *corpora.WORDS, *corpora.PIECES]
    files.write_text(f"{folder}/vocab.txt", "".join(f"{piece}\n" for piece in pieces))
    return folder


def main(settings: KillSettings) -> None:
    """Prints the report; fails where an outcome differed."""
    os.environ.update(CUDA_VISIBLE_DEVICES="-1")
    with tempfile.TemporaryDirectory() as folder:
        reports = run(settings, folder)
    faults = sum(len(report.faults) for report in reports)
    print(f"{sum(report.kills for report in reports):,} kills, {faults:,} faults, on {parallel.default_num_workers()} "
          "cores")
    if faults:
        raise BertError(f"{faults} outcomes differ from the undisturbed run's.")


if __name__ == "__main__":
    command.run_with(main, KillSettings, __doc__)

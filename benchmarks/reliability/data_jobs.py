"""The jobs of data preparation, as they are killed: in one process, and as commands with two workers."""

import functools
import os
import shutil

from benchmarks.reliability import kills
from benchmarks.reliability.kills import Job
from data_prep import build_vocab, instances, pretraining_job, sentence_pairs, split_sentences
from data_prep.settings import CorpusSettings, InstanceSettings, RecordSettings, SentenceSettings, VocabularySettings
from data_prep.workers import Workers
from foundation import files
from tests.data_prep import corpora

# So small that a small text has several of each.
_CHUNK_ROWS = 300
_BLOCK_TOKENS = 4000
_BLOCK_BYTES = 8000
# Without a description of the job, an output may be another job's.
_REFUSED = ("exists, and no",)


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
            Job("create_pretraining_data", folder, make, intermediates=".r.work/**/*", refused=_REFUSED),
            Job("create_pretraining_data --overwrite", folder, functools.partial(make, overwrite=True), others)]


def _records(material: str, folder: str, seed: int, overwrite: bool) -> RecordSettings:
    return RecordSettings(
        input_file=f"{material}/one.txt,{material}/two.txt", output_file=f"{folder}/r@3", num_workers=1,
        overwrite=overwrite,
        corpus=CorpusSettings(vocab_file=f"{material}/vocab.txt"),
        instances=InstanceSettings(max_seq_length=32, max_predictions_per_seq=5, dupe_factor=2, random_seed=seed))


def commands(material: str, folder: str) -> list[tuple[Job, list[str]]]:
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


def write_material(folder: str) -> str:
    """Writes what the jobs read; returns the folder."""
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

"""Whatever is damaged between a kill and the resume is made again; no record changes."""

import contextlib
import os
import pathlib
import re
import shutil

import numpy as np
import pytest

from data_prep import instances, intermediate, pretraining_job, sentence_pairs, workers
from data_prep.settings import CorpusSettings, InstanceSettings, RecordSettings
from data_prep.workers import Workers
from foundation import files
from foundation.errors import BertError
from tests.data_prep import corpora

# What is called when a pass is done and the next one begins; the last one writes the manifest.
STAGES = ("id_store.join_units", "_make_plan", "sentence_pairs.join_plans", "_make_outputs", "files.write_json")


@pytest.fixture
def make(tmp_path, monkeypatch):
    """A job of several units in each pass, from the folder `name`; with a stage, it is interrupted there."""
    monkeypatch.setattr(instances, "CHUNK_ROWS", 100)
    monkeypatch.setattr(sentence_pairs.plan_blocks, "__defaults__", (1000,))
    vocab_file = corpora.write_vocabulary(tmp_path / "vocab.txt")
    text = corpora.write_corpus(tmp_path / "text", corpora.make_documents(8))

    def run(name, stage=None):
        settings = RecordSettings(
            input_file=text, output_file=f"{tmp_path}/{name}/r@2", corpus=CorpusSettings(vocab_file=vocab_file),
            instances=InstanceSettings(max_seq_length=32, max_predictions_per_seq=5, dupe_factor=2))
        with monkeypatch.context() as patch, Workers(1) as crew:
            if stage:
                interrupt(patch, stage)
            with contextlib.suppress(KeyboardInterrupt):
                pretraining_job.run(settings, crew)
        return {path.name: path.read_bytes() for path in (tmp_path / name).iterdir() if path.is_file()}

    return run


def interrupt(patch, stage):
    owner = pretraining_job
    *modules, function = stage.split(".")
    for module in modules:
        owner = getattr(owner, module)
    original = getattr(owner, function)

    def stop(*arguments, **options):
        if stage != "files.write_json" or arguments[0].endswith("manifest.json"):
            raise KeyboardInterrupt
        return original(*arguments, **options)

    patch.setattr(owner, function, stop)


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("stage", STAGES)
def test_what_is_damaged_in_an_interrupted_job_is_made_again(make, tmp_path, capsys, stage):
    expected = make("whole")
    make("interrupted", stage)
    work = tmp_path / "interrupted" / ".r.work"
    # One of each kind.
    kinds = {(path.parent, path.suffix or path.name): path.relative_to(work)
             for path in sorted(work.rglob("*")) if path.is_file() and path.stat().st_size}
    assert len(kinds) > 2
    for index, name in enumerate(kinds.values()):
        for damage in (flip, (cut_off, os.remove)[index % 2]):
            shutil.rmtree(tmp_path / "again", ignore_errors=True)
            shutil.copytree(tmp_path / "interrupted", tmp_path / "again")
            job = tmp_path / "again" / ".r.work"
            # The copy is a job of another folder until its outputs are renamed in the description.
            (job / "job.json").write_text((job / "job.json").read_text().replace("/interrupted/", "/again/"))
            damage(job / name)
            capsys.readouterr()
            try:
                assert make("again") == expected, (name, damage)
            except BertError as error:
                # Without a description of the job, an output may be another job's.
                assert name == pathlib.Path("job.json") and stage == "files.write_json", (name, damage, error)
                assert re.search(r"exists, and no .* describes it", str(error))
            assert not job.exists()
            reported = capsys.readouterr().err
            # Without its last byte, a line feed, a file of JSON is whole.
            assert "It is made again" in reported or name.suffix == ".json", (name, damage)


def test_a_file_is_known_by_its_bytes(tmp_path, capsys):
    path = tmp_path / "a"
    with intermediate.writing(str(path)) as output:
        output.write(b"abc")
        output.write_array(np.arange(1000))
        output.append(str(corpora.write_vocabulary(tmp_path / "vocab.txt")))
    described = output.description()
    assert intermediate.is_intact(str(path), described) and not capsys.readouterr().err
    for damage in (flip, cut_off, os.remove):
        content = path.read_bytes()
        damage(path)
        assert not intermediate.is_intact(str(path), described)
        assert capsys.readouterr().err.startswith(f"warning: {path}: ")
        path.write_bytes(content)


def test_a_result_is_kept_with_its_checksum(tmp_path, capsys):
    with Workers(1) as crew:
        crew.run(lambda unit: {"value": 5}, [("a",)], str(tmp_path), "")
    path = tmp_path / "a.json"
    assert workers.kept_result(str(tmp_path), "a", {"value": int}) == {"value": 5}
    path.write_text(path.read_text().replace('"value": 5', '"value": 7'))
    assert workers.kept_result(str(tmp_path), "a", {"value": int}) is None
    assert "a.json: damaged" in capsys.readouterr().err
    files.write_text(str(path), "{")
    assert workers.kept_result(str(tmp_path), "a", {"value": int}) is None

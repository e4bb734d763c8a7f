"""No job replaces what it reads, believes a size where content decides, or works before it knows where to write."""

import json
import os
import pathlib
import stat
import tempfile

import pytest
import tensorflow as tf

from data_prep import build_vocab, output_paths, pretraining_job, records, split_sentences, work_folder, workers
from data_prep.settings import CorpusSettings, InstanceSettings, RecordSettings, SentenceSettings, VocabularySettings
from data_prep.workers import Workers
from foundation.errors import BertError
from tests.data_prep import corpora


@pytest.fixture
def text(tmp_path):
    """A text of three short documents; a vocabulary is next to it."""
    corpora.write_vocabulary(tmp_path / "vocab.txt")
    return pathlib.Path(corpora.write_corpus(tmp_path / "text.txt", corpora.make_documents(3, sentences=(2, 2))))


def split(text, output):
    return split_sentences.run(SentenceSettings(input_file=str(text), output_file=str(output), num_workers=1))


def learn(text, output):
    return build_vocab.run(
        VocabularySettings(input_file=str(text), output_file=str(output), vocab_size=200, num_workers=1))


def make(text, output, **options):
    vocab_file = str(text).split(",")[0].rpartition("/")[0] + "/vocab.txt"
    settings = RecordSettings(
        input_file=str(text), output_file=str(output), corpus=CorpusSettings(vocab_file=vocab_file),
        instances=InstanceSettings(max_seq_length=32, max_predictions_per_seq=5, dupe_factor=1), **options)
    with Workers(1) as crew:
        return pretraining_job.run(settings, crew)


JOBS = pytest.mark.parametrize("job", [split, learn, make])


@JOBS
@pytest.mark.parametrize("name", ["text.txt", "./text.txt", "folder/../text.txt", "symbolic", "hard", "file://"])
def test_an_output_that_is_an_input_is_refused_by_whatever_name(text, tmp_path, monkeypatch, job, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "symbolic").symlink_to(text)
    (tmp_path / "hard").hardlink_to(text)
    before, names = text.read_bytes(), sorted(os.listdir(tmp_path))
    with pytest.raises(BertError, match=r"is an input and would be replaced\. Give another --output_file"):
        job(text, f"file://{text}" if name == "file://" else name)
    assert text.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == names


def test_no_input_among_several_and_no_other_file_that_is_read_may_be_an_output(text, tmp_path):
    other = corpora.write_corpus(tmp_path / "other.txt", corpora.make_documents(2))
    for output in (other, f"{tmp_path}/new,{other}", f"{tmp_path}/vocab.txt"):
        with pytest.raises(BertError, match="is an input"):
            make(f"{text},{other}", output)
    (tmp_path / "words").write_text("approx.\n")
    with pytest.raises(BertError, match="is an input"):
        split_sentences.run(SentenceSettings(
            input_file=str(text), output_file=f"{tmp_path}/words", abbreviations=f"{tmp_path}/./words"))


def test_one_output_under_two_names_is_refused(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for names in ("r,./r", f"r,{tmp_path}/r", "ram://a/r,ram://a/b/../r"):
        with pytest.raises(BertError, match="names a file twice"):
            make(text, names)


@JOBS
@pytest.mark.parametrize("name, message", [
    ("text.txt/x", "cannot be written"),
    ("folder", "is a folder"),
    ("new/", "is a folder"),
    ("n" * 300, "cannot be written"),
    ("/proc/x/y", "cannot be written"),
])
def test_an_output_that_cannot_be_is_refused_before_any_work(text, tmp_path, monkeypatch, job, name, message):
    (tmp_path / "folder").mkdir()
    for worker in (build_vocab, split_sentences):
        monkeypatch.setattr(worker, "map_in_order", None)
    monkeypatch.setattr(workers.Workers, "run", None)
    with pytest.raises(BertError, match=message) as caught:
        job(text, os.path.join(tmp_path, name))
    assert "\n" not in str(caught.value)


def test_another_text_of_the_same_size_is_another_text(text, tmp_path):
    make(text, tmp_path / "r")
    before = text.read_text()
    text.write_text(before.replace("a", "e"))
    os.utime(text, ns=(0, 0))
    with pytest.raises(BertError, match=rf"made with another content of {text}\..*--overwrite"):
        make(text, tmp_path / "r")
    text.write_text(before)
    text.rename(tmp_path / "moved.txt")
    assert make(tmp_path / "moved.txt", tmp_path / "r")["counts"]


def test_an_interrupted_job_does_not_go_on_with_another_text_of_the_same_size(text, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pretraining_job, "_make_plan", stop)
        make(text, tmp_path / "a" / "r")
    assert (tmp_path / "a" / ".r.work").exists()
    stamp = text.stat().st_mtime_ns
    text.write_text(text.read_text().replace("a", "e"))
    os.utime(text, ns=(stamp, stamp))
    make(text, tmp_path / "a" / "r")
    make(text, tmp_path / "b" / "r")
    assert (tmp_path / "a" / "r").read_bytes() == (tmp_path / "b" / "r").read_bytes()


def test_a_text_that_changes_while_it_is_read_makes_no_records(text, tmp_path, monkeypatch):
    original = pretraining_job._make_store

    def change_and_make(*arguments):
        counts = original(*arguments)
        text.write_text("ban\n\nben\n")
        return counts

    with monkeypatch.context() as patch:
        patch.setattr(pretraining_job, "_make_store", change_and_make)
        with pytest.raises(BertError, match=r"a text was changed while it was read\. Run the same command again"):
            make(text, tmp_path / "r")
    assert sorted(os.listdir(tmp_path)) == ["text.txt", "vocab.txt"]
    make(text, tmp_path / "r")


def test_more_output_files_than_instances_leaves_some_empty(text, tmp_path):
    """As with the release."""
    for folder in (str(tmp_path), "ram://empty"):
        made = make(text, f"{folder}/r@40")
        outputs = [f"{folder}/r-{number:05d}-of-00040" for number in range(40)]
        sizes = [tf.io.gfile.stat(path).length for path in outputs]
        assert sizes.count(0) == 40 - made["counts"]["instances"] > 0
        schema = records.PretrainingSchema(32, 5, 132, 2)
        records.check(outputs, schema)
        assert records.count(outputs) == made["counts"]["instances"]
        assert records.find_problem(outputs, schema) is None


def test_outputs_changed_during_an_interruption_are_noticed(text, tmp_path, monkeypatch):
    from foundation import files

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        write_json = files.write_json
        patch.setattr(files, "write_json",
                      lambda path, value: stop() if path.endswith("manifest.json") else write_json(path, value))
        make(text, tmp_path / "r")
    (tmp_path / "r").write_bytes(b"")
    with pytest.raises(BertError, match=r"/r: was changed while the job was interrupted"):
        make(text, tmp_path / "r")
    make(text, tmp_path / "r", overwrite=True)
    assert records.count([str(tmp_path / "r")]) > 0


@pytest.mark.parametrize("content, message", [
    ("[]", "not a state file of this program"),
    ("{", "not JSON"),
    ('{"format": 2}', "settings is missing"),
])
def test_a_manifest_of_another_form_is_named(text, tmp_path, content, message):
    make(text, tmp_path / "r")
    manifest = tmp_path / "r.manifest.json"
    whole = json.loads(manifest.read_text())
    for damaged in (content, json.dumps({**whole, "counts": {}}), json.dumps({**whole, "inputs": [1]}),
                    json.dumps({**whole, "format": 1})):
        manifest.write_text(damaged)
        with pytest.raises(BertError, match=r"r\.manifest\.json") as caught:
            make(text, tmp_path / "r")
        assert damaged != content or message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_users_own_job_json_makes_no_work_folder(text, tmp_path):
    (tmp_path / "work").mkdir()
    for content in ('{"mine": 1}', "[]", "{"):
        (tmp_path / "work" / "job.json").write_text(content)
        (tmp_path / "work" / "plan").write_text("precious")
        with pytest.raises(BertError, match="holds other files"):
            make(text, tmp_path / "r", work_dir=f"{tmp_path}/work")
        assert sorted(os.listdir(tmp_path / "work")) == ["job.json", "plan"]


def test_jobs_with_work_folders_of_their_own_do_not_share_an_output(text, tmp_path):
    with work_folder.locked(str(tmp_path / ".r.work")), pytest.raises(BertError, match="another process"):
        make(text, tmp_path / "r", work_dir=str(tmp_path / "work"))


def test_the_work_folder_of_a_remote_output_is_this_user_s_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = work_folder.private("gs://bucket/r")
    parent = pathlib.Path(folder).parent
    assert stat.S_IMODE(parent.stat().st_mode) == 0o700
    assert work_folder.private("gs://bucket/r") == folder != work_folder.private("gs://bucket/s")
    parent.chmod(0o755)
    with pytest.raises(BertError, match=r"not a folder that only you can use.*--work_dir"):
        work_folder.private("gs://bucket/r")
    parent.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BertError, match="not a folder that only you can use"):
        work_folder.private("gs://bucket/r")


def test_paths_have_one_form(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    assert output_paths.canonical(f"{tmp_path}/link/../a") == output_paths.canonical(f"file://{tmp_path.parent}/a")
    assert output_paths.canonical("gs://b/x/../y") == "gs://b/y"

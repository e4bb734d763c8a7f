"""The fine-tuning scripts as commands: train, evaluate and predict; a finished folder; one line for a mistake."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import WORDS
from tests.light_start import run_light

TRAINING = ("--do_train=true", "--num_train_epochs=1", "--train_batch_size=8", "--max_seq_length=16",
            "--precision=float32", "--learning_rate=1e-3")
OWN_TABLE = ("--task_name=custom", "--train_file=train.csv", "--dev_file=dev.csv", "--text_a_column=review",
             "--label_column=stars", "--output_dir=run")


@pytest.fixture
def command(repository, tiny_release, tmp_path):
    """Runs a script in an empty folder, with the tiny checkpoint unless `initial` is false; returns what it prints."""

    def run(script, *flags, initial=True):
        checkpoint = [f"--init_checkpoint={tiny_release}"] if initial else []
        done = subprocess.run([sys.executable, str(repository / script), *checkpoint, *flags], cwd=tmp_path,
                              capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        return done.stdout

    return run


@pytest.fixture
def refused(repository, tiny_config, tmp_path):
    """Runs a script on a mistake, which it reports in one line before TensorFlow is imported; returns the line."""
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")

    def run(script, *flags):
        code, _, error = run_light(repository / script, f"--bert_config_file={tiny_config}", *flags, cwd=tmp_path)
        assert code == 1 and error.startswith("error: ") and error.count("\n") == 1, error
        return error.removeprefix("error: ").rstrip()

    return run


def sentence(rng, words=6):
    return " ".join(rng.choice(WORDS, words))


def test_classifier_of_the_user_s_own_table(command, refused, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("train", "dev"):
        rows = [f"{sentence(rng)},{'good' if row % 2 else 'bad'}" for row in range(16)]
        (tmp_path / f"{name}.csv").write_text("review,stars\n" + "\n".join(rows) + "\n")
    (tmp_path / "new.csv").write_text("review\n" + sentence(rng) + "\n" + sentence(rng) + "\n")
    printed = command("run_classifier.py", *OWN_TABLE, *TRAINING, "--do_eval=true")
    assert "evaluation at step 2" in printed and "Labels found in train.csv: bad, good." in printed
    assert "eval_accuracy" in (tmp_path / "run/eval_results.txt").read_text()
    command("run_classifier.py", "--do_predict=true", "--test_file=new.csv", "--output_dir=run", initial=False)
    assert np.loadtxt(tmp_path / "run/test_results.tsv").sum(axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert [line.split("\t")[1] in ("bad", "good", "prediction")
            for line in (tmp_path / "run/predictions.tsv").read_text().splitlines()] == [True] * 3
    (tmp_path / "dev.csv").write_text("review,stars\nw1 w2,bad\nw3,fine\n")
    assert refused("run_classifier.py", *OWN_TABLE, "--do_eval=true") == (
        "dev.csv, line 3, column 2 ('stars'): 'fine' is not a label of custom. Labels: bad, good.")


def test_tagger_of_two_columns(command, refused, tmp_path):
    rng = np.random.default_rng(0)
    text = "\n\n".join("\n".join(f"{word}\t{'B-x' if word < 'w5' else 'O'}" for word in sentence(rng).split())
                       for _ in range(16)) + "\n"
    (tmp_path / "train.txt").write_text(text)
    (tmp_path / "words.txt").write_text("w1\nw2\n\nw3\n")
    given = ("--train_file=train.txt", "--dev_file=train.txt", "--output_dir=run")
    assert "f1" in command("run_ner.py", *given, *TRAINING, "--do_eval=true")
    command("run_ner.py", "--do_predict=true", "--test_file=words.txt", "--output_dir=run", initial=False)
    predicted = (tmp_path / "run/predictions.txt").read_text().splitlines()
    assert [line.split()[0] for line in predicted if line.strip()] == ["w1", "w2", "w3"]
    (tmp_path / "train.txt").write_text("w1\tB-x\nw2\n")
    assert refused("run_ner.py", *given, *TRAINING).startswith("train.txt, line 2")


def test_multiple_choice_in_the_generic_layout(command, refused, tmp_path):
    rng = np.random.default_rng(0)
    rows = [json.dumps({"prompt": sentence(rng), "a": sentence(rng), "b": sentence(rng), "right": row % 2})
            for row in range(16)]
    (tmp_path / "train.jsonl").write_text("\n".join(rows) + "\n")
    given = ("--task_name=custom", "--train_file=train.jsonl", "--dev_file=train.jsonl", "--prompt_columns=prompt",
             "--choice_columns=a,b", "--label_column=right", "--output_dir=run")
    assert "accuracy" in command("run_multiple_choice.py", *given, *TRAINING, "--do_eval=true")
    (tmp_path / "train.jsonl").write_text(rows[0] + "\n" + rows[1][:-4] + "\n")
    assert refused("run_multiple_choice.py", *given, *TRAINING).startswith("train.jsonl, line 2")


@pytest.mark.parametrize(("flags", "message"), [
    (["--train_batchsize=8"], "--train_batchsize: no such flag. Did you mean --train_batch_size? See --help."),
    (["--num_train_epochs=three"], "--num_train_epochs=three: not a number. See --help."),
    (["--num_train_epochs=nan"], "--num_train_epochs=nan: must be a finite number."),
    (["--num_train_epochs=-1"], "--num_train_epochs=-1.0: must be at least 0."),
    (["--random_seed=-1"], "--random_seed=-1: must be at least 0."),
    (["--precision=float8"], "--precision=float8: not one of auto, float32, bfloat16."),
    (["--optimizer=sgd"], "--optimizer=sgd: not one of adamw, lamb."),
    (["--task_name=squad"], "'squad' is not a task. Pass --task_name: "),
    (["--train_file=none.csv"], "none.csv: no such file (--train_file)."),
    (["--label_column=star"], "train.csv, line 1: no column 'star'. It has 'review', 'stars'. Pass --label_column."),
    (["--init_checkpoint=none"], "none: no such checkpoint. Give a folder, or a path such as "),
    (["--bert_config_file=none.json"], "none.json"),
    (["--max_seq_length=64"], "--max_seq_length=64 exceeds the model's 32 positions (max_position_embeddings in "),
])
def test_mistake_is_one_line_without_tensorflow(refused, tmp_path, flags, message):
    (tmp_path / "train.csv").write_text("review,stars\nw1 w2,good\nw3,bad\n")
    found = refused("run_classifier.py", *OWN_TABLE, *TRAINING, *flags)
    assert found == message if message.endswith(".") else found.startswith(message)


@pytest.mark.parametrize("script", ["run_classifier.py", "run_squad.py", "run_ner.py", "run_multiple_choice.py"])
def test_missing_output_dir_is_named(refused, script):
    assert refused(script, "--do_train=true") == (
        "--output_dir is required: Folder for checkpoints, logs and results.")

"""The fine-tuning scripts as commands: train, evaluate and predict; a finished folder; one line for a mistake."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import WORDS

TRAINING = ("--do_train=true", "--num_train_epochs=1", "--train_batch_size=8", "--max_seq_length=16",
            "--precision=float32", "--learning_rate=1e-3")


@pytest.fixture
def command(repository, tiny_release, tmp_path):
    """Runs a script in an empty folder; `start` gives it the tiny checkpoint."""

    def run(script, *flags, start=True):
        checkpoint = [f"--init_checkpoint={tiny_release}"] if start else []
        return subprocess.run([sys.executable, str(repository / script), *checkpoint, *flags], cwd=tmp_path,
                              capture_output=True, text=True, timeout=240)

    return run


def sentence(rng, words=6):
    return " ".join(rng.choice(WORDS, words))


def finished(done):
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def refused(done, *words):
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    assert all(word in done.stderr for word in words), done.stderr


def test_classifier_of_one_s_own_table(command, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("train", "dev"):
        rows = [f"{sentence(rng)},{'good' if row % 2 else 'bad'}" for row in range(16)]
        (tmp_path / f"{name}.csv").write_text("review,stars\n" + "\n".join(rows) + "\n")
    (tmp_path / "new.csv").write_text("review\n" + sentence(rng) + "\n" + sentence(rng) + "\n")
    table = ("--task_name=custom", "--train_file=train.csv", "--dev_file=dev.csv", "--text_a_column=review",
             "--label_column=stars", "--output_dir=run")
    printed = finished(command("run_classifier.py", *table, *TRAINING, "--do_eval=true"))
    assert "evaluation at step 2" in printed and "Labels found in train.csv: bad, good." in printed
    assert "eval_accuracy" in (tmp_path / "run/eval_results.txt").read_text()
    finished(command("run_classifier.py", "--do_predict=true", "--test_file=new.csv", "--output_dir=run", start=False))
    assert np.loadtxt(tmp_path / "run/test_results.tsv").sum(axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert [line.split("\t")[1] in ("bad", "good", "prediction")
            for line in (tmp_path / "run/predictions.tsv").read_text().splitlines()] == [True] * 3
    (tmp_path / "dev.csv").write_text("review,stars\nw1 w2,bad\nw3,fine\n")
    refused(command("run_classifier.py", *table, "--do_eval=true"), "dev.csv, line 3", "stars", "'fine' is no label")


def test_tagger_of_two_columns(command, tmp_path):
    rng = np.random.default_rng(0)
    text = "\n\n".join("\n".join(f"{word}\t{'B-x' if word < 'w5' else 'O'}" for word in sentence(rng).split())
                       for _ in range(16)) + "\n"
    (tmp_path / "train.txt").write_text(text)
    (tmp_path / "words.txt").write_text("w1\nw2\n\nw3\n")
    given = ("--train_file=train.txt", "--dev_file=train.txt", "--output_dir=run")
    assert "f1" in finished(command("run_ner.py", *given, *TRAINING, "--do_eval=true"))
    finished(command("run_ner.py", "--do_predict=true", "--test_file=words.txt", "--output_dir=run", start=False))
    predicted = (tmp_path / "run/predictions.txt").read_text().splitlines()
    assert [line.split()[0] for line in predicted if line.strip()] == ["w1", "w2", "w3"]
    (tmp_path / "train.txt").write_text("w1\tB-x\nw2\n")
    refused(command("run_ner.py", *given, *TRAINING), "train.txt, line 2")


def test_multiple_choice_in_the_generic_layout(command, tmp_path):
    rng = np.random.default_rng(0)
    rows = [json.dumps({"prompt": sentence(rng), "a": sentence(rng), "b": sentence(rng), "right": row % 2})
            for row in range(16)]
    (tmp_path / "train.jsonl").write_text("\n".join(rows) + "\n")
    given = ("--task_name=custom", "--train_file=train.jsonl", "--dev_file=train.jsonl", "--prompt_columns=prompt",
             "--choice_columns=a,b", "--label_column=right", "--output_dir=run")
    assert "accuracy" in finished(command("run_multiple_choice.py", *given, *TRAINING, "--do_eval=true"))
    (tmp_path / "train.jsonl").write_text(rows[0] + "\n" + rows[1][:-4] + "\n")
    refused(command("run_multiple_choice.py", *given, *TRAINING), "train.jsonl, line 2")


@pytest.mark.parametrize("script", ["run_classifier.py", "run_squad.py", "run_ner.py", "run_multiple_choice.py",
                                    "extract_features.py", "run_search.py", "convert_checkpoint.py"])
def test_help_can_be_read(command, script):
    done = command(script, "--help", start=False)
    assert "--" in done.stdout and "Traceback" not in done.stdout + done.stderr
    assert all(len(line) < 120 for line in done.stdout.splitlines())

"""The demo's command on a small folder of text: every file is written, and the metrics are printed."""

import json
import random
import subprocess
import sys

import pytest

WORDS = ("the", "a", "river", "town", "old", "king", "walked", "slowly", "under", "bright", "stars", "and", "saw")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    generator = random.Random(1)
    for number in range(8):
        sentences = [" ".join(generator.choices(WORDS, k=9)).capitalize() + "." for _ in range(40)]
        (folder / f"{number}.txt").write_text("\n".join(" ".join(sentences[i : i + 4]) for i in range(0, 40, 4)))
    return folder


def demo(corpus, output, *flags):
    return subprocess.run([sys.executable, "-m", "demo.run", f"--corpus={corpus}", f"--output_dir={output}", *flags],
                          capture_output=True, text=True, timeout=300)


def test_demo_writes_every_file_and_prints_its_metrics(corpus, tmp_path):
    done = demo(corpus, tmp_path, "--num_train_steps=8", "--vocab_size=120")
    assert done.returncode == 0, done.stderr
    for name in ("corpus.txt", "vocab.txt", "train.tfrecord", "held_out.tfrecord", "learning_curve.png",
                 "run/final_model/bert_model.ckpt.index", "run/final_model/vocab.txt", "run/eval_results.txt",
                 "word_order/train.tsv", "word_order/run/final_model/task.json", "word_order/run/test_results.tsv"):
        assert (tmp_path / name).exists(), name
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert f"{summary['masked_lm_loss']:.2f} nats" in done.stdout
    assert f"{summary['unigram_entropy']:.2f} nats" in done.stdout
    assert f"{summary['word_order_accuracy']:.1%}" in done.stdout
    assert "____" in done.stdout
    # No sentence of the held-out documents is trained on.
    train, held_out = ((tmp_path / name).read_text().splitlines() for name in ("train.txt", "held_out.txt"))
    assert not set(filter(None, train)) & set(filter(None, held_out))


def test_folder_without_text_is_reported_in_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    done = demo(tmp_path / "empty", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1

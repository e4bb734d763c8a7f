"""The paper's two phases as one command, at a scale of seconds."""

import os
import random
import subprocess
import sys

from modeling.checkpoints import google
from modeling.config import BertConfig

LETTERS = "abcdefghij"


def test_two_phases_are_one_schedule(repository, tmp_path):
    generator = random.Random(0)
    documents = ["\n".join(" ".join(generator.choices(LETTERS, k=12)) for _ in range(20)) for _ in range(6)]
    (tmp_path / "corpus.txt").write_text("\n\n".join(documents) + "\n")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    BertConfig(len(vocabulary), 16, 1, 2, 32, max_position_embeddings=64).to_json_file(str(tmp_path / "config.json"))
    environment = {
        **os.environ, "PYTHON": sys.executable, "INPUT": f"{tmp_path}/corpus.txt", "VOCAB": f"{tmp_path}/vocab.txt",
        "CONFIG": f"{tmp_path}/config.json", "OUTPUT": f"{tmp_path}/out", "STEPS": "10", "WARMUP": "2", "BATCH": "4",
        "RATE": "1e-3", "SHORT": "32", "LONG": "64", "SHORT_PREDICTIONS": "5", "LONG_PREDICTIONS": "10", "DUPE": "2",
        "FILES": "2",
    }
    recipe = [str(repository / "recipes/pretrain_two_phases.sh"), "--precision=float32"]
    done = subprocess.run(recipe, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "step  9/9" in done.stdout or "step 9/9" in done.stdout
    assert "step 10/10" in done.stdout
    last = google.read(f"{tmp_path}/out/phase2/model.ckpt-10")
    assert int(last.get("global_step")) == 10
    assert last.shapes["bert/embeddings/position_embeddings"] == [64, 16]

"""The script itself, by the release's command."""

import json
import subprocess
import sys


def test_release_s_command_writes_a_line_for_a_line(repository, golden, tmp_path):
    model = golden / "model"
    size = json.loads((model / "bert_config.json").read_text())["vocab_size"]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "who", "was", "jim"]
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens[:size]))
    (tmp_path / "input.txt").write_text("Who was Jim ? ||| Jim was\n\n")
    done = subprocess.run(
        [sys.executable, str(repository / "extract_features.py"), f"--input_file={tmp_path}/input.txt",
         f"--output_file={tmp_path}/output.jsonl", f"--vocab_file={tmp_path}/vocab.txt",
         f"--bert_config_file={model}/bert_config.json", f"--init_checkpoint={model}/bert_model.ckpt",
         "--layers=-1,-2", "--max_seq_length=16", "--batch_size=8", "--do_lower_case=true",
         "--use_one_hot_embeddings=true"], capture_output=True, text=True, timeout=240, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--use_one_hot_embeddings is ignored" in done.stdout
    assert f"Wrote {tmp_path}/output.jsonl: 2 lines, 11 tokens, in " in done.stdout
    lines = [json.loads(line) for line in (tmp_path / "output.jsonl").read_text().splitlines()]
    assert [[each["token"] for each in line["features"]] for line in lines] == [
        ["[CLS]", "who", "was", "jim", "[UNK]", "[SEP]", "jim", "was", "[SEP]"], ["[CLS]", "[SEP]"]]
    assert [each["index"] for each in lines[0]["features"][0]["layers"]] == [-1, -2]


def test_layers_that_are_no_numbers_are_named(repository, tmp_path):
    done = subprocess.run(
        [sys.executable, str(repository / "extract_features.py"), "--input_file=x", "--output_file=y",
         "--init_checkpoint=z", "--layers=last"], capture_output=True, text=True, timeout=240, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        1, "error: --layers=last: not whole numbers with commas between, as -1,-2.\n")

"""The script itself, by the release's command."""

import json
import subprocess
import sys

import pytest

from tests.light_start import run_light


def test_the_release_s_command_writes_a_line_for_each_line(repository, golden, tmp_path):
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


@pytest.fixture
def light(repository, golden, tmp_path):
    """Runs the script with flags of a sound command, some of them changed; it must import no TensorFlow."""

    def run(**changes):
        (tmp_path / "input.txt").write_text("one\n")
        flags = {"input_file": tmp_path / "input.txt", "output_file": tmp_path / "output.npz",
                 "init_checkpoint": golden / "model" / "bert_model.ckpt", "layers": "-1", **changes}
        code, _, error = run_light(repository / "extract_features.py",
                                   *(f"--{name}={value}" for name, value in flags.items()), cwd=tmp_path)
        assert code == 1 and error.startswith("error: ") and error.count("\n") == 1
        return error.removeprefix("error: ").rstrip()

    return run


def test_help_needs_no_tensorflow(repository):
    code, output, error = run_light(repository / "extract_features.py", "--help")
    assert (code, error) == (0, "") and "--layers*  (default -1,-2,-3,-4)" in output


def test_layers_that_are_not_numbers_are_named(light):
    assert light(layers="last") == (
        "--layers=last: not whole numbers separated by commas, such as -1,-2. See --help.")


def test_mistakes_in_files_and_values_need_no_tensorflow(light, tmp_path):
    assert light(input_file="none.txt") == "none.txt: no such file (--input_file)."
    assert light(output_format="csv") == "--output_format=csv: not one of auto, jsonl, npz, arrow."
    assert light(output_file="input.txt/output.npz").startswith("input.txt/output.npz: cannot be written, ")
    assert light(init_checkpoint=tmp_path / "none").startswith(f"{tmp_path}/none")
    assert light(max_seq_length=1000).startswith("--max_seq_length=1000 exceeds the model's ")
    assert light(layers="0,99").startswith("--layers: there is no layer 99. The model has ")

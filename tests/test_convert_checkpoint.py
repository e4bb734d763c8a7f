"""The script as a command: a conversion, and one line for a mistake."""

import subprocess
import sys

import numpy as np
import pytest

from modeling.checkpoints import google, load


def command(repository, *flags, **options):
    return subprocess.run([sys.executable, str(repository / "convert_checkpoint.py"), *flags],
                          capture_output=True, text=True, timeout=240, **options)


def test_command_converts_from_another_folder_and_prints_a_report(repository, golden, tmp_path):
    done = command(repository, f"--input={golden}/model", "--output=bert", "--format=huggingface",
                   "--do_lower_case=false", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{golden}/model/bert_model.ckpt (google): 62 tensors written to bert (huggingface).\n"
    expected, found = google.read(f"{golden}/model/bert_model.ckpt"), load.find(str(tmp_path / "bert"))
    assert found.config().do_lower_case is False
    for name in expected.names:
        np.testing.assert_array_equal(found.reader.get(name), expected.get(name))


def test_wrong_input_is_one_line_and_nothing_is_written(repository, tmp_path):
    done = command(repository, f"--input={tmp_path}/bert_model.ckpt", f"--output={tmp_path}/out", "--format=google")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"error: {tmp_path}/bert_model.ckpt: no such checkpoint. Give a folder, or a path "
                           f"such as bert_model.ckpt, model.weights.h5 or model.safetensors.\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("flags", "code", "output"), [
    (["--help"], 0, "--format  (required; google|huggingface|keras)"),
    (["--input=x", "--format=google"], 1, "--output is required"),
    (["--input=x", "--output=y", "--format=onnx"], 1, "--format=onnx: not one of google, huggingface, keras."),
    (["--input=x", "--output=y", "--format=google"], 1, "x: no such checkpoint."),
])
def test_help_and_mistakes_need_no_tensorflow(repository, flags, code, output):
    program = f"""
import runpy, sys
sys.argv = ["convert_checkpoint.py", *{flags!r}]
try:
    runpy.run_path({str(repository / "convert_checkpoint.py")!r}, run_name="__main__")
except SystemExit as end:
    print("exit", end.code)
print([name for name in ("tensorflow", "keras", "h5py") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=repository)
    assert output in done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "[]" and ("exit 1" in done.stdout) == (code == 1)

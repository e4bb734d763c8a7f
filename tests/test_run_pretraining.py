"""The script as a command: it trains and evaluates; one line for a mistake, nothing half-written."""

import resource
import subprocess
import sys

import pytest

from tests.light_start import run_light

TRAINING = ("--do_train=true", "--max_seq_length=16", "--max_predictions_per_seq=3", "--train_batch_size=8",
            "--num_train_steps=4", "--num_warmup_steps=1", "--precision=float32")


def train(repository, config, records, output, *flags, **options):
    return subprocess.run(
        [sys.executable, str(repository / "run_pretraining.py"), f"--bert_config_file={config}",
         f"--input_file={records}", f"--output_dir={output}", *TRAINING, *flags],
        capture_output=True, text=True, timeout=240, **options)


def test_release_s_command_trains_and_evaluates_from_another_folder(repository, tiny_config, tiny_records, tmp_path):
    done = train(repository, tiny_config, tiny_records, tmp_path / "run", "--do_eval=true", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "step 1/4" in done.stdout and "step 4/4" in done.stdout and "evaluation at step 4" in done.stdout
    assert done.stdout.splitlines()[-1] == f"Done at step 4. Model: {tmp_path}/run/final_model"
    assert done.stderr == ""


def test_full_disk_is_one_line_and_leaves_no_checkpoint(repository, tiny_config, tiny_records, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = train(repository, tiny_config, tiny_records, tmp_path / "run", preexec_fn=limit)
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "model.ckpt-4: no space left on the disk" in line
    assert not list((tmp_path / "run").glob("model.ckpt-*"))


@pytest.mark.parametrize(("flags", "message"), [
    (["--num_train_step=4"], "--num_train_step: no such flag. Did you mean --num_train_steps? See --help."),
    (["--num_train_steps=4.5"], "--num_train_steps=4.5: not a whole number. See --help."),
    (["--learning_rate=nan"], "--learning_rate=nan: must be a finite number."),
    (["--random_seed=-1"], "--random_seed=-1: must be at least 0."),
    (["--precision=float8"], "--precision=float8: not one of auto, float32, bfloat16."),
    (["run"], "'run' is not a flag. Flags are written --name=value; see --help."),
    (["--do_train=false"], "Nothing to do: pass --do_train=true, --do_eval=true, or both."),
    (["--input_file=none*.tfrecord"],
     "none*.tfrecord: no such file, or a glob that matches none (--input_file)."),
    (["--bert_config_file="],
     "No model given. Pass --bert_config_file, or an --init_checkpoint whose folder has a configuration."),
    (["--keep_optimizer=true"], "--keep_optimizer needs --init_checkpoint, a checkpoint of a training run."),
])
def test_mistake_is_one_line_without_tensorflow(repository, tiny_config, tmp_path, flags, message):
    (tmp_path / "a.tfrecord").touch()
    given = (f"--bert_config_file={tiny_config}", "--input_file=a.tfrecord", "--output_dir=run", *TRAINING)
    assert run_light(repository / "run_pretraining.py", *given, *flags, cwd=tmp_path) == (1, "", f"error: {message}\n")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("flags", "message"), [
    (["--output_dir=run"], "--input_file is required: TFRecords to train on: files or globs, separated by commas."),
    (["--input_file=a.tfrecord"], "--output_dir is required: Folder for checkpoints, logs and results."),
])
def test_missing_flag_is_named(repository, tmp_path, flags, message):
    assert run_light(repository / "run_pretraining.py", *flags, cwd=tmp_path) == (1, "", f"error: {message}\n")

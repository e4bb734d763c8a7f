"""The script itself, as a command: help that can be read, one line for a mistake, nothing half-written."""

import resource
import subprocess
import sys


def command(repository, *flags, **options):
    return subprocess.run([sys.executable, str(repository / "run_pretraining.py"), *flags],
                          capture_output=True, text=True, timeout=240, **options)


def train(repository, config, records, output, *flags, **options):
    return command(repository, f"--bert_config_file={config}", f"--input_file={records}", f"--output_dir={output}",
                   "--do_train=true", "--max_seq_length=16", "--max_predictions_per_seq=3", "--train_batch_size=8",
                   "--num_train_steps=4", "--num_warmup_steps=1", "--precision=float32", *flags, **options)


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
    assert "model.ckpt-4: no room left on the disk" in line
    assert not list((tmp_path / "run").glob("model.ckpt-*"))


def test_missing_flags_and_files_are_named(repository, tiny_config, tmp_path):
    done = command(repository, "--do_train=true", f"--bert_config_file={tiny_config}")
    assert done.returncode != 0
    assert "--output_dir" in done.stderr and "Traceback" not in done.stderr
    done = train(repository, tiny_config, tmp_path / "none*.tfrecord", tmp_path / "run")
    assert (done.returncode, done.stderr) == (
        1, f"error: {tmp_path}/none*.tfrecord: no such file, or a glob that matches none (--input_file).\n")


def test_help_names_the_flags_of_the_release(repository):
    shown = command(repository, "--help").stdout
    for flag in ("bert_config_file", "input_file", "output_dir", "init_checkpoint", "max_seq_length", "do_train",
                 "do_eval", "train_batch_size", "eval_batch_size", "learning_rate", "num_train_steps", "use_tpu",
                 "num_warmup_steps", "save_checkpoints_steps", "iterations_per_loop", "max_eval_steps", "tpu_name"):
        assert f"--{flag}" in shown or f"--[no]{flag}" in shown, flag

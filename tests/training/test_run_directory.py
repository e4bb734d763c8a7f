"""A run's folder: claimed once, complete checkpoints only, the newest that can be read, old ones removed."""

import numpy as np
import pytest
import tensorflow as tf

from foundation.errors import BertError
from modeling.checkpoints import google, load
from modeling.config import PRESETS
from training.run_directory import RunDirectory, take_all


def variables(value=0.0):
    return {"a/kernel": tf.Variable(tf.fill([2, 3], value)), "a/kernel/adam_m": tf.Variable([value])}


def test_newest_checkpoint_is_restored_and_old_ones_are_removed(tmp_path):
    directory = RunDirectory(str(tmp_path), keep=2)
    for step in (10, 20, 100):
        directory.save(step, variables(float(step)))
    assert [step for step, _ in directory.checkpoints()] == [20, 100]
    state = variables()
    assert directory.restore(state) == 100
    np.testing.assert_array_equal(state["a/kernel"], np.full((2, 3), 100.0))
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-100")
    assert take_all(state, load.find(str(tmp_path))) == 100


def test_damaged_checkpoint_is_passed_over(tmp_path, capsys):
    directory = RunDirectory(str(tmp_path))
    for step in (1, 2):
        directory.save(step, variables(float(step)))
    data = tmp_path / "model.ckpt-2.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:10])
    state = variables()
    assert directory.restore(state) == 1
    assert float(state["a/kernel"][0, 0]) == 1.0
    assert "skipped a damaged checkpoint" in capsys.readouterr().out


def test_checkpoint_without_index_was_never_finished(tmp_path):
    directory = RunDirectory(str(tmp_path))
    directory.save(1, variables(1.0))
    directory.save(2, variables(2.0))
    (tmp_path / "model.ckpt-2.index").unlink()
    assert directory.restore(variables()) == 1


def test_what_a_kill_left_undone_is_done_at_the_next_start(tmp_path):
    directory = RunDirectory(str(tmp_path), keep=1)
    for step in (1, 2):
        directory.save(step, variables(float(step)))
        google.write(str(tmp_path / "model.ckpt-1"), variables())  # as killed before it was removed
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1"\n')
    directory.settle()
    assert [step for step, _ in directory.checkpoints()] == [2]
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-2")

    directory.finish(2, keep_checkpoints=False)
    google.write(str(tmp_path / "model.ckpt-2"), variables())  # as killed before it was removed
    with directory.held():
        assert {path.name for path in tmp_path.iterdir()} == {"run_finished.json"}


def test_checkpoints_of_a_finished_run_stay_where_they_were_kept(tmp_path):
    directory = RunDirectory(str(tmp_path))
    directory.save(2, variables())
    directory.finish(2, keep_checkpoints=True)
    with directory.held():
        assert [step for step, _ in directory.checkpoints()] == [2]


def test_folder_of_a_run_with_other_settings_is_refused(tmp_path):
    RunDirectory(str(tmp_path)).claim({"learning_rate": 1e-4, "random_seed": 1})
    RunDirectory(str(tmp_path)).claim({"random_seed": 1, "learning_rate": 1e-4})
    with pytest.raises(BertError, match=r"belongs to a run with other settings: learning_rate was 0.0001, is 0.001\."):
        RunDirectory(str(tmp_path)).claim({"learning_rate": 1e-3, "random_seed": 1})


def test_final_model_is_laid_out_as_a_release_without_slots(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n")
    weights = {"a/kernel": variables()["a/kernel"]}
    folder = RunDirectory(str(tmp_path / "run")).write_final(weights, PRESETS["tiny"], str(tmp_path / "vocab.txt"))
    assert google.read(f"{folder}/bert_model.ckpt").names == ["a/kernel"]
    assert load.find(str(tmp_path / "run")).path == f"{folder}/bert_model.ckpt"
    assert (tmp_path / "run/final_model/vocab.txt").read_text() == "[PAD]\n[UNK]\n"
    assert (tmp_path / "run/final_model/bert_config.json").exists()


def test_machines_after_the_first_write_nothing(tmp_path):
    directory = RunDirectory(str(tmp_path / "run"), writable=False)
    directory.claim({"a": 1})
    directory.save(1, variables())
    assert not (tmp_path / "run").exists()


def test_checkpoint_of_another_shape_is_named_with_both(tmp_path):
    RunDirectory(str(tmp_path)).save(1, variables())
    from training.run_directory import assign

    prefix = str(tmp_path / "model.ckpt-1")
    with pytest.raises(BertError, match=r"a/kernel is \[2, 3\], the model's is \[3, 3\]"):
        assign({"a/kernel": tf.Variable(tf.zeros([3, 3]))}, google.read(prefix), prefix)


def test_checkpoints_live_on_any_file_system_that_tensorflow_knows():
    directory = RunDirectory("ram://run", keep=1)
    directory.claim({"a": 1})
    directory.save(1, variables(1.0))
    directory.save(2, variables(2.0))
    state = variables()
    assert directory.restore(state) == 2
    assert [step for step, _ in directory.checkpoints()] == [2]

"""Pre-training as a whole: it learns, starts from checkpoints, evaluates, and refuses bad input in one line."""

import hashlib
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from foundation.errors import BertError
from foundation.flags import CommandLine
from modeling.checkpoints import google
from tests.conftest import temporary_files_in, tiny_arrays, write_records
from tests.training.pretraining_process import from_dict, settings
from training import metrics_log, pretraining
from training.settings import PretrainingSettings


def run(*args, **kwargs):
    return pretraining.run(from_dict(settings(*args, **kwargs)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Folder of a run of 6 steps of 20, evaluated, with what it was made from."""
    from tests.conftest import TINY_CONFIG

    folder = tmp_path_factory.mktemp("trained")
    (folder / "bert_config.json").write_text(json.dumps(TINY_CONFIG))
    (folder / "vocab.txt").write_text("[PAD]\n")
    write_records(folder / "tiny.tfrecord", tiny_arrays())
    with temporary_files_in(folder / "temporary"):
        run(folder / "bert_config.json", folder / "tiny.tfrecord", folder / "run", do_eval=True,
            num_train_steps=20, loop={"stop_at_step": 6})
    return folder


def test_run_writes_no_temporary_file(trained):
    assert list((trained / "temporary").iterdir()) == []


def test_training_learns_what_is_there_to_learn(tiny_config, tiny_records, tmp_path):
    run(tiny_config, tiny_records, tmp_path / "run", num_train_steps=150)
    losses = [line["masked_lm_loss"] for line in metrics_log.read(str(tmp_path / "run"))]
    assert losses[0] == pytest.approx(np.log(100), abs=0.2)
    assert losses[-1] < losses[0] - 1


def test_run_leaves_checkpoint_final_model_and_results(trained):
    results = dict(line.split(" = ") for line in (trained / "run/eval_results.txt").read_text().splitlines())
    assert sorted(results) == ["global_step", "loss", "masked_lm_accuracy", "masked_lm_loss", "masked_lm_perplexity",
                               "next_sentence_accuracy", "next_sentence_loss"]
    assert results["global_step"] == "6"
    assert float(results["masked_lm_perplexity"]) == pytest.approx(np.exp(float(results["masked_lm_loss"])))
    final = google.read(str(trained / "run/final_model/bert_model.ckpt"))
    assert not [name for name in final.names if "adam" in name or name == "global_step"]
    assert (trained / "run/final_model/vocab.txt").exists()
    assert list((trained / "run/train").glob("events*"))
    assert (trained / "run/learning_curve.png").read_bytes().startswith(b"\x89PNG")


def test_evaluation_counts_each_record_once_whatever_the_batch(trained, tmp_path):
    figures = []
    for batch in (5, 64):
        shutil.copytree(trained / "run", tmp_path / str(batch))
        report = run(trained / "bert_config.json", trained / "tiny.tfrecord", tmp_path / str(batch),
                     do_train=False, do_eval=True, eval_batch_size=batch)
        figures.append(report.evaluation)
    assert figures[0] == pytest.approx(figures[1], rel=1e-5)


def test_second_phase_takes_weights_slots_and_step_and_keeps_positions(trained, tmp_path):
    longer = write_records(tmp_path / "long.tfrecord", tiny_arrays(seq=32, predictions=5))
    report = run(trained / "bert_config.json", longer, tmp_path / "run", max_seq_length=32, max_predictions_per_seq=5,
                 init_checkpoint=str(trained / "run"), keep_optimizer=True,
                 num_train_steps=20, optimization={"learning_rate": 1e-5}, loop={"stop_at_step": 7})
    assert report.step == 7
    before, after = google.read(str(trained / "run/model.ckpt-6")), google.read(str(tmp_path / "run/model.ckpt-7"))
    name = "bert/embeddings/position_embeddings"
    assert after.shapes[name] == before.shapes[name] == [32, 16]
    np.testing.assert_allclose(after.get(name)[:16], before.get(name)[:16], atol=1e-3)
    assert np.abs(before.get(f"{name}/adam_v")).max() > 0
    [line] = metrics_log.read(str(tmp_path / "run"))
    assert line["learning_rate"] == pytest.approx(1e-5 * (1 - 6 / 20))


def test_weights_alone_start_a_new_schedule(trained, tmp_path, capsys):
    run(trained / "bert_config.json", trained / "tiny.tfrecord", tmp_path / "run",
        init_checkpoint=str(trained / "run/final_model"), num_train_steps=1, num_warmup_steps=1)
    assert "0 left at their initial values" in capsys.readouterr().out
    before = google.read(str(trained / "run/model.ckpt-6"))
    after = google.read(str(tmp_path / "run/model.ckpt-1"))
    # The rate of a first warm-up step is zero.
    np.testing.assert_array_equal(before.get("bert/pooler/dense/kernel"), after.get("bert/pooler/dense/kernel"))


def test_next_sentence_prediction_can_be_left_out(tiny_config, tiny_records, tmp_path):
    report = run(tiny_config, tiny_records, tmp_path / "run", next_sentence=False, do_eval=True,
                 num_train_steps=2)
    assert "next_sentence_loss" not in report.evaluation
    assert "cls/seq_relationship/output_weights" not in google.read(str(tmp_path / "run/model.ckpt-2")).names


def test_left_to_right_model_stays_one_when_read_back(tiny_config, tiny_records, tmp_path):
    def evaluate(config, folder, **flags):
        return run(config, tiny_records, folder, init_checkpoint=str(tmp_path / "run/final_model"), do_train=False,
                   do_eval=True, **flags).evaluation

    run(tiny_config, tiny_records, tmp_path / "run", causal=True, num_train_steps=4)
    read_back = evaluate(tmp_path / "run/final_model/bert_config.json", tmp_path / "a")
    assert read_back == evaluate(tiny_config, tmp_path / "b", causal=True)
    assert read_back != evaluate(tiny_config, tmp_path / "c")


def test_everything_can_live_on_another_file_system(tiny_config, tiny_records):
    for path in (tiny_config, tiny_records):
        tf.io.gfile.copy(str(path), f"ram://inputs/{path.name}", overwrite=True)
    report = run(f"ram://inputs/{tiny_config.name}", f"ram://inputs/{tiny_records.name}", "ram://output", do_eval=True,
                 num_train_steps=2)
    assert report.final_model == "ram://output/final_model"
    assert tf.io.gfile.exists("ram://output/eval_results.txt")
    assert tf.io.gfile.exists("ram://output/final_model/bert_model.ckpt.index")
    assert tf.io.gfile.glob("ram://output/train/events*")


def test_evaluation_runs_during_training(tiny_config, tiny_records, tmp_path):
    run(tiny_config, tiny_records, tmp_path / "run", num_train_steps=6,
        loop={"eval_every_steps": 2})
    lines = metrics_log.read(str(tmp_path / "run"))
    assert [line["step"] for line in lines if line["kind"] == "eval"] == [2, 4]


def test_lamb_trains(tiny_config, tiny_records, tmp_path):
    run(tiny_config, tiny_records, tmp_path / "run", num_train_steps=40, optimization={"optimizer": "lamb"})
    losses = [line["loss"] for line in metrics_log.read(str(tmp_path / "run"))]
    assert losses[-1] < losses[0]


def test_loss_that_is_not_finite_stops_with_step_and_batch(tiny_config, tiny_records, tmp_path):
    message = r"Step \d+: loss or gradient is not finite\. Its batch holds records \d+ to \d+"
    with pytest.raises(BertError, match=message):
        run(tiny_config, tiny_records, tmp_path / "run",
            num_train_steps=50, num_warmup_steps=0, optimization={"learning_rate": 1e30})


@pytest.mark.parametrize(("changes", "message"), [
    ({"max_seq_length": 20}, "input_ids has 16 values and --max_seq_length is 20"),
    ({"max_predictions_per_seq": 5}, "has 3 values and --max_predictions_per_seq is 5"),
    ({"train_batch_size": 7, "optimization": {"gradient_accumulation_steps": 2}},
     "--train_batch_size=7 does not divide into 1 replica of 2 micro-batches each"),
    ({"do_train": False}, "Nothing to do"),
    ({"do_train": False, "do_eval": True}, "has no checkpoint to evaluate"),
    ({"keep_optimizer": True}, "--keep_optimizer needs --init_checkpoint"),
    ({"init_checkpoint": "nowhere/bert_model.ckpt"}, "nowhere/bert_model.ckpt: no such checkpoint"),
    ({"eval_input_file": "nowhere.tfrecord"}, r"nowhere.tfrecord: no such file.*--eval_input_file"),
    ({"hardware": {"strategy": "multi_worker"}}, "needs TF_CONFIG"),
    ({"hardware": {"precision": "float8"}}, "--precision=float8: not one of"),
])
def test_mistake_is_told_in_one_line(tiny_config, tiny_records, tmp_path, changes, message):
    with pytest.raises(BertError, match=message) as raised:
        run(tiny_config, tiny_records, tmp_path / "run", **changes)
    assert "\n" not in str(raised.value)


def test_sequences_over_the_model_s_positions_are_refused(tiny_config, tmp_path):
    long = write_records(tmp_path / "long.tfrecord", tiny_arrays(seq=40))
    with pytest.raises(BertError, match="--max_seq_length=40 exceeds the model's 32 positions"):
        run(tiny_config, long, tmp_path / "run", max_seq_length=40)


def test_records_of_another_vocabulary_are_refused(tiny_config, tmp_path):
    records = write_records(tmp_path / "large.tfrecord", tiny_arrays(vocab_size=5000))
    message = r"large.tfrecord, record 0: token id \d+ does not fit the model's vocabulary of 100"
    with pytest.raises(BertError, match=message):
        run(tiny_config, records, tmp_path / "run")


def test_id_outside_the_vocabulary_far_into_the_records_is_told(tiny_config, tmp_path):
    arrays = tiny_arrays(rows=200)
    arrays["input_ids"][150, 1] = 4321
    records = write_records(tmp_path / "late.tfrecord", arrays)
    with pytest.raises(BertError, match=r"late\.tfrecord, record 150: token id 4321 does not fit .* vocabulary of 100"):
        run(tiny_config, records, tmp_path / "run", num_train_steps=50)


def test_record_damaged_in_the_middle_is_named(tiny_config, tmp_path):
    records = write_records(tmp_path / "damaged.tfrecord", tiny_arrays(rows=200))
    content = bytearray(records.read_bytes())
    content[len(content) // 2] ^= 0xFF
    records.write_bytes(content)
    with pytest.raises(BertError, match=r"damaged.tfrecord, record 100: truncated or corrupted"):
        run(tiny_config, records, tmp_path / "run", num_train_steps=50)


def write_manifest(folder, vocabulary, **settings):
    """A manifest of tiny.tfrecord, as create_pretraining_data writes it."""
    vocabulary = {"path": "vocab.txt", "size": 5, "sha256": "0" * 64, **vocabulary}
    (folder / "tiny.tfrecord.manifest.json").write_text(json.dumps(
        {"vocabulary": vocabulary, "settings": settings, "inputs": [], "counts": {}, "outputs": []}))


def test_manifest_of_the_records_says_which_vocabulary_and_which_task(tiny_config, tiny_records, tmp_path, capsys):
    vocabulary = tmp_path / "elsewhere.txt"
    vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
    recorded = {"path": str(vocabulary), "sha256": hashlib.sha256(vocabulary.read_bytes()).hexdigest()}
    write_manifest(tmp_path, recorded, next_sentence=False)
    with pytest.raises(BertError, match="was made without next sentences: pass --next_sentence=false"):
        run(tiny_config, tiny_records, tmp_path / "run")
    run(tiny_config, tiny_records, tmp_path / "run", next_sentence=False, num_train_steps=1)
    assert (tmp_path / "run/final_model/vocab.txt").read_text() == vocabulary.read_text()
    write_manifest(tmp_path, {**recorded, "size": 101}, next_sentence=False)
    with pytest.raises(BertError, match=r"was made with a vocabulary of 101; vocab_size in .* is 100"):
        run(tiny_config, tiny_records, tmp_path / "run", next_sentence=False)


@pytest.mark.parametrize("content", ["root:x:0:0\n", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nnew\n"])
def test_file_that_is_not_the_vocabulary_of_the_records_is_not_copied(tiny_config, tiny_records, tmp_path, capsys,
                                                                      content):
    (tmp_path / "other.txt").write_text(content)
    write_manifest(tmp_path, {"path": str(tmp_path / "other.txt")})
    run(tiny_config, tiny_records, tmp_path / "run", num_train_steps=1)
    assert "other.txt is not the vocabulary of the records any more" in capsys.readouterr().out
    assert not (tmp_path / "run/final_model/vocab.txt").exists()


def test_folder_of_another_run_is_refused(trained, tmp_path):
    shutil.copytree(trained / "run", tmp_path / "run")
    with pytest.raises(BertError, match="belongs to a run with other settings: random_seed was 12345, is 1"):
        run(trained / "bert_config.json", trained / "tiny.tfrecord", tmp_path / "run", num_train_steps=20,
            optimization={"random_seed": 1})


def test_settings_survive_their_way_from_flags():
    line = CommandLine([PretrainingSettings])
    line.parse(["run_pretraining.py", "--bert_config_file=c", "--input_file=i", "--output_dir=o", "--do_train=true",
                "--num_train_steps=7", "--optimizer=lamb", "--precision=float32", "--save_checkpoints_steps=3"])
    made = line.settings(PretrainingSettings)
    assert (made.optimization.optimizer, made.initial_model.bert_config_file) == ("lamb", "c")
    assert (made.do_train, made.num_train_steps, made.num_warmup_steps) == (True, 7, 10000)
    assert (made.hardware.precision, made.loop.save_checkpoints_steps, made.loop.output_dir) == ("float32", 3, "o")
    assert (made.train_batch_size, made.eval_batch_size, made.max_eval_steps) == (32, 8, 100)


def test_run_whose_checkpoints_are_all_damaged_is_not_started_over(trained, tmp_path):
    shutil.copytree(trained / "run", tmp_path / "run")
    for data in (tmp_path / "run").glob("model.ckpt-*.data*"):
        data.write_bytes(data.read_bytes()[:10])
    with pytest.raises(BertError, match="none of its checkpoints can be read"):
        run(trained / "bert_config.json", trained / "tiny.tfrecord", tmp_path / "run", num_train_steps=20)


def test_records_of_another_vocabulary_than_the_checkpoint_s_are_warned_of(
        tiny_release, tiny_config, tiny_records, tmp_path, capsys):
    beside = tmp_path / "tiny.tfrecord.manifest.json"
    for digest, warned in ((hashlib.sha256((tiny_release / "vocab.txt").read_bytes()).hexdigest(), False),
                           ("0" * 64, True)):
        beside.write_text(json.dumps({"vocabulary": {"path": "vocab.txt", "size": 95, "sha256": digest},
                                      "settings": {}, "inputs": [], "counts": {}, "outputs": []}))
        run(tiny_config, tiny_records, tmp_path / str(warned), init_checkpoint=str(tiny_release), do_train=False,
            do_eval=True)
        assert ("made with another vocabulary" in capsys.readouterr().out) == warned

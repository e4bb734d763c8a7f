"""Which checkpoint a path means, the files next to it, and what becomes of every name when it is loaded."""

import os
import pickle
import shutil

import numpy as np
import pytest
import tensorflow as tf

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import convert, google, load
from modeling.checkpoints.formats import FORMATS
from modeling.checkpoints.load import LoadOptions
from modeling.config import BertConfig
from modeling.models import ClassificationModel, PretrainingModel, named_variables

WORDS, POSITIONS = "bert/embeddings/word_embeddings", "bert/embeddings/position_embeddings"
QUERY, POOLER = "bert/encoder/layer_0/attention/self/query/kernel", "bert/pooler/dense/kernel"
WORD_BIAS, HEAD = "cls/predictions/output_bias", "output_weights"

SHAPES = {WORDS: (5, 2), POSITIONS: (3, 2), QUERY: (2, 2), POOLER: (2, 2), WORD_BIAS: (5,)}


def values(changes=None, without=()):
    """Arrays of SHAPES, no two numbers the same."""
    shapes = {name: shape for name, shape in {**SHAPES, **(changes or {})}.items() if name not in without}
    return {name: np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) + 100 * number
            for number, (name, shape) in enumerate(shapes.items())}


def variables(changes=None, without=()):
    """A model of SHAPES, all -1."""
    return {name: tf.Variable(-tf.ones(value.shape)) for name, value in values(changes, without).items()}


@pytest.fixture
def prefix(tmp_path):
    path = str(tmp_path / "bert_model.ckpt")
    google.write(path, values())
    return path


def saved(folder, step, age=0):
    """A training checkpoint, `age` seconds old; returns its prefix."""
    prefix = f"{folder}/model.ckpt-{step}"
    google.write(prefix, {**values(), f"{QUERY}/adam_m": np.zeros((2, 2)), "global_step": np.int64(step)})
    return aged(prefix, age)


def final(folder, age=0):
    prefix = f"{folder}/final_model/bert_model.ckpt"
    google.write(prefix, values())
    return aged(prefix, age)


def aged(prefix, age):
    written = os.stat(f"{prefix}.index").st_mtime - age
    os.utime(f"{prefix}.index", (written, written))
    return prefix


def refusal(call, *arguments, **options):
    """The one-line error message of a call."""
    with pytest.raises(BertError) as error:
        call(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


# What a path means.


@pytest.mark.parametrize("end", ["bert_model.ckpt", "bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001", "",
                                 "/"])
def test_prefix_its_files_and_its_folder_mean_the_same(prefix, tmp_path, end):
    found = load.find(f"{tmp_path}/{end}")
    assert (found.path, found.format.name, found.folder) == (prefix, "google", str(tmp_path))


def test_folder_with_several_checkpoints_is_refused_and_names_them(tmp_path):
    for name in ("b.ckpt", "a.ckpt"):
        google.write(str(tmp_path / name), values())
    assert refusal(load.find, str(tmp_path)) == (
        f"{tmp_path}: holds several checkpoints (a.ckpt, b.ckpt). Name one of them.")
    assert load.find(str(tmp_path / "a.ckpt")).path == str(tmp_path / "a.ckpt")


def test_leftovers_of_a_killed_writer_are_no_second_checkpoint(prefix, tmp_path):
    shutil.copy(f"{prefix}.index", f"{prefix}.tmp-12.index")
    assert load.find(str(tmp_path)).path == prefix


def test_unfinished_run_means_its_newest_checkpoint(tmp_path):
    for step in (900, 1000, 20):
        saved(tmp_path, step)
    assert load.find(str(tmp_path)).path == f"{tmp_path}/model.ckpt-1000"


def test_finished_run_means_its_final_model_until_training_continues(tmp_path):
    saved(tmp_path, 10, age=60)
    ended = final(tmp_path, age=30)
    assert load.find(str(tmp_path)).path == ended
    later = saved(tmp_path, 20)
    assert load.find(str(tmp_path)).path == later


def test_training_continues_from_a_finished_run_s_checkpoint_with_its_slots(tmp_path):
    newest = saved(tmp_path, 10, age=60)
    ended = final(tmp_path)
    found = load.find(str(tmp_path), training=True)
    assert found.path == newest and f"{QUERY}/adam_m" in found.reader.shapes
    for file in tmp_path.glob("model.ckpt-*"):
        file.unlink()
    assert load.find(str(tmp_path), training=True).path == ended


def test_unfinished_final_model_is_passed_over(tmp_path):
    newest = saved(tmp_path, 10)
    files.write_json(f"{tmp_path}/final_model/bert_config.json", {})
    assert load.find(str(tmp_path)).path == newest


@pytest.mark.parametrize(("kind", "file"), [("huggingface", "model.safetensors"), ("keras", "model.weights.h5")])
def test_other_formats_are_found_by_folder_and_by_file(golden, tmp_path, kind, file):
    convert.convert(str(golden / "model"), str(tmp_path), kind)
    for path in (str(tmp_path), f"{tmp_path}/", f"{tmp_path}/{file}"):
        found = load.find(path)
        assert (found.format.name, found.folder, len(found.reader.names)) == (kind, str(tmp_path), 62)
        assert found.config().hidden_size == 64


def test_everything_is_found_on_another_file_system(golden):
    source = "ram://find/release"
    files.make_folder(source)
    for name in ("bert_config.json", "bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"):
        tf.io.gfile.copy(str(golden / "model" / name), f"{source}/{name}", overwrite=True)
    expected = google.read(str(golden / "model/bert_model.ckpt"))
    for kind in FORMATS:
        convert.convert(source, f"ram://find/{kind}", kind)
        found = load.find(f"ram://find/{kind}")
        assert found.format.name == kind and found.config().vocab_size == 1000
        for name in expected.names:
            np.testing.assert_array_equal(found.reader.get(name), expected.get(name))


# Refusals are one line.


def test_missing_checkpoint_message_lists_the_accepted_paths(tmp_path):
    assert refusal(load.find, f"{tmp_path}/x.ckpt") == (
        f"{tmp_path}/x.ckpt: no such checkpoint. Give a folder, or a path such as bert_model.ckpt, model.weights.h5 or "
        "model.safetensors.")
    assert refusal(load.find, str(tmp_path)) == f"{tmp_path}: no checkpoint, the folder is empty."


def test_missing_index_is_named(prefix, tmp_path):
    os.unlink(f"{prefix}.index")
    assert refusal(load.find, prefix) == (
        f"{prefix}: found bert_model.ckpt.data-00000-of-00001, but bert_model.ckpt.index is missing. Copy it too.")
    assert refusal(load.find, str(tmp_path)) == (
        f"{tmp_path}: found bert_model.ckpt.data-00000-of-00001, but bert_model.ckpt.index is missing. Copy it too.")


def test_truncated_data_is_one_line(prefix):
    data = f"{prefix}.data-00000-of-00001"
    with open(data, "r+b") as file:
        file.truncate(30)
    assert f"{prefix}: the checkpoint is damaged or incomplete (" in refusal(load.load_into, variables(), prefix)


def test_truncated_index_is_one_line(prefix):
    with open(f"{prefix}.index", "r+b") as file:
        file.truncate(30)
    assert f"{prefix}: the checkpoint is damaged or incomplete (" in refusal(lambda: load.find(prefix).reader)


def test_missing_shard_of_two_is_one_line_that_names_it(tmp_path):
    parts = [f"{tmp_path}/part{number}" for number in range(2)]
    held = values()
    google.write(parts[0], {WORDS: held.pop(WORDS)})
    google.write(parts[1], held)
    whole = str(tmp_path / "bert_model.ckpt")
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=whole)
    model = variables()
    load.load_into(model, whole)
    np.testing.assert_array_equal(model[QUERY], values()[QUERY])
    os.unlink(f"{whole}.data-00001-of-00002")
    message = refusal(load.load_into, variables(), whole)
    assert "damaged or incomplete" in message and "bert_model.ckpt.data-00001-of-00002" in message


def test_shard_of_another_count_is_one_line_that_names_the_missing_file(prefix):
    os.rename(f"{prefix}.data-00000-of-00001", f"{prefix}.data-00000-of-00002")
    assert "bert_model.ckpt.data-00000-of-00001" in refusal(load.load_into, variables(), prefix)


def test_pickled_pytorch_is_refused_with_the_way_to_safetensors(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps({"a": 1}))
    for path in (str(tmp_path), str(tmp_path / "pytorch_model.bin")):
        message = refusal(load.find, path)
        assert "pytorch_model.bin: a pickled PyTorch file" in message
        assert "save_pretrained(folder, safe_serialization=True)" in message


def test_missing_configuration_names_the_flag(prefix):
    assert refusal(load.find(prefix).config) == (
        f"{prefix}: no bert_config.json or config.json in the same folder. Give --bert_config_file.")


# The files next to it.


@pytest.mark.parametrize(("folder", "casing"), [
    ("cased_L-12_H-768_A-12", False), ("multi_cased_L-12_H-768_A-12", False), ("wwm_cased_L-24_H-1024_A-16", False),
    ("uncased_L-12_H-768_A-12", True), ("wwm_uncased_L-24_H-1024_A-16", True), ("chinese_L-12_H-768_A-12", None)])
def test_casing_is_in_the_name_of_a_released_folder(tmp_path, folder, casing):
    google.write(f"{tmp_path}/{folder}/bert_model.ckpt", values())
    found = load.find(f"{tmp_path}/{folder}/bert_model.ckpt")
    assert found.lower_case() is casing
    BertConfig(vocab_size=5).to_json_file(f"{tmp_path}/{folder}/bert_config.json")
    assert found.lower_case() is casing and found.config().do_lower_case is casing


def test_configuration_has_the_last_word_on_casing(tmp_path):
    google.write(f"{tmp_path}/uncased_L-1_H-2_A-1/bert_model.ckpt", values())
    BertConfig(vocab_size=5, do_lower_case=False).to_json_file(f"{tmp_path}/uncased_L-1_H-2_A-1/bert_config.json")
    assert load.find(f"{tmp_path}/uncased_L-1_H-2_A-1").config().do_lower_case is False


def test_vocabulary_and_labels_in_the_same_folder_are_found(prefix, tmp_path):
    assert (load.find(prefix).vocab_file, load.find(prefix).labels()) == (None, None)
    files.write_text(f"{tmp_path}/vocab.txt", "[PAD]\n")
    files.write_json(f"{tmp_path}/task.json", {"labels": ["no", "yes"]})
    assert load.find(prefix).vocab_file == f"{tmp_path}/vocab.txt"
    assert load.find(prefix).labels() == ["no", "yes"]


# What becomes of every name.


def test_report_names_what_was_read_left_and_unused_and_counts_slots(tmp_path):
    held = {**values(without=[POOLER]), "other/kernel": np.zeros(3), f"{QUERY}/adam_m": np.zeros(1),
            f"{QUERY}/adam_v": np.zeros(1), "global_step": np.int64(3)}
    google.write(str(tmp_path / "x"), held)
    model = variables({HEAD: (3, 2)})
    report = load.load_into(model, str(tmp_path / "x"))
    assert report.read == (WORDS, POSITIONS, QUERY, WORD_BIAS)
    assert report.initial == (POOLER, HEAD)
    assert set(report.unused) == {"other/kernel", f"{QUERY}/adam_m", f"{QUERY}/adam_v", "global_step"}
    assert report.summary().splitlines() == [
        "4 tensors read, 2 left at their initial values, 4 unused.",
        f"  at initial values: {POOLER}, {HEAD}",
        "  unused: global_step, other/kernel",
        "  unused: 2 optimizer slots",
    ]
    for name in report.read:
        np.testing.assert_array_equal(model[name], held[name])
    np.testing.assert_array_equal(model[HEAD], -np.ones((3, 2)))


@pytest.mark.parametrize("slots", [["momentum"], ["adam_m", "adam_v", "ema"]])
def test_slots_of_any_optimizer_are_counted(tmp_path, slots):
    state = {f"{QUERY}/{slot}": np.zeros((2, 2)) for slot in slots}
    google.write(str(tmp_path / "x"), {**values(), **state, "global_step": np.int64(3)})
    lines = load.load_into(variables(), str(tmp_path / "x")).summary().splitlines()
    assert lines[1:] == ["  unused: global_step", f"  unused: {len(slots)} optimizer slots"]


def test_unknown_names_of_other_formats_are_unused(golden, tmp_path):
    from safetensors.numpy import load_file, save_file

    convert.convert(str(golden / "model"), str(tmp_path), "huggingface")
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({**tensors, "adapter.weight": np.zeros(2, np.float32)}, tmp_path / "model.safetensors")
    report = load.load_into(PretrainingModel(load.find(str(tmp_path)).config()), str(tmp_path))
    assert (len(report.read), report.initial, report.unused) == (62, (), ("adapter.weight",))


def test_missing_part_of_the_encoder_is_an_error_unless_allowed(tmp_path):
    google.write(str(tmp_path / "x"), values(without=[QUERY]))
    model = variables()
    assert refusal(load.load_into, model, str(tmp_path / "x")) == (
        f"{tmp_path}/x: lacks 1 of the encoder's tensors ({QUERY}). Pass --allow_missing_weights=true to leave them at "
        f"their initial values.")
    np.testing.assert_array_equal(model[WORDS], -np.ones((5, 2)))
    report = load.load_into(model, str(tmp_path / "x"), LoadOptions(allow_missing=True))
    assert report.initial == (QUERY,)
    np.testing.assert_array_equal(model[QUERY], -np.ones((2, 2)))
    np.testing.assert_array_equal(model[WORDS], values()[WORDS])


def test_missing_pooler_and_heads_are_accepted(tmp_path):
    google.write(str(tmp_path / "x"), values(without=[POOLER, WORD_BIAS]))
    assert load.load_into(variables(), str(tmp_path / "x")).initial == (POOLER, WORD_BIAS)


@pytest.mark.parametrize(("here", "advice"), [
    ({QUERY: (2, 4)}, " Use the checkpoint's own configuration."),
    ({QUERY: (2,)}, " Use the checkpoint's own configuration."),
    ({WORDS: (4, 2)}, " Use the checkpoint's own configuration."),
    ({WORDS: (6, 3)}, " Use the checkpoint's own configuration."),
    ({WORDS: (6, 2)}, " Pass --extend_vocabulary=true to leave the additional words at their initial values."),
    ({POSITIONS: (4, 2)}, " Pass --extend_positions=copy or initialize to fill the rest."),
    ({POSITIONS: (2, 2)}, " Use the checkpoint's own configuration."),
    ({WORD_BIAS: ()}, ""),
])
def test_other_shape_names_both_and_changes_nothing(prefix, here, advice):
    [(name, shape)] = here.items()
    model = variables(here)
    assert refusal(load.load_into, model, prefix) == (
        f"{prefix}: {name} has the shape {list(SHAPES[name])} in the checkpoint and {list(shape)} in the model."
        f"{advice}")
    assert all((variable.numpy() == -1).all() for variable in model.values())


def test_scalar_in_the_file_for_a_vector_is_another_shape(tmp_path):
    google.write(str(tmp_path / "x"), {**values(), WORD_BIAS: np.float32(1)})
    message = refusal(load.load_into, variables(), str(tmp_path / "x"))
    assert "has the shape [] in the checkpoint and [5] in the model." in message


def test_extending_permits_only_more_rows(prefix):
    options = LoadOptions(extend_positions="copy", extend_vocabulary=True)
    for here in ({QUERY: (3, 2)}, {WORDS: (4, 2)}, {POSITIONS: (4, 3)}):
        assert "has the shape" in refusal(load.load_into, variables(here), prefix, options)


def test_copied_positions_repeat_the_checkpoint_s_from_the_first(prefix):
    model = variables({POSITIONS: (8, 2)})
    report = load.load_into(model, prefix, LoadOptions(extend_positions="copy"))
    there = values()[POSITIONS]
    np.testing.assert_array_equal(model[POSITIONS], np.stack([there[row % 3] for row in range(8)]))
    assert report.extended == (POSITIONS,) and report.summary().endswith(f"\n  extended: {POSITIONS}")


def test_initialized_positions_keep_the_model_s_rows(prefix):
    model = variables({POSITIONS: (8, 2)})
    load.load_into(model, prefix, LoadOptions(extend_positions="initialize"))
    np.testing.assert_array_equal(model[POSITIONS], np.concatenate([values()[POSITIONS], -np.ones((5, 2))]))


def test_additional_words_keep_the_model_s_rows_in_embeddings_and_bias(prefix):
    model = variables({WORDS: (7, 2), WORD_BIAS: (7,)})
    report = load.load_into(model, prefix, LoadOptions(extend_vocabulary=True))
    np.testing.assert_array_equal(model[WORDS], np.concatenate([values()[WORDS], -np.ones((2, 2))]))
    np.testing.assert_array_equal(model[WORD_BIAS], np.concatenate([values()[WORD_BIAS], -np.ones(2)]))
    assert report.extended == (WORDS, WORD_BIAS)


def test_extended_model_computes_as_before_within_the_checkpoint_s_sizes(golden, golden_config, golden_features,
                                                                         load_golden):
    longer = PretrainingModel(golden_config.replace(max_position_embeddings=100, vocab_size=1010))
    load.load_into(longer, str(golden / "model"), LoadOptions(extend_positions="initialize", extend_vocabulary=True))
    expected, found = load_golden()(golden_features), longer(golden_features)
    np.testing.assert_allclose(found["next_sentence_logits"], expected["next_sentence_logits"], atol=1e-5)
    np.testing.assert_allclose(found["masked_lm_logits"][..., :1000], expected["masked_lm_logits"], atol=1e-4)


def test_new_head_leaves_another_task_s_head_unused_although_it_fits(tmp_path, golden_config):
    trained = ClassificationModel(golden_config, 2)
    google.write(str(tmp_path / "x"), named_variables(trained))
    model = ClassificationModel(golden_config, 2)
    before = model.head.output_weights.numpy()
    report = load.load_into(model, str(tmp_path / "x"), LoadOptions(new_head=True))
    assert report.unused == report.initial[::-1] == ("output_bias", "output_weights")
    np.testing.assert_array_equal(model.head.output_weights.numpy(), before)
    np.testing.assert_array_equal(model.bert.pooler.dense.kernel, trained.bert.pooler.dense.kernel)
    load.load_into(model, str(tmp_path / "x"))
    np.testing.assert_array_equal(model.head.output_weights, trained.head.output_weights)


def test_frozen_encoder_is_loaded_too(golden, golden_config):
    model = ClassificationModel(golden_config, 2)
    model.bert.trainable = False
    report = load.load_into(model, str(golden / "model"))
    assert len(report.read) == 55 and set(report.initial) == {"output_weights", "output_bias"}


def test_head_of_another_number_of_classes_names_both_shapes(tmp_path):
    google.write(str(tmp_path / "x"), values({HEAD: (3, 2)}))
    assert refusal(load.load_into, variables({HEAD: (2, 2)}), str(tmp_path / "x")) == (
        f"{tmp_path}/x: {HEAD} has the shape [3, 2] in the checkpoint and [2, 2] in the model.")


def test_checkpoint_of_another_model_is_refused_with_names_it_holds(tmp_path):
    google.write(str(tmp_path / "x"), {f"resnet/{n}": np.zeros(1) for n in range(9)})
    assert refusal(load.load_into, variables(), str(tmp_path / "x"), LoadOptions(allow_missing=True)) == (
        f"{tmp_path}/x: holds none of the model's variables (it holds resnet/0, resnet/1, resnet/2 …).")

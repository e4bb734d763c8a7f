"""Any format into any other: every tensor bit for bit, with configuration and vocabulary."""

import filecmp
import itertools
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import convert, google, huggingface_names, keras_weights, load
from modeling.checkpoints.formats import FORMATS
from modeling.config import BertConfig
from modeling.models import (
    ClassificationModel,
    MultipleChoiceModel,
    QuestionAnsweringModel,
    TokenClassificationModel,
    named_variables,
)

CONFIG = BertConfig(vocab_size=11, hidden_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=6,
                    max_position_embeddings=5, type_vocab_size=3)
PAIRS = list(itertools.product(FORMATS, repeat=2))
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "É", "##b"]


def tensors(path):
    """A checkpoint's arrays by the release's names."""
    reader = load.find(str(path)).reader
    assert not reader.unknown
    return {name: reader.get(name) for name in reader.names}


def assert_bit_for_bit(found, expected, without=()):
    assert set(found) == set(expected) - set(without)
    for name in found:
        assert found[name].dtype == expected[name].dtype and found[name].shape == expected[name].shape
        assert np.ascontiguousarray(found[name]).tobytes() == np.ascontiguousarray(expected[name]).tobytes(), name


def release(folder, config=CONFIG, without=(), more=None, tokens=TOKENS):
    """A release's folder with random weights of a pre-trained model."""
    values = named_variables(ClassificationModel(config, 2))
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(values[name].shape).astype(np.float32)
              for name in values if name.startswith("bert/") and name not in without}
    google.write(f"{folder}/bert_model.ckpt", {**arrays, **(more or {})})
    config.to_json_file(f"{folder}/bert_config.json")
    if tokens:
        files.write_text(f"{folder}/vocab.txt", "".join(f"{token}\n" for token in tokens))
    return str(folder)


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_recorded_model_goes_from_any_format_to_any_bit_for_bit(golden, in_every_format, tmp_path, before, after):
    done = convert.convert(str(in_every_format / before), str(tmp_path / after), after)
    assert (done.source_format, done.format, done.written, done.left_out) == (before, after, 62, ())
    assert load.find(str(tmp_path / after)).format.name == after
    assert_bit_for_bit(tensors(tmp_path / after), tensors(golden / "model"))


def test_hugging_face_file_survives_the_round_trip_byte_for_byte(in_every_format, tmp_path):
    convert.convert(str(in_every_format / "huggingface"), str(tmp_path / "google"), "google")
    convert.convert(str(tmp_path / "google"), str(tmp_path / "back"), "huggingface")
    for name in ("model.safetensors", "config.json", "tokenizer_config.json"):
        assert filecmp.cmp(in_every_format / "huggingface" / name, tmp_path / "back" / name, shallow=False), name


def test_release_s_files_survive_the_round_trip(golden, in_every_format, tmp_path):
    for kind in ("huggingface", "keras"):
        convert.convert(str(in_every_format / kind), str(tmp_path / kind), "google")
        for name in ("bert_config.json", "bert_model.ckpt.data-00000-of-00001"):
            [here, there] = (tmp_path / kind / name, golden / "model" / name)
            same = json.loads(here.read_text()) == json.loads(there.read_text()) if name.endswith("json") else \
                filecmp.cmp(here, there, shallow=False)
            assert same, (kind, name)


HEADS = {
    "classification": (lambda: ClassificationModel(CONFIG, 3), "output_weights", "BertForSequenceClassification"),
    "answers": (lambda: QuestionAnsweringModel(CONFIG), "cls/squad/output_weights", "BertForQuestionAnswering"),
    "tokens": (lambda: TokenClassificationModel(CONFIG, 5), "cls/ner/output_weights", "BertForTokenClassification"),
    "choice": (lambda: MultipleChoiceModel(CONFIG), "cls/choice/output_weights", "BertForMultipleChoice"),
}


@pytest.mark.parametrize("task", HEADS)
def test_task_heads_go_from_any_format_to_any_bit_for_bit(tmp_path, task):
    make, head, architecture = HEADS[task]
    google.write(str(tmp_path / "fine_tuned/bert_model.ckpt"), named_variables(make()))
    CONFIG.to_json_file(str(tmp_path / "fine_tuned/bert_config.json"))
    expected = tensors(tmp_path / "fine_tuned")
    # Hugging Face's classes for answers and tokens have no pooler.
    pooler = [name for name in expected if "/pooler/" in name] if task in ("answers", "tokens") else []
    for before, after in PAIRS:
        between = tmp_path / f"to_{after}" / before
        first = convert.convert(str(tmp_path / "fine_tuned"), str(between), before)
        done = convert.convert(str(between), str(tmp_path / f"{before}-{after}"), after)
        lost = pooler if "huggingface" in (before, after) else []
        assert sorted((*first.left_out, *done.left_out)) == lost
        assert_bit_for_bit(tensors(tmp_path / f"{before}-{after}"), expected, lost)
    config = json.loads((tmp_path / "to_google/huggingface/config.json").read_text())
    assert config["architectures"] == [architecture] and head in expected


@pytest.mark.parametrize(("before", "after"), PAIRS)
@pytest.mark.parametrize("lower_case", [True, False])
def test_gelu_epsilon_segments_and_casing_survive_every_conversion(tmp_path, before, after, lower_case):
    for act in ("gelu", "gelu_erf") if lower_case else ("relu",):
        config = CONFIG.replace(hidden_act=act, layer_norm_eps=1e-7, do_lower_case=lower_case, initializer_range=0.1)
        source = release(tmp_path / act, config)
        convert.convert(source, str(tmp_path / f"{act}-{before}"), before)
        convert.convert(str(tmp_path / f"{act}-{before}"), str(tmp_path / f"{act}-{before}-{after}"), after)
        assert load.find(str(tmp_path / f"{act}-{before}-{after}")).config() == config
        vocabulary = files.read_text(str(tmp_path / f"{act}-{before}-{after}/vocab.txt"))
        assert vocabulary == "".join(f"{token}\n" for token in TOKENS)


def test_gelu_is_written_under_hugging_face_s_name(tmp_path):
    for act, theirs in (("gelu", "gelu_new"), ("gelu_erf", "gelu")):
        source = release(tmp_path / "from" / act, CONFIG.replace(hidden_act=act))
        convert.convert(source, str(tmp_path / "to" / theirs), "huggingface")
        assert json.loads((tmp_path / "to" / theirs / "config.json").read_text())["hidden_act"] == theirs


def test_folder_that_is_not_empty_is_not_written_to(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").write_text("mine")
    with pytest.raises(BertError, match="full: exists and is not empty"):
        convert.convert(release(tmp_path / "x", CONFIG), str(tmp_path / "full"), "google")


@pytest.mark.parametrize("target", FORMATS)
def test_complete_conversion_is_recognised(tmp_path, target):
    """The state that a process leaves that is killed after its last file operation."""
    (tmp_path / "release").mkdir()
    source, folder = release(tmp_path / "release"), tmp_path / "converted"
    first = convert.convert(source, str(folder), target)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    again = convert.convert(source, f"{folder}/", target)
    assert (again.existed, again.written, again.left_out) == (True, first.written, first.left_out)
    assert f"{first.written} tensors are already in {folder}" in again.summary()
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


@pytest.mark.parametrize("change", ["weights", "vocabulary", "configuration", "format"])
def test_another_conversion_in_the_folder_is_refused(tmp_path, change):
    (tmp_path / "release").mkdir()
    source, folder = release(tmp_path / "release"), str(tmp_path / "converted")
    convert.convert(source, folder, "huggingface")
    if change == "weights":
        google.write(f"{source}/bert_model.ckpt", {
            name: values + (name == "bert/pooler/dense/bias") for name, values in tensors(source).items()})
    elif change == "vocabulary":
        files.write_text(f"{source}/vocab.txt", "".join(f"{token}\n" for token in reversed(TOKENS)))
    elif change == "configuration":
        CONFIG.replace(hidden_act="relu").to_json_file(f"{source}/bert_config.json")
    with pytest.raises(BertError, match="converted: exists and is not empty"):
        convert.convert(source, folder, "keras" if change == "format" else "huggingface")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("kib", [1, 3000])
def test_full_disk_is_one_line_and_leaves_nothing(tmp_path, kind, kib):
    big = CONFIG.replace(vocab_size=2**18)  # 4 MiB of word embeddings
    source = release(tmp_path / "x", big)
    command = (f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({kib << 10},) * 2); "
               "import convert_checkpoint; convert_checkpoint.cli()")
    flags = [f"--input={source}", f"--output={tmp_path}/y", f"--format={kind}"]
    done = subprocess.run([sys.executable, "-c", command, *flags], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.endswith(": no space left on the disk. Free some and run the same command again.\n")
    assert not (tmp_path / "y").exists()
    convert.convert(source, str(tmp_path / "y"), kind)


KILLED = """
import os, sys
from foundation import files
from modeling.checkpoints import convert

left = int(sys.argv[1])

def counted(function):
    def call(*arguments):
        global left
        left -= 1
        if not left:
            os._exit(9)
        return function(*arguments)
    return call

for name in ("open_file", "rename", "remove", "sync", "make_folder", "write_bytes"):
    setattr(files, name, counted(getattr(files, name)))
convert.convert(*sys.argv[2:])
"""


def test_conversion_killed_at_any_file_operation_is_made_by_the_same_command(tmp_path):
    first = str(tmp_path / "huggingface")
    convert.convert(release(tmp_path / "x"), first, "huggingface")
    convert.convert(first, str(tmp_path / "whole"), "keras")
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert names == ["bert_config.json", "model.weights.h5", "vocab.txt"]
    killed, cut = 0, str(tmp_path / "cut")
    while True:
        killed += 1
        arguments = [str(killed), first, cut, "keras"]
        done = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True, text=True)
        assert done.returncode in (0, 9), done.stderr
        if done.returncode == 0:
            break
        left = files.names_in(cut) if files.exists(cut) else []
        if "unfinished" in left:
            with pytest.raises(BertError, match=r"cut: (its conversion was cut short|no checkpoint in this folder)"):
                load.find(cut)
        assert convert.convert(first, cut, "keras").existed == (left == names)
        assert sorted(files.names_in(cut)) == names
        assert_bit_for_bit(tensors(cut), tensors(first))
        shutil.rmtree(cut)
    assert killed > 15 and sorted(files.names_in(cut)) == names


def test_left_to_right_model_stays_left_to_right(tmp_path):
    source = release(tmp_path / "x", CONFIG.replace(causal=True))
    convert.convert(source, str(tmp_path / "there"), "huggingface")
    convert.convert(str(tmp_path / "there"), str(tmp_path / "back"), "google")
    assert load.find(str(tmp_path / "back")).config().causal is True


def test_casing_in_a_released_folder_s_name_is_written_to_the_configuration(tmp_path):
    source = release(tmp_path / "cased_L-2_H-4_A-2")
    for kind in FORMATS:
        convert.convert(source, str(tmp_path / kind), kind)
        assert load.find(str(tmp_path / kind)).config().do_lower_case is False
    written = json.loads((tmp_path / "huggingface/tokenizer_config.json").read_text())
    assert written["do_lower_case"] is False


def test_given_casing_takes_precedence_over_the_source_s(tmp_path):
    source = release(tmp_path / "x", CONFIG.replace(do_lower_case=True))
    convert.convert(source, str(tmp_path / "y"), "keras", do_lower_case=False)
    assert load.find(str(tmp_path / "y")).config().do_lower_case is False


def test_report_says_that_the_release_does_not_know_the_erf_form(tmp_path):
    for act in ("gelu", "gelu_erf"):
        source = release(tmp_path / act, CONFIG.replace(hidden_act=act))
        reports = {kind: convert.convert(source, str(tmp_path / act / kind), kind).summary() for kind in FORMATS}
        told = [kind for kind, report in reports.items() if "the original release does not" in report]
        assert told == (["google"] if act == "gelu_erf" else [])


def test_configuration_and_vocabulary_can_be_elsewhere(tmp_path):
    source = release(tmp_path / "x", tokens=None)
    shutil.move(f"{source}/bert_config.json", tmp_path / "c.json")
    (tmp_path / "v.txt").write_bytes("".join(f"{token}\r\n" for token in TOKENS).encode())
    convert.convert(source, str(tmp_path / "y"), "huggingface", str(tmp_path / "c.json"), str(tmp_path / "v.txt"))
    assert load.find(str(tmp_path / "y")).config() == CONFIG
    assert (tmp_path / "y/vocab.txt").read_text().split() == TOKENS


def test_vocabulary_of_a_tokenizer_file_becomes_vocab_txt(tmp_path):
    convert.convert(release(tmp_path / "x", tokens=None), str(tmp_path / "y"), "huggingface")
    tokenizer = {"model": {"type": "WordPiece", "vocab": {token: number for number, token in enumerate(TOKENS)}},
                 "normalizer": {"type": "BertNormalizer", "lowercase": False}}
    (tmp_path / "y/tokenizer.json").write_text(json.dumps(tokenizer))
    convert.convert(str(tmp_path / "y"), str(tmp_path / "z"), "google")
    assert (tmp_path / "z/vocab.txt").read_text().split() == TOKENS
    assert load.find(str(tmp_path / "z")).config().do_lower_case is False


def test_names_of_classes_go_to_hugging_face_and_back(tmp_path):
    source = release(tmp_path / "x", more={"output_weights": np.ones((2, 4), np.float32),
                                           "output_bias": np.ones(2, np.float32)})
    files.write_json(f"{source}/task.json", {"labels": ["no", "yes"], "max_seq_length": 8})
    convert.convert(source, str(tmp_path / "there"), "huggingface")
    config = json.loads((tmp_path / "there/config.json").read_text())
    assert config["id2label"] == {"0": "no", "1": "yes"}
    for kind in ("google", "keras"):
        convert.convert(str(tmp_path / "there"), str(tmp_path / kind), kind)
        assert load.find(str(tmp_path / kind)).labels() == ["no", "yes"]
    convert.convert(source, str(tmp_path / "same"), "keras")
    assert json.loads((tmp_path / "same/task.json").read_text()) == {"labels": ["no", "yes"], "max_seq_length": 8}


@pytest.mark.parametrize("kind", FORMATS)
def test_training_checkpoint_is_converted_without_slots_which_are_reported(tmp_path, kind):
    slot = "bert/pooler/dense/bias/adam_m"
    source = release(tmp_path / "x", more={slot: np.zeros(4, np.float32), "global_step": np.int64(3)})
    done = convert.convert(source, str(tmp_path / kind), kind)
    assert (set(done.left_out), done.written) == ({slot, "global_step"}, 39)
    assert done.summary().splitlines() == [
        f"{source}/bert_model.ckpt (google): 39 tensors written to {tmp_path}/{kind} ({kind}).",
        "  left out: global_step",
        "  left out: 1 optimizer slots",
    ]
    assert slot not in tensors(tmp_path / kind)


def test_encoder_alone_is_converted_and_comes_back(tmp_path):
    source = release(tmp_path / "x", without=("bert/pooler/dense/kernel", "bert/pooler/dense/bias"))
    expected = tensors(source)
    for kind in FORMATS:
        convert.convert(source, str(tmp_path / kind), kind)
        assert_bit_for_bit(tensors(tmp_path / kind), expected)


def test_names_in_the_documentation_equal_those_that_are_written(repository):
    table = (repository / "docs/checkpoints.md").read_text().split("\n## Names\n")[1]
    rows = re.findall(r"^\| `(\S+)` \| `(\S+)`( ᵀ)? \| `(\S+)` \|$", table, re.MULTILINE)
    documented = {(ours.replace("<i>", layer), theirs.replace("<i>", layer), bool(transposed),
             keras.replace("_<i>", "" if layer == "0" else f"_{layer}"))
            for ours, theirs, transposed, keras in rows for layer in "01"}
    expected = {(pair.ours, pair.theirs, pair.transposed, keras_weights.dataset_of(pair.ours))
                for architecture in huggingface_names.architectures()
                for pair in huggingface_names.pairs(range(2), architecture)}
    assert documented == expected


def test_unknown_format_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(BertError, match=r"--format=onnx: not one of google, huggingface, keras\."):
        convert.convert(str(tmp_path / "nowhere"), str(tmp_path / "y"), "onnx")


def test_source_without_configuration_names_the_flag(tmp_path):
    google.write(str(tmp_path / "x/bert_model.ckpt"), {"bert/x": np.ones(1)})
    with pytest.raises(BertError, match=r"no bert_config\.json or config\.json in the same folder\. Give --bert_co"):
        convert.convert(str(tmp_path / "x"), str(tmp_path / "y"), "google")
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize("in_folder", [True, False])
def test_vocabulary_of_another_model_is_refused(tmp_path, in_folder):
    longer = [f"w{number}" for number in range(12)]
    source = release(tmp_path / "x", tokens=longer if in_folder else None)
    files.write_text(str(tmp_path / "v.txt"), "\n".join(longer))
    with pytest.raises(BertError, match=r"the vocabulary has 12 word pieces, the configuration 11 \(vocab_size\)"):
        convert.convert(source, str(tmp_path / "y"), "google",
                        vocab_file=None if in_folder else str(tmp_path / "v.txt"))
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize(("changes", "message"), [
    ({"max_position_embeddings": 9}, r"position_embeddings has the shape \[5, 4\], by the configuration it is \[9, "),
    ({"type_vocab_size": 2}, r"token_type_embeddings has the shape \[3, 4\], by the configuration it is \[2, 4\]"),
    ({"num_hidden_layers": 1}, r"has 2 layers, by the configuration 1 \(num_hidden_layers\)"),
])
def test_configuration_of_another_model_is_refused_for_every_format(tmp_path, changes, message):
    source = release(tmp_path / "x")
    CONFIG.replace(**changes).to_json_file(str(tmp_path / "c.json"))
    for kind in FORMATS:
        with pytest.raises(BertError, match=message):
            convert.convert(source, str(tmp_path / "y"), kind, str(tmp_path / "c.json"))
    assert not (tmp_path / "y").exists()

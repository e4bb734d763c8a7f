"""What flags and checkpoint name together: configuration, casing, vocabulary and weights."""

import json

import numpy as np
import pytest

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import convert, google
from modeling.config import BertConfig
from modeling.models import ClassificationModel, named_variables
from training import initial_model
from training.run_directory import RunDirectory
from training.settings import InitialModelSettings

CONFIG = BertConfig(vocab_size=7, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=6,
                    max_position_embeddings=5)


def released(folder, config=CONFIG, vocabulary=True):
    """A release's folder of a fine-tuned classifier; returns the prefix."""
    google.write(f"{folder}/bert_model.ckpt", named_variables(ClassificationModel(config, 2)))
    config.to_json_file(f"{folder}/bert_config.json")
    if vocabulary:
        files.write_text(f"{folder}/vocab.txt", "[PAD]\n")
    return f"{folder}/bert_model.ckpt"


def find(**settings):
    return initial_model.find(InitialModelSettings(**settings))


def refusal(*arguments, **settings):
    with pytest.raises(BertError) as error:
        initial_model.find(InitialModelSettings(**settings), *arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_checkpoint_brings_its_configuration_and_vocabulary(tmp_path):
    initial = find(init_checkpoint=released(tmp_path))
    assert (initial.config, initial.config_file) == (CONFIG, f"{tmp_path}/bert_config.json")
    assert initial.vocab_file == f"{tmp_path}/vocab.txt"
    assert initial.do_lower_case is True


def test_hugging_face_folder_brings_them_too(tmp_path):
    released(tmp_path / "x")
    convert.convert(str(tmp_path / "x"), str(tmp_path / "y"), "huggingface", do_lower_case=False)
    initial = find(init_checkpoint=str(tmp_path / "y"))
    assert initial.config == CONFIG.replace(do_lower_case=False) and initial.do_lower_case is False
    assert (initial.config_file, initial.vocab_file) == (f"{tmp_path}/y/config.json", f"{tmp_path}/y/vocab.txt")


def test_configuration_and_vocabulary_of_the_flags_win(tmp_path):
    other = str(tmp_path / "other.json")
    CONFIG.replace(hidden_act="gelu_erf").to_json_file(other)
    files.write_text(str(tmp_path / "mine.txt"), "[PAD]\n")
    initial = find(bert_config_file=other, init_checkpoint=released(tmp_path / "x"),
                        vocab_file=str(tmp_path / "mine.txt"))
    assert (initial.config.hidden_act, initial.config_file) == ("gelu_erf", other)
    assert initial.vocab_file == str(tmp_path / "mine.txt")


def test_vocabulary_is_found_next_to_the_configuration_without_a_checkpoint(tmp_path):
    released(tmp_path)
    initial = find(bert_config_file=str(tmp_path / "bert_config.json"))
    assert initial.checkpoint is None and initial.vocab_file == f"{tmp_path}/vocab.txt"


def test_no_vocabulary_anywhere_is_none_and_a_wrong_one_names_its_flag(tmp_path):
    prefix = released(tmp_path, vocabulary=False)
    assert find(init_checkpoint=prefix).vocab_file is None
    with pytest.raises(BertError, match=r"v\.txt: no such file, or a glob that matches none \(--vocab_file\)"):
        find(init_checkpoint=prefix, vocab_file=f"{tmp_path}/v.txt").vocab_file  # noqa: B018


def test_nothing_given_says_what_is_needed():
    assert refusal() == (
        "No model given. Pass --bert_config_file, or an --init_checkpoint whose folder has a configuration.")


def test_checkpoint_without_configuration_names_the_flag(tmp_path):
    google.write(f"{tmp_path}/x", {"bert/a": np.ones(1)})
    assert refusal(init_checkpoint=f"{tmp_path}/x") == (
        f"{tmp_path}/x: no bert_config.json or config.json in the same folder. Give --bert_config_file.")


@pytest.mark.parametrize(("said", "word"), [(False, "cased"), (True, "uncased")])
def test_casing_against_the_configuration_s_is_refused(tmp_path, said, word):
    prefix = released(tmp_path, CONFIG.replace(do_lower_case=said))
    asked = str(not said).lower()
    assert refusal(init_checkpoint=prefix, do_lower_case=not said) == (
        f"--do_lower_case={asked}, but the model is {word} ({prefix}). Leave the flag out.")
    config = f"{tmp_path}/bert_config.json"
    assert refusal(bert_config_file=config, do_lower_case=not said) == (
        f"--do_lower_case={asked}, but the model is {word} ({config}). Leave the flag out.")
    for asked in (None, said):
        assert find(init_checkpoint=prefix, do_lower_case=asked).do_lower_case is said


def test_casing_against_the_name_of_a_released_folder_is_refused_as_in_the_release(tmp_path):
    prefix = released(tmp_path / "cased_L-12_H-768_A-12")
    config = f"{tmp_path}/cased_L-12_H-768_A-12/bert_config.json"
    # The README's command gives all three flags.
    assert refusal(init_checkpoint=prefix, bert_config_file=config, do_lower_case=True) == (
        f"--do_lower_case=true, but the model is cased ({prefix}). Leave the flag out.")
    assert find(init_checkpoint=prefix, bert_config_file=config).do_lower_case is False


def test_casing_that_only_the_flag_tells_is_the_flag_s(tmp_path):
    initial = find(init_checkpoint=released(tmp_path), do_lower_case=False)
    assert initial.do_lower_case is False


def test_training_run_brings_its_newest_checkpoint_when_training_goes_on(tmp_path):
    released(tmp_path / "final_model")
    CONFIG.to_json_file(f"{tmp_path}/bert_config.json")
    google.write(f"{tmp_path}/model.ckpt-5", named_variables(ClassificationModel(CONFIG, 2)))
    released(tmp_path / "final_model")
    settings = InitialModelSettings(init_checkpoint=str(tmp_path))
    assert initial_model.find(settings).checkpoint.path == f"{tmp_path}/final_model/bert_model.ckpt"
    assert initial_model.find(settings, training=True).checkpoint.path == f"{tmp_path}/model.ckpt-5"


def test_report_says_what_was_read_and_leaves_another_task_s_head(tmp_path):
    prefix = released(tmp_path)
    initial = find(init_checkpoint=prefix)
    model = ClassificationModel(CONFIG, 2)
    before = model.head.output_weights.numpy()
    report = initial.load(model, new_head=True)
    assert (len(report.read), report.initial, report.unused) == (
        23, ("output_weights", "output_bias"), ("output_bias", "output_weights"))
    np.testing.assert_array_equal(model.head.output_weights.numpy(), before)
    assert initial.load(model).summary() == "25 tensors read, 0 left at their initial values, 0 unused."
    np.testing.assert_array_equal(model.head.output_weights, initial.checkpoint.reader.get("output_weights"))


def test_flags_of_longer_positions_more_words_and_missing_weights_reach_the_loading(tmp_path):
    prefix = released(tmp_path)
    larger = str(tmp_path / "larger.json")
    CONFIG.replace(max_position_embeddings=9, vocab_size=8, num_hidden_layers=2).to_json_file(larger)

    def load(**settings):
        initial = find(bert_config_file=larger, init_checkpoint=prefix, **settings)
        model = ClassificationModel(initial.config, 2)
        return model, initial.load(model)

    for settings, flag in (
        ({}, "--extend_vocabulary=true"),
        ({"extend_vocabulary": True}, "--extend_positions=copy or initialize"),
        ({"extend_vocabulary": True, "extend_positions": "copy"}, "--allow_missing_weights=true"),
    ):
        with pytest.raises(BertError, match=flag):
            load(**settings)
    model, report = load(extend_vocabulary=True, extend_positions="copy", allow_missing_weights=True)
    assert (len(report.read), len(report.initial), report.unused) == (25, 16, ())
    positions = named_variables(model)["bert/embeddings/position_embeddings"].numpy()
    np.testing.assert_array_equal(positions[5:], positions[:4])


def test_json_of_the_configuration_that_is_damaged_names_file_and_line(tmp_path):
    released(tmp_path)
    (tmp_path / "bert_config.json").write_text(json.dumps({"vocab_size": 7})[:-1] + ",\n!")
    assert refusal(init_checkpoint=str(tmp_path)).startswith(f"{tmp_path}/bert_config.json, line 2, column 1: not JSON")


TOKENIZER = {"model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "a": 4, "[SEP]": 3}},
             "added_tokens": [{"id": 5, "content": "[MASK]"}],
             "normalizer": {"type": "BertNormalizer", "lowercase": False}}


def test_folder_of_transformers_5_brings_its_vocabulary_in_tokenizer_json(tmp_path):
    released(tmp_path / "x", vocabulary=False)
    convert.convert(str(tmp_path / "x"), str(tmp_path / "y"), "huggingface")
    files.write_json(str(tmp_path / "y/tokenizer.json"), TOKENIZER)
    initial = find(init_checkpoint=str(tmp_path / "y"))
    assert initial.vocab_file == f"{tmp_path}/y/tokenizer.json" and initial.do_lower_case is False
    assert initial.vocabulary.tokens == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "[MASK]")
    assert initial.tokenizer().vocabulary.size == 6
    RunDirectory(str(tmp_path / "run")).write_model_files(initial.config, initial.vocab_file)
    written = find(init_checkpoint=released(tmp_path / "z"), vocab_file=str(tmp_path / "run/vocab.txt"))
    assert written.vocabulary.tokens == initial.vocabulary.tokens
    assert written.vocabulary.sha256 == initial.vocabulary.sha256


@pytest.mark.parametrize(("change", "message"), [
    ({"model": []}, "not a tokenizer of Hugging Face"),
    ({"model": {"type": "BPE", "vocab": {}}}, "the tokenizer is BPE, not WordPiece"),
    ({"added_tokens": {"id": 5}}, "added_tokens is not a list of objects with content and id"),
    ({"added_tokens": [{"id": "5", "content": "x"}]}, "the ids of its 6 word pieces are not 0 to 5"),
    ({"added_tokens": [{"id": 5, "content": "x "}]}, "the word piece 'x ' has white space at an end"),
])
def test_damaged_tokenizer_json_is_one_line(tmp_path, change, message):
    files.write_json(f"{tmp_path}/tokenizer.json", TOKENIZER | change)
    with pytest.raises(BertError, match=message) as error:
        find(init_checkpoint=released(tmp_path, vocabulary=False)).vocabulary  # noqa: B018
    assert str(error.value).startswith(f"{tmp_path}/tokenizer.json: ") and "\n" not in str(error.value)


HUGE = {"vocab_size": 300_000_000}


@pytest.mark.parametrize(("changes", "options", "message"), [
    (HUGE, {}, r"word_embeddings has the shape \[7, 4\] in the checkpoint and \[300000000, 4\] in the model\. "
               r"Pass --extend_vocabulary=true"),
    ({"max_position_embeddings": 10**9}, {"extend_vocabulary": True}, "Pass --extend_positions=copy"),
    ({"hidden_size": 2**20}, {"extend_vocabulary": True, "extend_positions": "copy"}, "word_embeddings has the shape"),
    ({"intermediate_size": 10**9}, {}, "intermediate/dense/kernel has the shape"),
    ({"num_hidden_layers": 10**6}, {}, r"has 1 layers, by the configuration 1000000 \(num_hidden_layers\)"),
    ({"vocab_size": 9, "max_position_embeddings": 6}, {"extend_vocabulary": True, "extend_positions": "copy"}, None),
    ({"num_hidden_layers": 2}, {"allow_missing_weights": True}, None),
    ({}, {}, None),
])
def test_configuration_of_another_size_is_refused_before_a_model_is_built(tmp_path, changes, options, message):
    prefix = released(tmp_path / "x")
    CONFIG.replace(**changes).to_json_file(str(tmp_path / "c.json"))
    initial = find(init_checkpoint=prefix, bert_config_file=str(tmp_path / "c.json"), **options)
    if not message:
        initial.check_sizes()
        initial.load(ClassificationModel(initial.config, 2))
        return
    with pytest.raises(BertError, match=message):
        initial.check_sizes()

"""Every file of a checkpoint's folder, damaged in many ways: each ends in success or in one plain line."""

import copy
import json
import random
import shutil

import pytest
import safetensors

from finetuning import description
from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import convert, google
from modeling.config import BertConfig
from modeling.models import ClassificationModel, named_variables
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tasks.multiple_choice.files import MultipleChoiceSettings
from tasks.multiple_choice.task import MultipleChoiceTask
from tasks.ner.files import NerSettings
from tasks.ner.task import NerTask
from tasks.squad.files import SquadSettings
from tasks.squad.task import SquadTask
from tests.conftest import TINY_CONFIG, WORDS
from training import initial_model
from training.settings import InitialModelSettings

MUTATIONS = 100
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
STRANGE = [None, True, -1, 0, 1.5, 10**30, float("inf"), float("nan"), "", "x", "LABEL_0", "\ud800", "../x", "\n",
           "a" * 999, [], {}, [[]], ["a"], [None], {"a": 1}, {"0": []}, ["no", "no"]]
FAMILIES = {
    "classification": (ClassificationTask, ClassificationSettings(
        task_name="custom", labels=("no", "yes"), text_a_column="t")),
    "multiple_choice": (MultipleChoiceTask, MultipleChoiceSettings(
        task_name="custom", prompt_columns=("p",), choice_columns=("a", "b"))),
    "ner": (NerTask, NerSettings(labels=("O", "B-X"))),
    "squad": (SquadTask, SquadSettings()),
}


def places_in(value, place=()):
    """The path of every value in JSON."""
    yield place
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places_in(value[key], (*place, key))


def mutated_json(text, rng):
    """JSON with one value changed, a key removed or added; or bytes damaged."""
    if rng.random() < 0.25:
        return mutated_bytes(text.encode(), rng)
    value = json.loads(text)
    *place, last = rng.choice([place for place in places_in(value) if place] or [()])
    inner = value
    for key in place:
        inner = inner[key]
    if rng.random() < 0.2 and isinstance(inner, dict):
        del inner[last]
    else:
        inner[last] = copy.deepcopy(rng.choice(STRANGE))
    whole = rng.choice(STRANGE) if rng.random() < 0.05 else value
    return json.dumps(whole).replace('"x"', "9" * 5000 if rng.random() < 0.1 else '"x"').encode()


def mutated_bytes(data, rng):
    """Bytes cut, exchanged, doubled or put in."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((0, 1, 5, 100)))
    put_in = rng.choice((b"", b"\x00", b"\xff", b"\n", b"[" * 50_000, b'{"a":' * 50_000, b"9" * 5000,
                         data[start:end] * 2))
    return data[:start] + put_in + data[end:] if rng.random() < 0.8 else data[:start]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A fine-tuned classifier as a Hugging Face folder, whole and in shards, and as Google's and Keras'."""
    root, config = tmp_path_factory.mktemp("folders"), BertConfig.from_dict(TINY_CONFIG)
    google.write(str(root / "google/bert_model.ckpt"), named_variables(ClassificationModel(config, 2)))
    config.to_json_file(str(root / "google/bert_config.json"))
    (root / "google/vocab.txt").write_text("\n".join([*SPECIAL, *WORDS]))
    (root / "google/task.json").write_text(json.dumps({"labels": ["no", "yes"]}))
    for kind in ("huggingface", "keras"):
        convert.convert(str(root / "google"), str(root / kind), kind)
    write_tokenizer(root / "huggingface")
    shutil.copytree(root / "huggingface", root / "shards")
    shard = "model-00001-of-00001.safetensors"
    (root / "shards/model.safetensors").rename(root / "shards" / shard)
    with safetensors.safe_open(root / "shards" / shard, "np") as file:
        index = {"weight_map": dict.fromkeys(file.keys(), shard)}
    (root / "shards/model.safetensors.index.json").write_text(json.dumps(index))
    return root


def write_tokenizer(folder):
    (folder / "tokenizer.json").write_text(json.dumps({
        "model": {"type": "WordPiece", "vocab": {token: number for number, token in enumerate([*SPECIAL, *WORDS[:5]])}},
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "BertNormalizer", "lowercase": True}]},
        "added_tokens": [{"content": "[MASK]", "id": 4}]}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 8}))
    (folder / "vocab.txt").unlink()


def read_all(folder):
    """All that a command reads of a checkpoint's folder."""
    initial = initial_model.find(InitialModelSettings(init_checkpoint=str(folder)))
    initial.check_sizes()
    initial.checkpoint.labels()
    assert initial.vocabulary.size
    for name in initial.checkpoint.reader.names:
        initial.checkpoint.reader.get(name)


def assert_plain(action, what):
    """Whether an action succeeds; a refusal is one short line."""
    try:
        action()
    except BertError as error:
        assert str(error).count("\n") == 0 and len(str(error)) < 2500, what
        return False
    except Exception as error:
        raise AssertionError(f"{what[:300]!r}: {error!r}") from error
    return True


@pytest.mark.parametrize("name", [
    "huggingface/config.json", "huggingface/tokenizer.json", "huggingface/tokenizer_config.json",
    "huggingface/model.safetensors", "shards/model.safetensors.index.json", "google/bert_config.json",
    "google/task.json", "google/vocab.txt", "keras/bert_config.json", "keras/task.json"])
def test_damaged_file_is_one_line_or_does_not_matter(folders, tmp_path, name):
    rng = random.Random(name)
    kind, file = name.split("/")
    shutil.copytree(folders / kind, tmp_path / kind)
    whole, target = (tmp_path / name).read_bytes(), str(tmp_path / "converted")
    read_all(tmp_path / kind)
    for _ in range(MUTATIONS):
        change = mutated_json(whole.decode(), rng) if file.endswith("json") else mutated_bytes(whole, rng)
        (tmp_path / name).write_bytes(change)
        assert_plain(lambda: read_all(tmp_path / kind), change)
        if rng.random() < 0.1:
            if assert_plain(lambda: convert.convert(str(tmp_path / kind), target, "huggingface"), change):
                files.remove_folder(target)
            assert not files.exists(target)


@pytest.mark.parametrize("family", FAMILIES)
def test_damaged_description_gives_valid_settings_or_one_line(tmp_path, family):
    rng = random.Random(family)
    make_task, settings = FAMILIES[family]
    description.write(str(tmp_path), make_task(settings), {})
    whole = (tmp_path / "task.json").read_text()

    def use():
        recalled = description.settings(str(tmp_path), type(settings))
        assert set(recalled) <= set(type(settings).described)
        task = make_task(type(settings)(**recalled))
        description.metric(str(tmp_path))
        task.describe({})

    use()
    ended_well = 0
    for _ in range(2 * MUTATIONS):
        change = mutated_json(whole, rng)
        (tmp_path / "task.json").write_bytes(change)
        ended_well += assert_plain(use, change)
    assert 0 < ended_well < 2 * MUTATIONS

"""Instances: the layout of a row, and records that do not depend on how they are shared among chunks."""

import types

import numpy as np
import pytest
import tensorflow as tf

from data_prep import id_store, instances, intermediate, records, sentence_pairs
from data_prep.instances import InstanceBlocks, assemble, write_chunk
from data_prep.sentence_pairs import PLAN_ROW
from data_prep.settings import CorpusSettings, InstanceSettings
from tests.data_prep import corpora
from tokenization.vocabulary import Vocabulary

SETTINGS = InstanceSettings(max_seq_length=32, max_predictions_per_seq=5, dupe_factor=1)
TINY = types.SimpleNamespace(cls_id=2, sep_id=3)


def tiny_store():
    tokens = np.arange(100, 200, dtype=np.uint16)
    return types.SimpleNamespace(read_tokens=lambda starts, lengths: np.concatenate(
        [tokens[start : start + length] for start, length in zip(starts, lengths)]))


def test_a_pair_is_laid_out_between_its_special_tokens():
    rows = np.array([(10, 50, 3, 2, True), (0, 97, 2, 3, False)], PLAN_ROW)
    settings = InstanceSettings(max_seq_length=9, max_predictions_per_seq=1)
    tokens, lengths, candidates, segment_ids = assemble(tiny_store(), rows, TINY, settings)
    assert tokens.tolist() == [[2, 110, 111, 112, 3, 150, 151, 3, 0], [2, 100, 101, 3, 197, 198, 199, 3, 0]]
    assert lengths.tolist() == [8, 8]
    assert segment_ids.tolist() == [[0, 0, 0, 0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1, 1, 1, 0]]
    np.testing.assert_array_equal(candidates, (tokens >= 100))


def test_a_single_segment_has_one_separator():
    rows = np.array([(10, 13, 3, 0, False)], PLAN_ROW)
    settings = InstanceSettings(max_seq_length=7, max_predictions_per_seq=1, next_sentence=False)
    tokens, lengths, candidates, segment_ids = assemble(tiny_store(), rows, TINY, settings)
    assert tokens.tolist() == [[2, 110, 111, 112, 3, 0, 0]]
    assert lengths.tolist() == [5]
    assert candidates.sum() == 3
    assert not segment_ids.any()


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A tokenised and planned corpus of some 2,000 instances: arguments of `write_chunk`."""
    folder = tmp_path_factory.mktemp("job")
    vocab_file = corpora.write_vocabulary(folder / "vocab.txt")
    text = corpora.write_corpus(folder / "text", corpora.make_documents(400))
    sha256 = Vocabulary.from_file(vocab_file).sha256
    (spans,) = id_store.plan_spans([text])
    id_store.tokenize_unit(("0", spans), str(folder), CorpusSettings(vocab_file=vocab_file), sha256)
    id_store.join_units(["0"], str(folder), str(folder / "store"), 132)
    store = id_store.IdStore.open(str(folder / "store"))
    rows = sentence_pairs.plan_documents(store, 0, 400, SETTINGS, np.random.default_rng(0))
    assert len(rows) > 2 * instances.BLOCK_ROWS
    (folder / "plan").write_bytes(rows.tobytes())
    return {
        "store_folder": str(folder / "store"),
        "plan_file": str(folder / "plan"),
        "vocab_file": vocab_file,
        "settings": SETTINGS,
    }


def records_of(job, folder, *ranges):
    for number, (begin, end) in enumerate(ranges):
        write_chunk((str(number), begin, end), str(folder), **job)
    files = [str(folder / f"{number}.tfrecord") for number in range(len(ranges))]
    return [record.numpy() for record in tf.data.TFRecordDataset(files)]


def test_records_do_not_depend_on_the_chunks(job, tmp_path):
    whole = records_of(job, tmp_path, (0, 2100))
    assert len(whole) == 2100
    assert records_of(job, tmp_path, (0, 1), (1, 1024), (1024, 1025), (1025, 2100)) == whole
    assert records_of(job, tmp_path, (700, 1700)) == whole[700:1700]


def test_records_of_a_chunk_are_counted(job, tmp_path):
    counts = write_chunk(("0", 100, 1500), str(tmp_path), **job)
    assert intermediate.is_intact(str(tmp_path / "0.tfrecord"), counts.pop("file"))
    dataset = tf.data.TFRecordDataset(str(tmp_path / "0.tfrecord")).batch(1400)
    (parsed,) = map(records.PretrainingSchema(32, 5).parse, dataset)
    assert counts == {
        "instances": 1400,
        "tokens": int(parsed["input_mask"].numpy().sum()),
        "predictions": int(parsed["masked_lm_weights"].numpy().sum()),
        "random": int(parsed["next_sentence_labels"].numpy().sum()),
        "full": int(parsed["input_mask"].numpy()[:, -1].sum()),
    }


def test_blocks_hold_the_planned_instances_once(job):
    """With the predictions put back, all rows of all blocks are the rows of the plan in another order."""
    vocabulary = Vocabulary.from_file(job["vocab_file"])
    blocks = InstanceBlocks.open(**job)
    plan = np.fromfile(job["plan_file"], PLAN_ROW)
    rows = []
    for number in range(-(-len(plan) // instances.BLOCK_ROWS)):
        arrays = blocks.arrays(number)
        restored = arrays["input_ids"].copy()
        row, slot = np.nonzero(arrays["masked_lm_weights"])
        restored[row, arrays["masked_lm_positions"][row, slot]] = arrays["masked_lm_ids"][row, slot]
        rows.append(np.hstack([restored, arrays["segment_ids"], arrays["next_sentence_labels"]]))
    store = id_store.IdStore.open(job["store_folder"])
    tokens, _, _, segment_ids = assemble(store, plan, vocabulary, SETTINGS)
    planned = np.hstack([tokens, segment_ids, plan["is_random"][:, None]])
    found = np.concatenate(rows)
    assert (found[:50] != planned[:50]).any()
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, planned.tolist()))


def test_replacements_are_ordinary_pieces_unless_asked(job):
    for special in (False, True):
        settings = InstanceSettings(
            max_seq_length=32, max_predictions_per_seq=5, masking_mix=(0, 0, 1), replace_with_special=special
        )
        arrays = InstanceBlocks.open(**{**job, "settings": settings}).arrays(0)
        used = arrays["masked_lm_weights"] > 0
        became = np.take_along_axis(arrays["input_ids"], arrays["masked_lm_positions"], axis=1)[used]
        assert (became < len(corpora.SPECIAL)).any() == special

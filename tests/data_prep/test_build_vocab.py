"""The learned vocabulary: size, layout, pieces, and bad input."""

import collections
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep import build_vocab, wordpiece_learner
from data_prep.settings import VocabularySettings
from data_prep.text_blocks import TextReader
from foundation.errors import BertError
from tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = "the running runner runs jumped jumping jumper jumps higher highest low lower lowest café naïve 84 u.s. co-op"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Documents of a few thousand running words, from a seed."""
    path = tmp_path_factory.mktemp("corpus") / "documents.txt"
    generator = random.Random(1)
    stems, ends = ["walk", "talk", "jump", "paint", "Play", "climb"], ["", "s", "ed", "ing", "er", "ers"]
    lines = []
    for _ in range(600):
        words = [generator.choice(stems) + generator.choice(ends) for _ in range(8)]
        lines.append(" ".join(words) + "." + "\n" * (generator.random() < 0.2))
    path.write_text("\n".join(lines) + "\n" + WORDS)
    return str(path)


def run(path, output, block_bytes=build_vocab.BLOCK_BYTES, **options):
    """Learns a vocabulary from a file, in this process unless told otherwise."""
    options = {"num_workers": 1, **options}
    settings = VocabularySettings(input_file=str(path), output_file=str(output), **options)
    return build_vocab.run(settings, block_bytes)


def learned_vocabulary(corpus, tmp_path, **options):
    run(corpus, tmp_path / "vocab.txt", **options)
    return Vocabulary.from_file(str(tmp_path / "vocab.txt"))


def learn(counts, size, min_frequency=2, character_coverage=0.99995):
    return wordpiece_learner.learn(
        counts, size, min_frequency=min_frequency, character_coverage=character_coverage)


def cut(word, pieces):
    """The release's longest match first, written independently."""
    found, start = [], 0
    while start < len(word):
        candidates = [("##" if start else "") + word[start:end] for end in range(len(word), start, -1)]
        piece = next((candidate for candidate in candidates if candidate in pieces), None)
        if piece is None:
            return ["[UNK]"]
        found.append(piece)
        start += len(piece.removeprefix("##") if start else piece)
    return found


def test_size_is_exact_and_special_tokens_come_first(corpus, tmp_path):
    for size in (70, 83, 90):
        vocabulary = learned_vocabulary(corpus, tmp_path, vocab_size=size)
        assert vocabulary.size == size
        assert vocabulary.tokens[:5] == SPECIAL_TOKENS


def test_report_describes_what_was_learned(corpus, tmp_path):
    report = run(corpus, tmp_path / "v", vocab_size=90, character_coverage=1.0)
    assert (report.vocab_size, report.wanted_size, report.unknown_share) == (90, 90, 0)
    assert report.words == 600 * 9 + 23
    assert 1 < report.pieces_per_word < 1.6
    assert "90 word pieces" in report.summary() and "less than" not in report.summary()


def test_with_99_unused_slots_special_tokens_have_their_released_ids():
    for count in (99, 120):
        frame = build_vocab.special_tokens(count)
        assert [frame.index(token) for token in SPECIAL_TOKENS] == [0, 100, 101, 102, 103]
        assert frame[1] == "[unused0]" and frame[99] == "[unused98]" and len(frame) == count + 5
    assert build_vocab.special_tokens(120)[104] == "[unused99]"
    assert build_vocab.special_tokens(2) == ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_frequent_stems_and_endings_become_pieces(corpus, tmp_path):
    vocabulary = learned_vocabulary(corpus, tmp_path, vocab_size=85)
    assert {"walk", "talk", "jump", "paint", "play", "climb", "##ing", "##ed"} <= set(vocabulary.tokens)


def test_lower_casing_follows_the_flag(corpus, tmp_path):
    uncased = learned_vocabulary(corpus, tmp_path, vocab_size=100)
    cased = learned_vocabulary(corpus, tmp_path, vocab_size=100, do_lower_case=False)
    assert "play" in uncased and "P" not in uncased and "e" in uncased and "é" not in uncased
    assert "Play" in cased and "é" in cased


def test_vocabulary_does_not_depend_on_workers_or_blocks(corpus, tmp_path):
    vocabularies = [
        learned_vocabulary(corpus, tmp_path, vocab_size=80, **options).tokens
        for options in ({}, {"block_bytes": 700}, {"block_bytes": 700, "num_workers": 2})
    ]
    assert vocabularies[0] == vocabularies[1] == vocabularies[2]


def test_corpus_too_small_for_the_size_is_reported(corpus, tmp_path):
    report = run(corpus, tmp_path / "v", vocab_size=5000)
    assert report.vocab_size < 5000
    assert "less than --vocab_size=5000" in report.summary()
    assert len(Vocabulary.from_file(str(tmp_path / "v"))) == report.vocab_size


def test_size_below_the_alphabet_is_an_error_that_counts(corpus, tmp_path):
    with pytest.raises(BertError, match=r"--vocab_size=20 is too small: 5 special tokens .* \d+ characters take \d+"):
        run(corpus, tmp_path / "v", vocab_size=20)
    assert not (tmp_path / "v").exists()


def test_rare_characters_stay_out_of_the_alphabet():
    counts = {"aaaa": 1000, "aab": 500, "漢": 1, "b→": 1}
    covered = learn(counts, 100, character_coverage=0.999)
    assert covered.characters == ["a", "b", "##a", "##b"]
    assert covered.unknown_share == pytest.approx(2 / 1502)
    everything = learn(counts, 100, character_coverage=1.0)
    assert everything.characters == ["a", "b", "→", "漢", "##a", "##b", "##→"]
    assert everything.unknown_share == 0


def test_rare_pairs_are_not_joined():
    counts = {"ab": 10, "cd": 2}
    assert learn(counts, 100, min_frequency=3).pieces == ["ab"]
    assert learn(counts, 100, min_frequency=2).pieces == ["ab", "cd"]


def test_pair_that_occurs_most_is_joined_first():
    counts = {"xab": 5, "yab": 4, "xyz": 6}
    characters = ["x", "y", "##a", "##b", "##y", "##z"]
    joined = wordpiece_learner._join_pairs(characters, sorted(counts), counts, 8, 1)
    assert joined == ["##ab", "xy"]


_COUNTS = st.dictionaries(st.text("abcé漢", min_size=1, max_size=7), st.integers(1, 50), min_size=1, max_size=30)


@settings(deadline=None, max_examples=60)
@given(counts=_COUNTS, size=st.integers(12, 60))
def test_every_word_can_be_cut_and_the_mean_is_right(counts, size):
    learned = learn(counts, size, min_frequency=1, character_coverage=1.0)
    pieces = set(learned.characters + learned.pieces)
    assert len(pieces) == len(learned.characters) + len(learned.pieces) <= max(size, len(learned.characters))
    cuts = {word: cut(word, pieces) for word in counts}
    assert all("[UNK]" not in pieces_of_word for pieces_of_word in cuts.values())
    used = sum(len(cuts[word]) * count for word, count in counts.items())
    assert learned.pieces_per_word == pytest.approx(used / sum(counts.values()))


@settings(deadline=None, max_examples=40)
@given(counts=_COUNTS)
def test_order_of_the_words_does_not_matter(counts):
    backwards = dict(reversed(counts.items()))
    assert learn(counts, 30) == learn(backwards, 30)


def test_counts_of_pairs_stay_true_while_joining():
    counts = {"aaaa": 3, "abab": 2, "babab": 5, "aabb": 1}
    joined = wordpiece_learner._join_pairs(["a", "b", "##a", "##b"], sorted(counts), counts, 1000, 1)
    assert set(counts) <= set(joined)
    assert len(joined) == len(set(joined))


def test_words_are_counted_by_the_projects_own_rules(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("Café cafe, CAFÉ\u200b!\n漢字 x\n")
    counts = build_vocab.count_words(TextReader("error"), [str(path)], do_lower_case=True, num_workers=1)
    assert counts == {"cafe": 3, ",": 1, "!": 1, "漢": 1, "字": 1, "x": 1}
    cased = build_vocab.count_words(TextReader("error"), [str(path)], do_lower_case=False, num_workers=1)
    assert cased["Café"] == 1


def test_rarest_words_are_forgotten_when_too_many_come_up(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("".join(f"often common word{number}\n" for number in range(2000)))
    reader = TextReader("error", block_bytes=1000)
    counts = build_vocab.count_words(reader, [str(path)], do_lower_case=True, num_workers=1, max_words=100)
    assert len(counts) <= 200
    assert counts["often"] == counts["common"] == 2000


def test_forgetting_drops_words_of_one_frequency_together():
    counts = collections.Counter({"a": 5, "b": 1, "c": 1, "d": 2, "e": 2})
    assert build_vocab.forget_rarest(counts, 4) == {"a": 5, "d": 2, "e": 2}
    assert build_vocab.forget_rarest(counts, 2) == {"a": 5}


def test_input_without_words_is_an_error(tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(BertError, match=r"empty\.txt: no words"):
        run(tmp_path / "empty.txt", tmp_path / "v")
    assert not (tmp_path / "v").exists()


def test_bytes_that_are_not_utf8_are_named_or_counted(tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"some words \xff and more words of some kind\n")
    with pytest.raises(BertError, match=r"bad\.txt: byte 11 is not UTF-8"):
        run(tmp_path / "bad.txt", tmp_path / "v")
    report = run(tmp_path / "bad.txt", tmp_path / "v", vocab_size=40, on_bad_utf8="skip")
    assert report.bad_bytes == 1
    assert "1 byte left out: not UTF-8" in report.summary()


def test_command_line_writes_a_vocabulary(corpus, tmp_path, repository):
    done = subprocess.run(
        [sys.executable, "-m", "data_prep.build_vocab", f"--input_file={corpus}",
         f"--output_file={tmp_path}/new/v.txt", "--vocab_size=190", "--num_unused=99"],
        cwd=repository, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "190 word pieces" in done.stdout
    vocabulary = Vocabulary.from_file(f"{tmp_path}/new/v.txt")
    assert (vocabulary.size, vocabulary.mask_id) == (190, 103)

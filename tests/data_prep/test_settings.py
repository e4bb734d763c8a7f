"""Settings of the jobs: what is out of range is refused, with the name of the flag."""

import pytest

from data_prep.settings import InstanceSettings, JobSettings, VocabularySettings
from foundation import flags
from foundation.errors import BertError


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"max_seq_length": 4}, "--max_seq_length=4: must be at least 5"),
        ({"max_predictions_per_seq": 0}, "--max_predictions_per_seq=0: must be at least 1"),
        ({"max_predictions_per_seq": 129}, "--max_predictions_per_seq=129: must be at most --max_seq_length=128"),
        ({"masked_lm_prob": 15}, "--masked_lm_prob=15: must be at most 1"),
        ({"short_seq_prob": -1}, "--short_seq_prob=-1: must be at least 0"),
        ({"dupe_factor": 0}, "--dupe_factor=0: must be at least 1"),
        ({"dupe_factor": 10**9}, "--dupe_factor=1000000000: must be at most 10000"),
        ({"random_seed": 1 << 63}, "--random_seed=9223372036854775808: must be at most"),
        ({"random_seed": -(1 << 63) - 1}, "--random_seed=-9223372036854775809: must be at least"),
        ({"masked_lm_prob": float("nan")}, "--masked_lm_prob=nan: must be a finite number"),
    ],
)
def test_settings_out_of_range_name_their_flag(settings, message):
    with pytest.raises(BertError, match=message):
        InstanceSettings(**settings)


def from_command_line(kind, *arguments):
    line = flags.CommandLine([kind])
    line.parse(["script", *arguments])
    return line.settings(kind)


@pytest.mark.parametrize("mix", ["80,10", "80,10,20", "a,b,c", "120,-10,-10", "", "nan,50,50", "inf,-inf,100"])
def test_a_mix_that_cannot_be_is_reported(mix):
    with pytest.raises(BertError, match=f"--masking_mix={mix}: must be three percentages"):
        from_command_line(InstanceSettings, f"--masking_mix={mix}")


def test_mix_is_read_as_shares():
    assert from_command_line(InstanceSettings, "--masking_mix=60, 20,20").masking_mix == pytest.approx((0.6, 0.2, 0.2))
    assert from_command_line(InstanceSettings).masking_mix == InstanceSettings().masking_mix == (0.8, 0.1, 0.1)


@pytest.mark.parametrize("settings, message", [
    ({"num_unused": 10**9}, "--num_unused=1000000000: must be less than --vocab_size=30522"),
    ({"vocab_size": 10**9}, "--vocab_size=1000000000: must be at most 1e\\+07"),
    ({"character_coverage": float("nan")}, "--character_coverage=nan: must be a finite number"),
])
def test_vocabularies_of_senseless_sizes_are_refused(settings, message):
    with pytest.raises(BertError, match=message):
        VocabularySettings(input_file="a", output_file="b", **settings)


def test_no_one_starts_a_billion_processes():
    with pytest.raises(BertError, match="--num_workers=1000000000: must be at most 1024"):
        JobSettings(num_workers=10**9)


def test_seeds_of_either_sign_are_taken():
    seeds = {InstanceSettings(random_seed=seed).seed for seed in (0, 1, -1, (1 << 63) - 1, -(1 << 63))}
    assert len(seeds) == 5 and min(seeds) == 0

"""What pre-training records are made of, as plain values."""

import dataclasses

from foundation.errors import BertError


@dataclasses.dataclass(frozen=True)
class CorpusSettings:
    """How text becomes token ids.

    Attributes:
        vocab_file: vocabulary, one piece a line.
        do_lower_case: uncased text rules.
        on_bad_utf8: "error", or "skip" to leave out and count lines that are not UTF-8.
    """

    vocab_file: str
    do_lower_case: bool = True
    on_bad_utf8: str = "error"

    def __post_init__(self):
        if self.on_bad_utf8 not in ("error", "skip"):
            raise BertError(f"--on_bad_utf8={self.on_bad_utf8} is neither error nor skip.")


@dataclasses.dataclass(frozen=True)
class InstanceSettings:
    """How token ids become training instances; the defaults are the release's.

    Attributes:
        max_seq_length: tokens of an instance, [CLS], [SEP] and padding included.
        max_predictions_per_seq: slots for masked tokens.
        masked_lm_prob: share of an instance's tokens to predict.
        short_seq_prob: share of documents packed to a random shorter length.
        dupe_factor: how many times the corpus is packed and masked, each time differently.
        random_seed: any integer; everything random follows from it.
        do_whole_word_mask: mask all pieces of a word together.
        masking_mix: shares of predictions that become [MASK], stay, become a random token (paper, appendix C.2).
        next_sentence: pairs of segments and the next-sentence task; False packs single segments (paper, table 5).
        replace_with_special: random replacements may be any id, special and [unused] ones too, as in the release.
    """

    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    masked_lm_prob: float = 0.15
    short_seq_prob: float = 0.1
    dupe_factor: int = 10
    random_seed: int = 12345
    do_whole_word_mask: bool = False
    masking_mix: tuple = (0.8, 0.1, 0.1)
    next_sentence: bool = True
    replace_with_special: bool = False

    def __post_init__(self):
        if not 5 <= self.max_seq_length <= 1 << 15:
            raise BertError(
                f"--max_seq_length={self.max_seq_length} must be from 5 (three special tokens and one token for each "
                f"segment) to {1 << 15}."
            )
        if not 1 <= self.max_predictions_per_seq <= self.max_seq_length:
            raise BertError(
                f"--max_predictions_per_seq={self.max_predictions_per_seq} must be from 1 to "
                f"--max_seq_length={self.max_seq_length}. The usual choice is a little over max_seq_length * "
                f"masked_lm_prob."
            )
        for flag in ("masked_lm_prob", "short_seq_prob"):
            if not 0 <= getattr(self, flag) <= 1:
                raise BertError(f"--{flag}={getattr(self, flag)} is a share and must be from 0 to 1.")
        if self.dupe_factor < 1:
            raise BertError(f"--dupe_factor={self.dupe_factor} must be at least 1.")

    @property
    def seed(self):
        """The seed as numpy takes it, not negative."""
        return self.random_seed % (1 << 64)

    @property
    def tokens_per_instance(self):
        """How many tokens fit beside [CLS] and each segment's [SEP]."""
        return self.max_seq_length - (3 if self.next_sentence else 2)


def parse_masking_mix(text):
    """Reads "80,10,10", percentages of [MASK], same and random, as shares.

    Raises:
        BertError: not three percentages that sum to 100.
    """
    try:
        percentages = [float(part) for part in text.split(",")]
    except ValueError:
        percentages = []
    if len(percentages) != 3 or min(percentages) < 0 or abs(sum(percentages) - 100) > 1e-6:
        raise BertError(
            f"--masking_mix={text} must be three percentages that sum to 100: replaced by [MASK], left as it is, "
            f"replaced by a random token. The default is 80,10,10."
        )
    return tuple(percentage / 100 for percentage in percentages)

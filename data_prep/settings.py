"""Settings of the three jobs of this room."""

import dataclasses

from foundation import parallel
from foundation.errors import BertError
from foundation.settings import DATA, HARDWARE, SAVING, Settings, nested, setting

ON_BAD_UTF8 = ERROR, SKIP = "error", "skip"
INPUT_FORMATS = PARAGRAPHS, FILE, AUTO = "paragraphs", "file", "auto"


def masking_mix(text: str) -> tuple[float, ...]:
    """Percentages, separated by commas, as shares. Raises ValueError where they are not numbers."""
    try:
        return tuple(float(part) / 100 for part in text.split(","))
    except ValueError:
        raise ValueError(_NO_MASKING_MIX) from None


def masking_mix_text(mix: tuple[float, ...]) -> str:
    """Shares as the flag has them."""
    return ",".join(f"{100 * share:g}" for share in mix)


_DEFAULT_MASKING_MIX = "80,10,10"
_NO_MASKING_MIX = (
    "must be three percentages that sum to 100: replaced by [MASK], left unchanged, replaced by a random token. The "
    f"default is {_DEFAULT_MASKING_MIX}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobSettings(Settings):
    """What all jobs have."""

    num_workers: int | None = setting(
        None, group=HARDWARE, at_least=1, at_most=1024,
        help="Worker processes. Default: one for each core. The output does not depend on it.")

    @property
    def workers(self) -> int:
        """The number of worker processes."""
        return self.num_workers or parallel.default_num_workers()


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextJobSettings(JobSettings):
    """What the jobs that read any text have."""

    input_file: str | list[str] = setting(group=DATA, help="Text files: paths and globs, separated by commas.")
    on_bad_utf8: str = setting(
        ERROR, group=DATA, choices=ON_BAD_UTF8,
        help="What to do with bytes that are not UTF-8: stop, or leave them out and count them.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentenceSettings(TextJobSettings):
    """Settings of `split_sentences`."""

    output_file: str = setting(
        group=DATA, help="File to write: one sentence per line, a blank line between documents.")
    input_format: str = setting(
        PARAGRAPHS, group=DATA, choices=INPUT_FORMATS,
        help="paragraphs: one paragraph per line, a blank line between documents. file: each file is one document, and "
             "wrapped lines are joined. auto: decided by the beginning of each file.")
    abbreviations: str | None = setting(
        None, group=DATA, help="File of additional words that never end a sentence, one per line; # starts a comment.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularySettings(TextJobSettings):
    """Settings of `build_vocab`."""

    output_file: str = setting(group=DATA, help="Vocabulary to write, one word piece per line.")
    vocab_size: int = setting(
        30522, group=DATA, at_least=6, at_most=10_000_000,
        help="Lines of the vocabulary, special tokens and unused slots included.")
    do_lower_case: bool = setting(
        True, group=DATA, help="Lower-case the text and strip accents, for an uncased model.")
    num_unused: int = setting(
        0, group=DATA, at_least=0,
        help="Slots [unused0], [unused1] ... for tokens of your own. With 99 or more, [UNK], [CLS], [SEP] and [MASK] "
             "have the ids 100 to 103, as in the released vocabularies.")
    min_frequency: int = setting(2, group=DATA, at_least=1, help="Do not join pairs of pieces that are rarer.")
    character_coverage: float = setting(
        0.99995, group=DATA, at_least=0.5, at_most=1,
        help="Share of the text's characters that the alphabet covers. Words with a rarer character become [UNK].")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_unused >= self.vocab_size:
            raise BertError(f"--num_unused={self.num_unused}: must be less than --vocab_size={self.vocab_size}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusSettings(Settings):
    """How text becomes token ids."""

    vocab_file: str = setting(group=DATA, released=True, help="Vocabulary, one word piece per line.")
    do_lower_case: bool = setting(
        True, group=DATA, released=True, help="Lower-case the text and strip accents: true for an uncased vocabulary.")
    on_bad_utf8: str = setting(
        ERROR, group=DATA, choices=ON_BAD_UTF8,
        help="What to do with a line that is not UTF-8: stop, or leave it out and count it.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class InstanceSettings(Settings):
    """How token ids become training instances."""

    max_seq_length: int = setting(
        128, group=DATA, released=True, at_least=5, at_most=1 << 15,
        help="Tokens of an instance, [CLS], [SEP] and padding included.")
    max_predictions_per_seq: int = setting(
        20, group=DATA, released=True, at_least=1,
        help="Maximum predictions per instance: a little more than max_seq_length * masked_lm_prob.")
    masked_lm_prob: float = setting(
        0.15, group=DATA, released=True, at_least=0, at_most=1, help="Share of the tokens to predict.")
    short_seq_prob: float = setting(
        0.1, group=DATA, released=True, at_least=0, at_most=1,
        help="Share of the documents that are packed to a shorter length, drawn at random.")
    dupe_factor: int = setting(
        10, group=DATA, released=True, at_least=1, at_most=10_000,
        help="Passes over the corpus, each packed and masked differently.")
    random_seed: int = setting(
        12345, group=DATA, released=True, at_least=-(1 << 63), at_most=(1 << 63) - 1,
        help="Seed of all randomness: any whole number of 64 bits.")
    do_whole_word_mask: bool = setting(
        False, group=DATA, released=True, help="Mask all pieces of a word together.")
    masking_mix: tuple[float, ...] = setting(
        masking_mix(_DEFAULT_MASKING_MIX), group=DATA, parse=masking_mix, default_text=_DEFAULT_MASKING_MIX,
        help="Percentages of predictions that become [MASK], stay unchanged, become a random token (paper, appendix "
             "C.2).")
    next_sentence: bool = setting(
        True, group=DATA,
        help="Make pairs of segments with a next-sentence label. false: single segments (paper, table 5).")
    replace_with_special: bool = setting(
        False, group=DATA,
        help="Draw random replacements from all ids, special and [unused] tokens included, like the release.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_predictions_per_seq > self.max_seq_length:
            raise BertError(
                f"--max_predictions_per_seq={self.max_predictions_per_seq}: must be at most "
                f"--max_seq_length={self.max_seq_length}. A little more than max_seq_length * masked_lm_prob is usual.")
        shares = all(0 <= share <= 1 for share in self.masking_mix)  # not where one is NaN
        if len(self.masking_mix) != 3 or not shares or abs(sum(self.masking_mix) - 1) > 1e-8:
            raise BertError(f"--masking_mix={masking_mix_text(self.masking_mix)}: {_NO_MASKING_MIX}.")

    @property
    def seed(self) -> int:
        """The seed as numpy takes it, not negative."""
        return self.random_seed % (1 << 64)

    @property
    def tokens_per_instance(self) -> int:
        """How many tokens an instance has besides [CLS] and the [SEP] of each segment."""
        return self.max_seq_length - (3 if self.next_sentence else 2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordSettings(JobSettings):
    """Settings of `create_pretraining_data`."""

    input_file: str | list[str] = setting(
        group=DATA, released=True,
        help="Text files, one sentence per line, an empty line between documents: paths and globs, separated by "
             "commas.")
    output_file: str = setting(
        group=DATA, released=True,
        help="TFRecord files to write, separated by commas. name@N stands for name-00000-of-0000N and so on.")
    corpus: CorpusSettings = nested(CorpusSettings)
    instances: InstanceSettings = nested(InstanceSettings)
    work_dir: str | None = setting(
        None, group=SAVING,
        help="Local folder for intermediate files. Default: a hidden folder next to the output, or one in the folder "
             "for temporary files where the output is remote.")
    overwrite: bool = setting(False, group=SAVING, help="Replace output files that exist.")
    log_examples: int = setting(
        0, group=SAVING, at_least=0, help="Number of finished instances to print as word pieces.")

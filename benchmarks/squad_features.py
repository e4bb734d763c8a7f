"""Speed of making SQuAD features for training and prediction, in one process.

    python -m benchmarks.squad_features --train_file=train-v1.1.json --vocab_file=vocab.txt

Prints seconds, and CPU-seconds of all threads, of reading the file (JSON, checks, finding answers), of making the
windows for training, and of making them for prediction (with the maps back to the text). Then the numbers of windows
and word pieces, the share of padding if every window were padded to --max_seq_length, and the peak memory of the
process. Start-up (imports, building the tokenizer) is left out. Times are the median of --repeats runs.
"""

import dataclasses
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from foundation import command
from foundation.settings import DATA, EVALUATION, Settings, setting
from tasks.squad import features as squad_features
from tasks.squad import files as squad_files
from tasks.squad.files import Question, SquadSettings
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeatureSettings(Settings):
    """One command; defaults are those of run_squad.py."""

    train_file: str = setting(group=DATA, help="Questions and answers in SQuAD's layout.")
    version_2_with_negative: bool = setting(False, group=DATA, help="Some questions have no answer.")
    vocab_file: str = setting(group=DATA, help="Vocabulary, one word piece per line.")
    do_lower_case: bool = setting(True, group=DATA, help="Whether the vocabulary is of lower-cased text.")
    max_seq_length: int = setting(384, at_least=4, group=DATA, help="Maximum word pieces of a window.")
    doc_stride: int = setting(
        128, at_least=1, group=DATA, help="Word pieces from the start of one window to the next.")
    max_query_length: int = setting(64, at_least=1, group=DATA, help="Maximum word pieces of a question.")
    repeats: int = setting(3, at_least=1, group=EVALUATION, help="Runs of each row; the median is reported.")


def main(settings: FeatureSettings) -> None:
    """Prints one row per job, then what was made."""
    tokenizer = Tokenizer(Vocabulary.from_file(settings.vocab_file), settings.do_lower_case)
    tokenizer.encode("Warm up.")
    squad = SquadSettings(
        max_seq_length=settings.max_seq_length, doc_stride=settings.doc_stride,
        max_query_length=settings.max_query_length, version_2_with_negative=settings.version_2_with_negative)

    def measure(name: str, function: Callable[[], Any]) -> Any:
        """Prints a row with the median times of a call; returns the last call's result."""
        runs = []
        for _ in range(settings.repeats):
            result = None  # frees the memory of the run before
            start, cpu = time.monotonic(), time.process_time()
            result = function()
            runs.append((time.monotonic() - start, time.process_time() - cpu))
        seconds, cpu_seconds = map(statistics.median, zip(*runs))
        print(f"{name:24}{seconds:8.2f} s{cpu_seconds:8.2f} CPU-s", flush=True)
        return result

    questions = measure("read the file", lambda: _read(settings))
    features = measure(
        "windows for training", lambda: squad_features.make_features(questions, tokenizer, squad, True))
    measure("windows for prediction", lambda: squad_features.make_features(questions, tokenizer, squad, False))
    pieces = int(features.row_splits[-1])
    print(f"{len(questions):,} questions, {len(features):,} windows, {pieces:,} word pieces; padded to "
          f"{settings.max_seq_length}, {1 - pieces / (len(features) * settings.max_seq_length):.0%} would be padding; "
          f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:,.0f} MB")


def _read(settings: FeatureSettings) -> Sequence[Question]:
    questions = squad_files.read(settings.train_file)
    return squad_files.trainable(questions, settings.version_2_with_negative, settings.train_file)[0]


if __name__ == "__main__":
    command.run_with(main, FeatureSettings, __doc__)

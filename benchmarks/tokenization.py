"""Speed of tokenization in MB of text per CPU-second, next to peers.

    python -m benchmarks.tokenization --vocab_file=vocab.txt --input_file='books/*.txt'

Lines are tokenised in batches of 1,024. Times are medians of CPU time over all threads, without reading. The peers
(tensorflow-text's own BERT tokenizers and Hugging Face's `tokenizers` in Rust) do not give the release's ids on all
text. Hugging Face's is left out, with a note, where it is not installed (`benchmarks/requirements-peers.txt`).
"""

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from foundation import command, files
from foundation.settings import DATA, EVALUATION, Settings, setting
from tokenization.vocabulary import Vocabulary

_BATCH = 1024

Rows = dict[str, Callable[[Any], Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizationSettings(Settings):
    """One command."""

    input_file: str = setting(group=DATA, help="Text to tokenise: paths and globs, separated by commas.")
    vocab_file: str = setting(group=DATA, help="Vocabulary, one word piece per line.")
    cased_vocab_file: str | None = setting(
        None, group=DATA, help="Vocabulary of the cased rows. Default: --vocab_file.")
    max_megabytes: float = setting(8.0, at_least=0.01, group=DATA, help="MB of the text to tokenise.")
    repeats: int = setting(3, at_least=1, group=EVALUATION, help="Runs of each row; the median is reported.")


def megabytes_per_cpu_second(run: Callable[[Any], Any], batches: Sequence[Any], megabytes: float, repeats: int
                             ) -> float:
    """Median speed of `run(batch)` over all batches, after one unmeasured batch that traces and warms up."""
    run(batches[0])
    seconds = []
    for _ in range(repeats):
        begin = time.process_time()
        for batch in batches:
            run(batch)
        seconds.append(time.process_time() - begin)
    return megabytes / statistics.median(seconds)


def ours(uncased: Vocabulary, cased: Vocabulary) -> tuple[Rows, Rows]:
    """Rows of this project: functions of a list of lines by name, and functions of a string tensor."""
    import tensorflow as tf

    from tokenization.graph import GraphTokenizer
    from tokenization.tokenizer import Tokenizer

    def in_graph(vocabulary: Vocabulary, do_lower_case: bool) -> Callable[[Any], Any]:
        tokenizer = GraphTokenizer(vocabulary, do_lower_case)
        return tf.function(tokenizer, input_signature=[tf.TensorSpec([None], tf.string)])

    offline_uncased, offline_cased = Tokenizer(uncased), Tokenizer(cased, do_lower_case=False)
    lines: Rows = {
        "offline, uncased": offline_uncased.encode_lines,
        "offline, cased": offline_cased.encode_lines,
        "offline, uncased, with offsets": offline_uncased.encode_lines_with_offsets,
        "offline, cased, with offsets": offline_cased.encode_lines_with_offsets,
    }
    tensors = {
        "in graph, uncased": in_graph(uncased, True),
        "in graph, cased": in_graph(cased, False),
    }
    return lines, tensors


def tensorflow_text_peers(vocabulary: Vocabulary, vocab_file: str) -> Rows:
    """Rows of tensorflow-text, uncased: functions of a string tensor."""
    import tensorflow as tf
    import tensorflow_text as tf_text

    fast = tf_text.FastBertTokenizer(list(vocabulary.tokens), lower_case_nfd_strip_accents=True)
    plain = tf_text.BertTokenizer(vocab_file, lower_case=True)
    signature = [tf.TensorSpec([None], tf.string)]
    return {
        "tensorflow-text FastBertTokenizer": tf.function(fast.tokenize, input_signature=signature),
        "tensorflow-text BertTokenizer": tf.function(plain.tokenize, input_signature=signature),
    }


def hugging_face_peers(vocabulary: Vocabulary) -> Rows:
    """Rows of Hugging Face's tokenizers, uncased: functions of a list of lines.

    Raises:
        ImportError: it is not installed.
    """
    import tokenizers

    bert = tokenizers.Tokenizer(tokenizers.models.WordPiece(
        dict(vocabulary.ids), unk_token="[UNK]", max_input_chars_per_word=200))
    bert.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    bert.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return {
        "Hugging Face tokenizers": bert.encode_batch,
        "Hugging Face tokenizers, no offsets": bert.encode_batch_fast,
    }


def main(settings: TokenizationSettings) -> None:
    """Prints one row per tokenizer."""
    text = "\n".join(files.read_text(path) for path in files.match(settings.input_file, "input_file"))
    text = text.encode()[: int(settings.max_megabytes * 1e6)].decode(errors="ignore")
    megabytes = len(text.encode()) / 1e6
    lines = text.split("\n")
    uncased = Vocabulary.from_file(settings.vocab_file)
    cased = Vocabulary.from_file(settings.cased_vocab_file or settings.vocab_file)
    # Imported here: mistakes in flags and files have been reported by now.
    import tensorflow as tf

    line_batches = [lines[begin : begin + _BATCH] for begin in range(0, len(lines), _BATCH)]
    tensor_batches = [tf.constant(batch) for batch in line_batches]
    on_lines, on_tensors = ours(uncased, cased)
    note = ""
    try:
        on_lines.update(hugging_face_peers(uncased))
    except ImportError:
        note = "Hugging Face tokenizers: not installed."
    on_tensors.update(tensorflow_text_peers(uncased, settings.vocab_file))

    ascii_share = sum(line.isascii() for line in lines) / len(lines)
    print(f"{megabytes:.1f} MB, {len(lines)} lines, {ascii_share:.0%} of them ASCII")
    print(f"{'':36}  MB per CPU-second")
    for rows, batches in ((on_lines, line_batches), (on_tensors, tensor_batches)):
        _print_speeds(rows, batches, megabytes, settings.repeats)
    if note:
        print(note)


def _print_speeds(rows: Mapping[str, Callable[[Any], Any]], batches: Sequence[Any], megabytes: float, repeats: int
                  ) -> None:
    for name, run in rows.items():
        print(f"{name:36}  {megabytes_per_cpu_second(run, batches, megabytes, repeats):8.1f}", flush=True)


if __name__ == "__main__":
    command.run_with(main, TokenizationSettings, __doc__)

"""Speed of tokenization, in MB of text per CPU-second, beside peers.

    python -m benchmarks.tokenization --vocab_file=vocab.txt --input_file='books/*.txt'

Lines go in batches of 1,024; figures are medians of CPU time over all threads, reading aside. The
peers (tensorflow-text's own BERT tokenizers and Hugging Face's Rust `tokenizers`) do not give the release's ids on
all text; one that is not installed is left out with a word (`benchmarks/requirements-peers.txt` installs them).
"""

import statistics
import time

from absl import flags

from foundation import command, files
from tokenization.vocabulary import Vocabulary

FLAGS = flags.FLAGS

flags.DEFINE_string("vocab_file", None, "Vocabulary, one word piece a line.", required=True)
flags.DEFINE_string("cased_vocab_file", None, "Vocabulary of the cased rows; by default vocab_file.")
flags.DEFINE_string("input_file", None, "Text to tokenise: files and globs, separated by commas.", required=True)
flags.DEFINE_float("max_megabytes", 8, "How much of the text to take.", lower_bound=0.01)
flags.DEFINE_integer("repeats", 3, "Runs whose median is printed.", lower_bound=1)

_BATCH = 1024


def megabytes_per_cpu_second(run, batches, megabytes, repeats):
    """Median speed of `run(batch)` over all batches; one batch first, unmeasured, to trace and warm up."""
    run(batches[0])
    seconds = []
    for _ in range(repeats):
        begin = time.process_time()
        for batch in batches:
            run(batch)
        seconds.append(time.process_time() - begin)
    return megabytes / statistics.median(seconds)


def ours(uncased, cased):
    """Rows of this project, {name: function of a batch of lines}; graph rows get string tensors."""
    import tensorflow as tf

    from tokenization.graph import GraphTokenizer
    from tokenization.tokenizer import Tokenizer

    def in_graph(vocabulary, do_lower_case):
        tokenizer = GraphTokenizer(vocabulary, do_lower_case)
        return tf.function(tokenizer, input_signature=[tf.TensorSpec([None], tf.string)])

    offline_uncased, offline_cased = Tokenizer(uncased), Tokenizer(cased, do_lower_case=False)
    lines = {
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


def tensorflow_text_peers(vocabulary, vocab_file):
    """Rows of tensorflow-text, uncased, over string tensors."""
    import tensorflow as tf
    import tensorflow_text as tf_text

    fast = tf_text.FastBertTokenizer(list(vocabulary.tokens), lower_case_nfd_strip_accents=True)
    plain = tf_text.BertTokenizer(vocab_file, lower_case=True)
    signature = [tf.TensorSpec([None], tf.string)]
    return {
        "tensorflow-text FastBertTokenizer": tf.function(fast.tokenize, input_signature=signature),
        "tensorflow-text BertTokenizer": tf.function(plain.tokenize, input_signature=signature),
    }


def hugging_face_peers(vocabulary):
    """Rows of Hugging Face's tokenizers, uncased, over lines.

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


def main(_):
    import tensorflow as tf

    text = "\n".join(files.read_text(path) for path in files.match(FLAGS.input_file, "input_file"))
    text = text.encode()[: int(FLAGS.max_megabytes * 1e6)].decode(errors="ignore")
    megabytes = len(text.encode()) / 1e6
    lines = text.split("\n")
    line_batches = [lines[begin : begin + _BATCH] for begin in range(0, len(lines), _BATCH)]
    tensor_batches = [tf.constant(batch) for batch in line_batches]
    uncased = Vocabulary.from_file(FLAGS.vocab_file)
    cased = Vocabulary.from_file(FLAGS.cased_vocab_file or FLAGS.vocab_file)

    on_lines, on_tensors = ours(uncased, cased)
    notes = []
    try:
        on_lines.update(hugging_face_peers(uncased))
    except ImportError:
        notes.append("Hugging Face tokenizers: not installed.")
    on_tensors.update(tensorflow_text_peers(uncased, FLAGS.vocab_file))

    print(f"{megabytes:.1f} MB, {len(lines)} lines, {_ascii_share(lines):.0f} % of them ASCII")
    print(f"{'':36}  MB per CPU-second")
    for rows, batches in ((on_lines, line_batches), (on_tensors, tensor_batches)):
        for name, run in rows.items():
            print(f"{name:36}  {megabytes_per_cpu_second(run, batches, megabytes, FLAGS.repeats):8.1f}", flush=True)
    for note in notes:
        print(note)


def _ascii_share(lines):
    return 100 * sum(line.isascii() for line in lines) / len(lines)


if __name__ == "__main__":
    command.run(main)

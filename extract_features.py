"""Writes the vectors that a pre-trained BERT gives to text: of each token, or one for each line.

    python extract_features.py --input_file=sentences.txt --output_file=vectors.jsonl \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --layers=-1,-2,-3,-4
    python extract_features.py --input_file=sentences.txt --output_file=sentences.npz \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --layers=-1 --pooling=mean

A line is one sequence, or a pair written `first ||| second`. The ending of --output_file chooses the format:

    .npz    input_ids, segment_ids [tokens], row_splits [lines + 1]; layer_-1 and so on [tokens, hidden]: line n has
            the tokens row_splits[n] to row_splits[n + 1]. With --pooling only layer_-1 [lines, hidden] or
            pooled_output.
    .arrow  an Arrow IPC file: linex_index, and lists of input_ids, tokens and vectors (needs pip install pyarrow)
    other   the release's JSON, an object a line
"""

import dataclasses

from absl import flags

from extraction import extractor, vector_files
from foundation import command
from foundation.errors import BertError
from training import flags as training_flags

training_flags.define_model()
training_flags.define_hardware()
flags.adopt_module_key_flags(training_flags)  # --help shows them too
# The vectors are the result: they come as exact as the release's, unless told otherwise.
flags.FLAGS.set_default("precision", "float32")
flags.DEFINE_string("input_file", None, "Text, UTF-8, a sequence a line: `first` or `first ||| second`.")
flags.DEFINE_string("output_file", None, "What is written.")
flags.DEFINE_string("layers", "-1,-2,-3,-4", "Layers, with commas between: 0 is the first, -1 the last.")
flags.DEFINE_integer("max_seq_length", 128, "Most word pieces of a sequence, [CLS] and [SEP] counted.", lower_bound=3)
flags.DEFINE_bool("do_lower_case", None, "Whether the vocabulary is of lower-cased text; as --init_checkpoint says, "
                  "or true, where not given.")
flags.DEFINE_integer("batch_size", 32, "Sequences of a batch, over all devices.", lower_bound=1)
flags.DEFINE_enum("pooling", "none", extractor.POOLING, "One vector a line: pooler (the model's own, of the last "
                  "layer), cls (that of [CLS]), mean (over the tokens), the last two of each of --layers.")
flags.DEFINE_enum("output_format", "auto", vector_files.FORMATS, "auto: by the ending of --output_file.")
flags.DEFINE_enum("output_dtype", "float32", ("float32", "float16"), "Numbers in npz and arrow files.")
flags.DEFINE_bool("use_one_hot_embeddings", False, "Kept for the release's commands: embeddings are gathered.")
flags.mark_flags_as_required(["input_file", "output_file", "init_checkpoint"])


def main(_):
    """Flags to one call."""
    values = flags.FLAGS
    if values.use_one_hot_embeddings:
        print("--use_one_hot_embeddings is ignored: gathering gives the same vectors, faster.")
    given = {"start": training_flags.start(values), "hardware": training_flags.hardware(values),
             "layers": _layers(values.layers)}
    names = [field.name for field in dataclasses.fields(extractor.ExtractionSettings) if field.name not in given]
    settings = extractor.ExtractionSettings(**given, **{name: values[name].value for name in names})
    print(extractor.run(settings).summary())


def _layers(text):
    try:
        return tuple(int(each) for each in text.split(","))
    except ValueError:
        raise BertError(f"--layers={text}: not whole numbers with commas between, as -1,-2.") from None


if __name__ == "__main__":
    command.run(main)

"""Converts a checkpoint between Google's, Hugging Face's and Keras' format, every tensor bit for bit.

    python convert_checkpoint.py --input=uncased_L-12_H-768_A-12 --output=bert-base --format=huggingface

--input is whatever --init_checkpoint takes: a bert_model.ckpt prefix, a Hugging Face folder or .safetensors file, a
.weights.h5 file, or a folder of this project. docs/checkpoints.md has the names and what each format can hold.
"""

from absl import flags

from foundation import command
from modeling.checkpoints import convert

FLAGS = flags.FLAGS
flags.DEFINE_string("input", None, "The checkpoint: a prefix, a file or a folder.")
flags.DEFINE_string("output", None, "The folder to write.")
flags.DEFINE_enum("format", None, convert.FORMATS, "google: bert_model.ckpt and bert_config.json. huggingface: "
                  "model.safetensors and config.json. keras: model.weights.h5 and bert_config.json.")
flags.DEFINE_string("bert_config_file", None, "The configuration, where it is not beside the checkpoint.")
flags.DEFINE_string("vocab_file", None, "The vocabulary, where it is not beside the checkpoint.")
flags.DEFINE_bool("do_lower_case", None, "Whether the vocabulary is of lower-cased text, where the checkpoint does not "
                  "say.")
flags.mark_flags_as_required(["input", "output", "format"])


def main(_):
    """Flags to one call."""
    print(convert.convert(FLAGS.input, FLAGS.output, FLAGS.format, FLAGS.bert_config_file, FLAGS.vocab_file,
                          FLAGS.do_lower_case).summary())


if __name__ == "__main__":
    command.run(main)

"""Converts a checkpoint between Google's, Hugging Face's and Keras' format, every tensor bit for bit.

    python convert_checkpoint.py --input=uncased_L-12_H-768_A-12 --output=bert-base --format=huggingface

--input takes the same paths as --init_checkpoint: a bert_model.ckpt prefix, a Hugging Face folder or .safetensors file,
a .weights.h5 file, or a run's folder of this project. docs/checkpoints.md lists the names, and what each format can
hold.
"""

import foundation.start  # noqa: F401  (first: from here on, Ctrl-C is one line)
from foundation import command
from modeling.checkpoints import convert
from modeling.checkpoints.convert import ConversionSettings


def main(settings: ConversionSettings) -> None:
    """Converts and prints a report."""
    print(convert.convert(settings.input, settings.output, settings.format, settings.bert_config_file,
                          settings.vocab_file, settings.do_lower_case).summary())


def cli() -> None:
    """The console command."""
    command.run_with(main, ConversionSettings, __doc__)


if __name__ == "__main__":
    cli()

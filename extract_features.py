"""Writes the vectors that a pre-trained BERT gives to text: one for each token, or one for each line.

    python extract_features.py --input_file=sentences.txt --output_file=vectors.jsonl \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --layers=-1,-2,-3,-4
    python extract_features.py --input_file=sentences.txt --output_file=sentences.npz \\
        --init_checkpoint=uncased_L-12_H-768_A-12 --layers=-1 --pooling=mean

A line is one sequence, or a pair written `first ||| second`. The ending of --output_file selects the format:

    .npz     input_ids, segment_ids [tokens], row_splits [lines + 1]; layer_-1 and so on [tokens, hidden]: line n has
             the tokens row_splits[n] to row_splits[n + 1]. With --pooling only layer_-1 [lines, hidden] or
             pooled_output.
    .arrow   an Arrow IPC file: linex_index, and lists of input_ids, tokens and vectors (needs pip install pyarrow)
    other    the release's JSON, an object for each line
"""

import foundation.start  # noqa: F401  (first: from here on, Ctrl-C is one line)
from extraction import driver
from extraction.settings import ExtractionSettings
from foundation import command


def main(settings: ExtractionSettings) -> None:
    """Settings to one call."""
    if settings.use_one_hot_embeddings:
        print("--use_one_hot_embeddings is ignored: gathering gives the same vectors, faster.")
    print(driver.run(settings).summary())


def cli() -> None:
    """The command."""
    command.run_with(main, ExtractionSettings, __doc__)


if __name__ == "__main__":
    cli()

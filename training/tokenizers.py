"""The tokenizer that belongs to a model."""

from foundation.errors import BertError
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary


def tokenizer_of(start):
    """Makes the tokenizer of a run's model.

    Args:
        start: training.initial_model.StartingPoint.

    Returns:
        path of the vocabulary; Tokenizer.

    Raises:
        BertError: no vocabulary, or one with more word pieces than the model.
    """
    path = start.vocab_file
    if not path:
        raise BertError("Which vocabulary? Give --vocab_file: there is no vocab.txt beside the checkpoint "
                        "(convert_checkpoint.py makes one of a tokenizer.json).")
    vocabulary = Vocabulary.from_file(path)
    if vocabulary.size > start.config.vocab_size:
        raise BertError(f"{path} has {vocabulary.size} word pieces, the model {start.config.vocab_size} "
                        f"({start.config_file}).")
    return path, Tokenizer(vocabulary, start.do_lower_case)

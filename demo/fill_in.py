"""Fill-in-the-blank: what a pre-trained BERT puts in the place of a hidden word."""

import dataclasses

import numpy as np

from modeling.checkpoints import load
from modeling.config import BertConfig
from modeling.models import PretrainingModel
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Blank:
    """One hidden word and the guesses for it.

    Attributes:
        sentence: the text, with `____` for the hidden word.
        answer: the hidden word.
        guesses: list of (piece, probability), best first.
    """

    sentence: str
    answer: str
    guesses: list

    def line(self):
        """One line for the screen."""
        guesses = "  ".join(f"{piece} {probability:.0%}" for piece, probability in self.guesses)
        right = "right" if self.guesses[0][0] == self.answer else f"was: {self.answer}"
        return f"  {self.sentence}\n      {guesses}   ({right})"


class BlankFiller:
    """Guesses hidden words with the model of a folder.

    Args:
        folder: a final model: bert_config.json, vocab.txt, bert_model.ckpt.
        do_lower_case: as the vocabulary was made.
    """

    def __init__(self, folder, do_lower_case=True):
        self.vocabulary = Vocabulary.from_file(f"{folder}/vocab.txt")
        self.tokenizer = Tokenizer(self.vocabulary, do_lower_case)
        self.model = PretrainingModel(BertConfig.from_json_file(f"{folder}/bert_config.json"))
        load.load_into(self.model, folder)

    def hide_each(self, sentences, seed, guesses=3):
        """Hides one whole word of each sentence and guesses it.

        Args:
            sentences: list of str, each shorter than the model's positions.
            seed: chooses the words.
            guesses: how many.

        Returns:
            list of Blank, a sentence without a word of letters left out.
        """
        rng = np.random.default_rng(seed)
        hidden = [self._hide(sentence, rng) for sentence in sentences]
        hidden = [each for each in hidden if each]
        length = max(len(ids) for _, ids, _, _ in hidden)
        ids = np.full((len(hidden), length), self.vocabulary.pad_id)
        for row, (_, row_ids, _, _) in zip(ids, hidden):
            row[: len(row_ids)] = row_ids
        features = {"input_ids": ids, "input_mask": (ids != self.vocabulary.pad_id).astype(np.int32),
                    "segment_ids": np.zeros_like(ids),
                    "masked_lm_positions": np.array([[position] for _, _, position, _ in hidden])}
        logits = np.asarray(self.model(features)["masked_lm_logits"])[:, 0]
        probabilities = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probabilities /= probabilities.sum(axis=-1, keepdims=True)
        return [
            Blank(text, answer, [(self.vocabulary.tokens[index], float(row[index]))
                                 for index in np.argsort(-row)[:guesses]])
            for (text, _, _, answer), row in zip(hidden, probabilities)
        ]

    def _hide(self, sentence, rng):
        """(text with a blank, ids with [MASK], its position, the hidden piece), or None."""
        vocabulary = self.vocabulary
        ids, starts, ends = self.tokenizer.encode_with_offsets(sentence)
        tokens = vocabulary.tokens_of(ids)
        whole = [index for index, token in enumerate(tokens)
                 if token.isalpha() and len(token) > 2 and not [*tokens, "."][index + 1].startswith("##")]
        if not whole:
            return None
        index = int(rng.choice(whole))
        text = f"{sentence[: starts[index]]}____{sentence[ends[index] :]}"
        masked = [vocabulary.cls_id, *ids[:index], vocabulary.mask_id, *ids[index + 1 :], vocabulary.sep_id]
        return text, masked, index + 1, tokens[index]

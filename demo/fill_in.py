"""Fill-in-the-blank: the words that a pre-trained BERT predicts for a hidden word."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from modeling.models import PretrainingModel
from tokenization.tokenizer import Tokenizer
from training import initial_model
from training.settings import InitialModelSettings

_MIN_LETTERS = 3


@dataclasses.dataclass(frozen=True)
class Blank:
    """One hidden word and its predictions.

    Attributes:
        sentence: the text, with `____` for the hidden word.
        answer: the hidden word.
        guesses: word pieces with their probabilities, best first.
    """

    sentence: str
    answer: str
    guesses: list[tuple[str, float]]

    def line(self) -> str:
        """Two lines for the console."""
        guesses = "  ".join(f"{piece} {probability:.0%}" for piece, probability in self.guesses)
        verdict = "right" if self.guesses[0][0] == self.answer else f"answer: {self.answer}"
        return f"  {self.sentence}\n      {guesses}   ({verdict})"


class BlankFiller:
    """Predicts hidden words.

    Args:
        model: PretrainingModel.
        tokenizer: of the model's vocabulary.

    `open_model` makes one.
    """

    def __init__(self, model: PretrainingModel, tokenizer: Tokenizer) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.vocabulary = tokenizer.vocabulary

    def hide_each(self, sentences: Sequence[str], seed: int, guesses: int = 3) -> list[Blank]:
        """Hides one whole word of each sentence and predicts it.

        Args:
            sentences: each with fewer word pieces than the model has positions.
            seed: chooses the words.
            guesses: predictions for each.

        Returns:
            a Blank for each sentence that has a word of letters only.
        """
        rng = np.random.default_rng(seed)
        hidden = [each for each in (self._hide(sentence, rng) for sentence in sentences) if each]
        if not hidden:
            return []
        logits = np.asarray(self.model(self._features(hidden))["masked_lm_logits"])[:, 0]
        probabilities = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probabilities /= probabilities.sum(axis=-1, keepdims=True)
        return [
            Blank(each.text, each.answer, [(self.vocabulary.tokens[index], float(row[index]))
                                           for index in np.argsort(-row)[:guesses]])
            for each, row in zip(hidden, probabilities)
        ]

    def _hide(self, sentence: str, rng: np.random.Generator) -> "_Hidden | None":
        """Hides a word drawn at random; None where the sentence has no word of letters only."""
        vocabulary = self.vocabulary
        ids, starts, ends = self.tokenizer.encode_with_offsets(sentence)
        tokens = vocabulary.tokens_of(ids)
        whole = [index for index, (token, following) in enumerate(zip(tokens, [*tokens[1:], "."]))
                 if token.isalpha() and len(token) >= _MIN_LETTERS and not following.startswith("##")]
        if not whole:
            return None
        index = int(rng.choice(whole))
        text = f"{sentence[: starts[index]]}____{sentence[ends[index] :]}"
        masked = [vocabulary.cls_id, *ids[:index], vocabulary.mask_id, *ids[index + 1 :], vocabulary.sep_id]
        return _Hidden(text, masked, index + 1, tokens[index])

    def _features(self, hidden: "Sequence[_Hidden]") -> dict[str, np.ndarray]:
        """The rows as the model reads them, padded to the longest."""
        ids = np.full((len(hidden), max(len(each.ids) for each in hidden)), self.vocabulary.pad_id)
        for row, each in zip(ids, hidden):
            row[: len(each.ids)] = each.ids
        return {"input_ids": ids, "input_mask": (ids != self.vocabulary.pad_id).astype(np.int32),
                "segment_ids": np.zeros_like(ids),
                "masked_lm_positions": np.array([[each.position] for each in hidden])}


@dataclasses.dataclass(frozen=True)
class _Hidden:
    """A sentence with a hidden word.

    Attributes:
        text: with a blank for the word.
        ids: with [MASK] for it, between [CLS] and [SEP].
        position: of [MASK].
        answer: the word.
    """

    text: str
    ids: list[int]
    position: int
    answer: str


def open_model(folder: str) -> BlankFiller:
    """Loads the model of a folder that is laid out as a released one."""
    initial = initial_model.find(InitialModelSettings(init_checkpoint=folder))
    model = PretrainingModel(initial.config)
    initial.load(model)
    return BlankFiller(model, initial.tokenizer())

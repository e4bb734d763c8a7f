"""Named entities: a label for each word, predicted at its first word piece (paper, section 5.3)."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from foundation import files, run_files
from foundation.errors import BertError
from inputs.features import Features
from tasks.labels import Labels
from tasks.ner import features, scores
from tasks.ner.files import NerFiles, NerSettings, Sentence
from tasks.task import FileTask, Network, Predicted

if TYPE_CHECKING:
    from tokenization.tokenizer import Tokenizer


# The kernel of a BiLSTM's state, [units, 4 * units], in `modeling.feature_tagger`.
_STATE = "tagger/bilstm_0/forward_lstm/lstm_cell/recurrent_kernel"


class NerTask(FileTask):
    """The task (`tasks.task.Task`) of labelling words.

    Args:
        settings: the data and the model.
    """

    name = "ner"
    metric = "f1"
    dev_splits: tuple[str, ...] = ("dev",)
    test_splits: tuple[str, ...] = ("test",)
    token_outputs: tuple[str, ...] = ("logits",)

    def __init__(self, settings: NerSettings) -> None:
        self.settings = settings
        self.data = NerFiles(settings)

    @property
    def labels(self) -> Labels:
        """The tags."""
        return Labels(self.data.labels)

    def fingerprint(self) -> dict[str, Any]:
        """Labels, length and context."""
        return {"family": self.name, "labels": list(self.data.labels), "max_seq_length": self.max_seq_length,
                "document_context": self.settings.document_context}

    def features(self, examples: Sequence[Sentence], tokenizer: "Tokenizer", training: bool) -> Features:
        """Rows of word pieces. Examples are a whole split: sentences are each other's context."""
        return features.make_features(examples, tokenizer, self.data.labels, self.max_seq_length,
                                      self.settings.document_context)

    def terms_per_row(self, features: Features) -> float:
        """Mean number of labelled words in a row."""
        return float(np.count_nonzero(features.tokens["token_labels"] >= 0) / len(features))

    def network(self) -> Network:
        """A layer on the encoder, or a BiLSTM on the frozen one."""
        from tasks.ner.network import NerNetwork

        return NerNetwork(self.settings, len(self.data.labels))

    def check_weights(self, place: str, shapes: Mapping[str, Sequence[int]]) -> None:
        """Raises BertError where --lstm_size is not that of the weights."""
        if not self.settings.feature_based:
            return
        size = [*shapes.get(_STATE, ()), 0][0]
        if size != self.settings.lstm_size:
            found = f"a BiLSTM of {size:,} units" if size else "no BiLSTM"
            raise BertError(f"{place}: has {found}; by --lstm_size or {run_files.TASK} it is one of "
                            f"{self.settings.lstm_size:,}.")

    def score(self, split: str, predicted: Predicted) -> dict[str, float]:
        """Entity-level F1, precision and recall and the accuracy of tags, in percent as conlleval prints them; and the
        mean loss of the words.
        """
        gold = [list(sentence.tags) for sentence in predicted.examples]
        loss = scores.loss(predicted.features.tokens["token_labels"], np.concatenate(predicted.outputs["logits"]))
        return {**scores.score(gold, self.predictions(predicted)), "loss": loss}

    def write(self, split: str, predicted: Predicted, folder: str, metrics: Mapping[str, float]) -> list[str]:
        """Writes `predictions.txt`, and `entities.tsv` where tags are known.

        The first has a line for each word, as conlleval reads it: the word (white space in it as `_`), its tag where
        known, the predicted tag; an empty line ends a sentence. The second has the scores of each type of entity.
        """
        examples, tags = predicted.examples, self.predictions(predicted)
        path = os.path.join(folder, "predictions.txt")
        files.write_text(path, "".join(f"{_block(*each)}\n" for each in zip(examples, tags)))
        if examples[0].tags is None:
            return [path]
        gold = [list(sentence.tags) for sentence in examples]
        table = ["entity\tprecision\trecall\tf1\tcount"]
        table += [f"{each.entity}\t{each.precision:.2f}\t{each.recall:.2f}\t{each.f1:.2f}\t{each.support}"
                  for each in scores.entity_scores(gold, tags)]
        table_path = os.path.join(folder, "entities.tsv")
        files.write_text(table_path, "".join(f"{line}\n" for line in table))
        return [path, table_path]

    def predictions(self, predicted: Predicted) -> list[list[str]]:
        """The best label of each word of each sentence; the parts of a long sentence are joined again."""
        # Each word is the own word of one row, and rows are in order.
        starts = predicted.features.tokens["word_starts"] > 0
        best = np.concatenate([np.argmax(logits, axis=-1) for logits in predicted.outputs["logits"]])[starts]
        tags = np.array(self.data.labels, object)[best].tolist()
        ends = np.cumsum([len(sentence.words) for sentence in predicted.examples]).tolist()
        return [tags[end - len(sentence.words):end] for sentence, end in zip(predicted.examples, ends)]

    def describe(self, metrics: Mapping[str, float]) -> dict[str, Any]:
        """Labels, their scheme, and the model."""
        return {**{name: getattr(self.settings, name) for name in self.settings.described},
                "labels": list(self.data.labels), "tag_scheme": self.data.tag_scheme or "auto"}


def _block(sentence: Sentence, predicted: Sequence[str]) -> str:
    """Lines of one sentence."""
    words = [re.sub(r"\s", "_", word) for word in sentence.words]
    columns = [words, predicted] if sentence.tags is None else [words, sentence.tags, predicted]
    return "".join(f"{' '.join(row)}\n" for row in zip(*columns))

"""Named entities: a label for each word, from its first piece (paper, section 5.3)."""

import dataclasses
import functools
import os
import re
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from seqeval.metrics import sequence_labeling

from foundation import files
from foundation.errors import BertError
from modeling.feature_tagger import FeatureTaggerModel
from modeling.models import TokenClassificationModel
from tasks import ner_features, ner_files

# What the files are called in --data_dir: plainly, or as CoNLL-2003 is distributed.
FILE_NAMES = {
    "train": ("train.txt", "eng.train"),
    "dev": ("dev.txt", "valid.txt", "eng.testa"),
    "test": ("test.txt", "eng.testb"),
}


@dataclasses.dataclass(frozen=True)
class FeatureBased:
    """The encoder frozen under a BiLSTM: see FeatureTaggerModel for both values."""

    features: str = "concat_last_four"
    lstm_size: int = 768


class NerTask:
    """Token labelling on files of words and tags (`tasks.ner_files`).

    Args:
        paths: dict of "train", "dev", "test" to path, or None where a split is not given.
        max_seq_length: int, at least 3.
        labels: list of str; None: those of the training file.
        tag_scheme: "bio", "iob1", or "auto": that of the training file.
        document_context: fill each row with the words around its sentence.
        feature_based: FeatureBased, or None to fine-tune the whole model.

    Raises:
        BertError: labels without `O`, or rows too short to hold a word.
    """

    name = "ner"
    metric = "f1"
    dev_splits = ("dev",)
    test_splits = ("test",)
    token_outputs = ("logits",)

    def __init__(self, paths, max_seq_length, labels=None, tag_scheme="auto", document_context=False,
                 feature_based=None):
        if max_seq_length < 3:
            raise BertError(f"--max_seq_length={max_seq_length} leaves no room between [CLS] and [SEP]; give more.")
        if labels and ner_files.OUTSIDE not in labels:
            raise BertError("--labels lacks O, the tag of words outside of entities. Add it.")
        self.paths = paths
        self.max_seq_length = max_seq_length
        self.document_context = document_context
        self.feature_based = feature_based
        self._labels, self._tag_scheme = labels, tag_scheme

    def files(self, split):
        """The file of a split."""
        path = self.paths.get(split)
        if not path:
            raise BertError(f"No {split} file is named. Give --{split}_file, or --data_dir with "
                            f"{' or '.join(FILE_NAMES[split])} in it.")
        if not tf.io.gfile.exists(path):
            raise BertError(f"{path}: no such file (--{split}_file).")
        return [path]

    @functools.cached_property
    def labels(self):
        """Tuple of str, in the order of the scores."""
        return tuple(self._labels) if self._labels else self._found_in_training[0]

    @functools.cached_property
    def tag_scheme(self):
        """"bio" or "iob1"; None where neither a training file nor a flag says it."""
        if self._tag_scheme != "auto":
            return self._tag_scheme
        return self._found_in_training[1] if self.paths.get("train") or not self._labels else None

    @functools.cached_property
    def _found_in_training(self):
        sentences = self._tagged("train")
        scheme = None if self._tag_scheme != "auto" else ner_files.scheme_of(sentences)
        return ner_files.labels_of(sentences), scheme

    def _tagged(self, split):
        sentences = ner_files.read(*self.files(split))
        if sentences[0].tags is None:
            raise BertError(f"{sentences[0].path}, line {sentences[0].line}: one column only, the word. "
                            f"A {split} file has a tag in its last column.")
        return sentences

    def read(self, split):
        """Sentences of a split; those to be predicted may have no tags."""
        sentences = ner_files.read(*self.files(split)) if split in self.test_splits else self._tagged(split)
        if sentences[0].tags is not None:
            if self.tag_scheme is None:
                ner_files.scheme_of(sentences)
            else:
                ner_files.check_scheme(sentences, self.tag_scheme)
            self._check_labels(sentences)
        return sentences

    def _check_labels(self, sentences):
        known = set(self.labels)
        for sentence in sentences:
            for index, tag in enumerate(sentence.tags):
                if tag not in known:
                    source = "in --labels" if self._labels else "in the training file"
                    raise BertError(f"{sentence.path}, line {sentence.line + index}: the label {tag} is not {source}. "
                                    "Mend it, or name all labels by --labels.")

    def fingerprint(self):
        """What features depend on beside the files."""
        return {"family": self.name, "labels": list(self.labels), "max_seq_length": self.max_seq_length,
                "document_context": self.document_context}

    def features(self, examples, tokenizer, training):
        """Rows of word pieces (tasks.ner_features). Examples are a whole split: sentences are each other's context."""
        return ner_features.build(examples, tokenizer, self.labels, self.max_seq_length, self.document_context)

    def model(self, config, dtype, skip_padding):
        """One linear layer on the encoder, or a BiLSTM on the frozen one."""
        if self.feature_based is None:
            return TokenClassificationModel(config, len(self.labels), skip_padding=skip_padding, dtype=dtype)
        return FeatureTaggerModel(config, len(self.labels), self.feature_based.features, self.feature_based.lstm_size,
                                  skip_padding=skip_padding, dtype=dtype)

    def weights(self, batch):
        """1 for each labelled word of a real row: float32 [rows * seq]."""
        labelled = tf.cast(batch["token_labels"] >= 0, tf.float32)
        return tf.reshape(labelled * tf.cast(batch["is_real_example"], tf.float32)[:, None], [-1])

    def losses(self, outputs, batch):
        """Cross entropy at each position: float32 [rows * seq]."""
        labels = tf.maximum(tf.cast(batch["token_labels"], tf.int32), 0)
        return tf.reshape(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs["logits"]), [-1])

    def score(self, split, examples, features, outputs):
        """Entity-level precision, recall and F1 and the accuracy of tags, in percent, as conlleval prints them."""
        gold = [list(sentence.tags) for sentence in examples]
        predicted = self.predictions(examples, features, outputs)
        accuracy = sequence_labeling.accuracy_score(gold, predicted) * 100
        overall = entity_scores(gold, predicted)[0]
        return {"f1": overall.f1, "precision": overall.precision, "recall": overall.recall, "accuracy": accuracy}

    def write(self, split, examples, features, outputs, folder):
        """Writes `<split>_predictions.txt`, and `<split>_entities.tsv` where tags are known.

        The first has a line a word, as conlleval reads it: the word (white space in it as `_`), its tag where known,
        the predicted tag; an empty line ends a sentence. The second has the scores of each type of entity.
        """
        predicted = self.predictions(examples, features, outputs)
        path = os.path.join(folder, f"{split}_predictions.txt")
        files.write_text(path, "".join(f"{_block(*each)}\n" for each in zip(examples, predicted)))
        if examples[0].tags is None:
            return [path]
        table = ["\t".join(EntityScore._fields)]
        table += [f"{each.entity}\t{each.precision:.2f}\t{each.recall:.2f}\t{each.f1:.2f}\t{each.count}"
                  for each in entity_scores([list(sentence.tags) for sentence in examples], predicted)]
        table_path = os.path.join(folder, f"{split}_entities.tsv")
        files.write_text(table_path, "".join(f"{line}\n" for line in table))
        return [path, table_path]

    def predictions(self, examples, features, outputs):
        """The best label of each word, list of lists of str; the parts of a long sentence are joined again."""
        # Each word is the own word of one row, and rows are in order.
        starts = features.tokens["word_starts"] > 0
        best = np.concatenate([np.argmax(logits, axis=-1) for logits in outputs["logits"]])[starts]
        tags = np.array(self.labels, object)[best].tolist()
        ends = np.cumsum([len(sentence.words) for sentence in examples]).tolist()
        return [tags[end - len(sentence.words):end] for sentence, end in zip(examples, ends)]

    def describe(self):
        """What predicting needs beside the weights."""
        return {
            "labels": list(self.labels), "tag_scheme": self.tag_scheme, "max_seq_length": self.max_seq_length,
            "document_context": self.document_context,
            "feature_based": self.feature_based and dataclasses.asdict(self.feature_based),
        }


def paths_in(folder):
    """The files of a folder by split, under the first of FILE_NAMES that is there; None where none is."""
    def first(names):
        paths = [os.path.join(folder, name) for name in names]
        return next(filter(tf.io.gfile.exists, paths), None)

    return {split: first(names) for split, names in FILE_NAMES.items()}


class EntityScore(NamedTuple):
    """Scores of one type of entity in percent, and how many of it there are."""

    entity: str
    precision: float
    recall: float
    f1: float
    count: int


def entity_scores(gold, predicted):
    """Counts entities as conlleval does: one is right where its type and both its ends are.

    Args:
        gold, predicted: list of lists of tags, BIO or IOB1; a stray I- begins an entity.

    Returns:
        list of EntityScore: all types together, under the name "all", then each.
    """
    types = sorted({entity for tags in (gold, predicted) for entity, _, _ in sequence_labeling.get_entities(tags)})
    if not types:
        return [EntityScore("all", 0.0, 0.0, 0.0, 0)]
    each = sequence_labeling.precision_recall_fscore_support(gold, predicted, average=None, zero_division=0)
    overall = sequence_labeling.precision_recall_fscore_support(gold, predicted, average="micro", zero_division=0)
    return [EntityScore(name, *(float(value) * 100 for value in scores), int(count))
            for name, *scores, count in [("all", *overall), *zip(types, *each)]]


def _block(sentence, predicted):
    """Lines of one sentence."""
    words = [re.sub(r"\s", "_", word) for word in sentence.words]
    columns = [words, predicted] if sentence.tags is None else [words, sentence.tags, predicted]
    return "".join(f"{' '.join(row)}\n" for row in zip(*columns))

"""Named entities: a label for each word, from its first piece (paper, section 5.3)."""

import dataclasses
import functools
import os
import re
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy import special
from seqeval.metrics import sequence_labeling

from foundation import files
from foundation.errors import BertError
from modeling.feature_tagger import FeatureTaggerModel
from modeling.models import TokenClassificationModel
from tasks.ner import features as ner_features
from tasks.ner import files as ner_files

# What the files are called in --data_dir: plainly, or as CoNLL-2003 is distributed.
FILE_NAMES = {
    "train": ("train.txt", "eng.train"),
    "dev": ("dev.txt", "valid.txt", "eng.testa"),
    "test": ("test.txt", "eng.testb"),
}


@dataclasses.dataclass(frozen=True)
class NerSettings:
    """What `run_ner.py` is told of its data and its model.

    Attributes:
        data_dir: folder of files named as in FILE_NAMES.
        train_file, dev_file, test_file: paths, in place of those in data_dir.
        labels: tags in the order of their scores; None: those of the training file.
        tag_scheme: "bio", "iob1", or "auto": that of the training file.
        document_context: fill each row with the words around its sentence.
        feature_based: freeze the encoder under a BiLSTM.
        features, lstm_size: see FeatureTaggerModel.
        max_seq_length: most word pieces of a row.
    """

    data_dir: str | None = None
    train_file: str | None = None
    dev_file: str | None = None
    test_file: str | None = None
    labels: tuple | list | None = None
    tag_scheme: str = "auto"
    document_context: bool = False
    feature_based: bool = False
    features: str = "concat_last_four"
    lstm_size: int = 768
    max_seq_length: int = 128


class NerTask:
    """The task (`tasks.task.Task`) of labelling words.

    Args:
        settings: NerSettings.

    Raises:
        BertError: labels that no tags can have.
    """

    name = "ner"
    metric = "f1"
    dev_splits = ("dev",)
    test_splits = ("test",)
    token_outputs = ("logits",)

    def __init__(self, settings):
        self.settings = settings
        self.max_seq_length = settings.max_seq_length
        if settings.labels:
            ner_files.check_labels(settings.labels)

    def files(self, split):
        """The file of a split."""
        path = getattr(self.settings, f"{split}_file")
        if path:
            if not files.exists(path):
                raise BertError(f"{path}: no such file (--{split}_file).")
            return [path]
        names = FILE_NAMES[split]
        if not self.settings.data_dir:
            raise BertError(f"The {split} file is asked for and not named. Give --{split}_file, or --data_dir with "
                            f"{_or(names)} in it.")
        paths = [os.path.join(self.settings.data_dir, name) for name in names]
        path = next(filter(files.exists, paths), None)
        if path is None:
            raise BertError(f"{self.settings.data_dir}: no {_or(names)} there (--data_dir). Name the file by "
                            f"--{split}_file.")
        return [path]

    @functools.cached_property
    def labels(self):
        """Tuple of str, in the order of the scores."""
        return tuple(self.settings.labels or self._found_in_training[0])

    @functools.cached_property
    def tag_scheme(self):
        """"bio" or "iob1"; None where labels are given, and with them no scheme."""
        if self.settings.tag_scheme != "auto":
            return self.settings.tag_scheme
        return None if self.settings.labels else self._found_in_training[1]

    @functools.cached_property
    def _found_in_training(self):
        sentences = self._tagged("train")
        scheme = ner_files.scheme_of(sentences) if self.settings.tag_scheme == "auto" else None
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
            self._check_labels(sentences)
            if self.tag_scheme is None:
                ner_files.scheme_of(sentences)
            else:
                ner_files.check_scheme(sentences, self.tag_scheme)
        return sentences

    def _check_labels(self, sentences):
        known = set(self.labels)
        for sentence in sentences:
            for index, tag in enumerate(sentence.tags):
                if tag not in known:
                    raise BertError(f"{sentence.path}, line {sentence.line + index}: {tag} is no label of the training "
                                    f"file or of --labels. Known: {', '.join(self.labels)}.")

    def fingerprint(self):
        """What features depend on beside the files."""
        return {"family": self.name, "labels": list(self.labels), "max_seq_length": self.max_seq_length,
                "document_context": self.settings.document_context}

    def features(self, examples, tokenizer, training):
        """Rows of word pieces (tasks.ner.features). Examples are a whole split: sentences are each other's context."""
        return ner_features.build(examples, tokenizer, self.labels, self.max_seq_length,
                                  self.settings.document_context)

    def model(self, config, dtype, skip_padding):
        """One linear layer on the encoder, or a BiLSTM on the frozen one."""
        if not self.settings.feature_based:
            return TokenClassificationModel(config, len(self.labels), skip_padding=skip_padding, dtype=dtype)
        return FeatureTaggerModel(config, len(self.labels), self.settings.features, self.settings.lstm_size,
                                  skip_padding=skip_padding, dtype=dtype)

    def weights(self, batch):
        """1 for each labelled word of a real row: float32 [rows * seq]."""
        labelled = tf.cast(batch["token_labels"] >= 0, tf.float32)
        return tf.reshape(labelled * tf.reshape(tf.cast(batch["is_real_example"], tf.float32), [-1, 1]), [-1])

    def losses(self, outputs, batch):
        """Cross entropy at each position: float32 [rows * seq]."""
        labels = tf.maximum(tf.cast(batch["token_labels"], tf.int32), 0)
        return tf.reshape(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs["logits"]), [-1])

    def terms_per_row(self, features):
        """Labelled words of a row."""
        return float(np.count_nonzero(features.tokens["token_labels"] >= 0) / len(features))

    def score(self, split, examples, features, outputs):
        """Entity-level F1, precision and recall and the accuracy of tags, in percent as conlleval prints them; and the
        loss, the mean over words.
        """
        gold = [list(sentence.tags) for sentence in examples]
        predicted = self.predictions(examples, features, outputs)
        overall = entity_scores(gold, predicted)[0]
        return {"f1": overall.f1, "precision": overall.precision, "recall": overall.recall,
                "accuracy": sequence_labeling.accuracy_score(gold, predicted) * 100,
                "loss": _loss(features.tokens["token_labels"], np.concatenate(outputs["logits"]))}

    def write(self, split, examples, features, outputs, folder):
        """Writes `predictions.txt`, and `entities.tsv` where tags are known.

        The first has a line a word, as conlleval reads it: the word (white space in it as `_`), its tag where known,
        the predicted tag; an empty line ends a sentence. The second has the scores of each type of entity.
        """
        predicted = self.predictions(examples, features, outputs)
        path = os.path.join(folder, "predictions.txt")
        files.write_text(path, "".join(f"{_block(*each)}\n" for each in zip(examples, predicted)))
        if examples[0].tags is None:
            return [path]
        table = ["\t".join(EntityScore._fields)]
        table += [f"{each.entity}\t{each.precision:.2f}\t{each.recall:.2f}\t{each.f1:.2f}\t{each.count}"
                  for each in entity_scores([list(sentence.tags) for sentence in examples], predicted)]
        table_path = os.path.join(folder, "entities.tsv")
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
        """Values of flags, so that a later command need not repeat them."""
        names = ("document_context", "feature_based", "features", "lstm_size")
        return {"labels": list(self.labels), "tag_scheme": self.tag_scheme or "auto",
                **{name: getattr(self.settings, name) for name in names}}


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


def _loss(labels, logits):
    """Mean cross entropy where there is a label: int [total] and float [total, labels]."""
    labelled = labels >= 0
    scores = special.log_softmax(logits[labelled].astype(np.float64), axis=-1)
    return float(-scores[np.arange(len(scores)), labels[labelled]].mean())


def _or(names):
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _block(sentence, predicted):
    """Lines of one sentence."""
    words = [re.sub(r"\s", "_", word) for word in sentence.words]
    columns = [words, predicted] if sentence.tags is None else [words, sentence.tags, predicted]
    return "".join(f"{' '.join(row)}\n" for row in zip(*columns))

"""Extractive question answering: SQuAD 1.1 and 2.0, and one's own files in their layout (paper, sections 4.2, 4.3)."""

import dataclasses
import functools

import tensorflow as tf

from foundation import files
from foundation.errors import BertError
from modeling.models import QuestionAnsweringModel
from tasks.squad import answers as squad_answers
from tasks.squad import features as squad_features
from tasks.squad import files as squad_files
from tasks.squad import scores as squad_scores
from tasks.squad.answers import AnswerSettings
from tasks.squad.features import WindowSettings

# Added to logits at padding: no probability is left there.
_NOT_A_TOKEN = -1e9


@dataclasses.dataclass(frozen=True)
class SquadSettings:
    """What `run_squad.py` is told of its data (flags of the same names).

    Attributes:
        train_file, predict_file: paths, None where not given. The predict file is also the dev split.
        max_seq_length, doc_stride, max_query_length: see WindowSettings.
        n_best_size, max_answer_length, version_2_with_negative, answer_text: see AnswerSettings.
        null_score_diff_threshold: null odds over which a question has no answer (SQuAD 2.0). None: what is best for
            F1 on the dev split, 0.0 where there is none.
    """

    train_file: str | None = None
    predict_file: str | None = None
    max_seq_length: int = 384
    doc_stride: int = 128
    max_query_length: int = 64
    n_best_size: int = 20
    max_answer_length: int = 30
    version_2_with_negative: bool = False
    null_score_diff_threshold: float | None = None
    answer_text: str = "release"


class SquadTask:
    """The task (`tasks.task.Task`) of files in SQuAD's layout (`tasks.squad.files`).

    Args:
        settings: SquadSettings.

    Attributes:
        tokenizer: that of the features, by whose pieces answers are told.

    Raises:
        BertError: see WindowSettings.
    """

    name = "squad"
    metric = "f1"
    dev_splits = ("dev",)
    test_splits = ("test",)  # of the same file
    token_outputs = ("start_logits", "end_logits")

    def __init__(self, settings):
        self.settings = settings
        self.max_seq_length = settings.max_seq_length
        self.tokenizer = None
        self._windows, self._answers = (
            kind(*(getattr(settings, field.name) for field in dataclasses.fields(kind)))
            for kind in (WindowSettings, AnswerSettings))
        self._tuned_threshold = None
        if not self._windows.overlap:
            print(f"warning: with --doc_stride={settings.doc_stride} and --max_seq_length={settings.max_seq_length} "
                  "windows of a long context do not overlap, and an answer across a border is in none. "
                  "Lower --doc_stride.", flush=True)

    def files(self, split):
        """The file of a split."""
        flag = "train_file" if split == "train" else "predict_file"
        path = getattr(self.settings, flag)
        if not path:
            raise BertError(f"Which questions? Give --{flag}, a JSON file in SQuAD's layout.")
        if not files.exists(path):
            raise BertError(f"{path}: no such file (--{flag}).")
        return [path]

    def read(self, split):
        """Questions of a split, in training those whose answer is found where the file says."""
        if split != "train":
            if split == "dev" and not squad_files.has_answers(self._predicted):
                raise BertError(f"{self.settings.predict_file} cannot be evaluated: not every question has its list of "
                                "answers. Leave --do_eval and --eval_every out, or give --predict_file with answers.")
            return self._predicted
        path, = self.files(split)
        questions = squad_files.read(path)
        kept, lost = squad_files.trainable(questions, self.settings.version_2_with_negative, path)
        if lost:
            print(f"{path}: {lost:,} of {len(questions):,} training answers could not be found in their context; "
                  "these questions are left out.", flush=True)
        return kept

    @functools.cached_property
    def _predicted(self):
        return squad_files.read(*self.files("test"))

    def fingerprint(self):
        """What features depend on beside the files."""
        return {"family": self.name, **dataclasses.asdict(self._windows),
                "version_2_with_negative": self.settings.version_2_with_negative}

    def features(self, examples, tokenizer, training):
        """Rows of windows (tasks.squad.features)."""
        self.tokenizer = tokenizer
        return squad_features.make_features(examples, tokenizer, self._windows, training)

    def model(self, config, dtype, skip_padding):
        """Two scores for each token on the encoder."""
        return QuestionAnsweringModel(config, skip_padding=skip_padding, dtype=dtype)

    def weights(self, batch):
        """1 for each real row: float32 [rows]."""
        return tf.cast(batch["is_real_example"], tf.float32)

    def losses(self, outputs, batch):
        """Mean of the cross entropies of the first and the last position: float32 [rows].

        The release's softmax counts padding too. Here it does not, so that a loss is the same however far a batch
        is padded.
        """
        bias = _NOT_A_TOKEN * (1.0 - tf.cast(batch["input_mask"], tf.float32))
        start, end = (tf.nn.sparse_softmax_cross_entropy_with_logits(batch[f"{end}_positions"],
                                                                     outputs[f"{end}_logits"] + bias)
                      for end in ("start", "end"))
        return (start + end) / 2

    def terms_per_row(self, features):
        """A row is a term."""
        return 1.0

    def score(self, split, examples, features, outputs):
        """Exact match and F1 in percent, as the official scripts print them; see `tasks.squad.scores`."""
        return self._score(examples, self._find_answers(examples, features, outputs))

    def write(self, split, examples, features, outputs, folder):
        """Writes the release's three JSON files; prints exact match and F1 where answers are known."""
        found = self._find_answers(examples, features, outputs)
        if squad_files.has_answers(examples):
            figures = self._score(examples, found)
            told = "  ".join(f"{name} {value:.4f}" for name, value in figures.items())
            print(f"{self.settings.predict_file}: {told}", flush=True)
        return squad_answers.write(folder, examples, found, self.null_threshold)

    @property
    def null_threshold(self):
        """Null odds over which a question has no answer: as given, as tuned when a dev split was last scored, 0.0."""
        return 0.0 if self._known_threshold is None else self._known_threshold

    @property
    def _known_threshold(self):
        given = self.settings.null_score_diff_threshold
        return self._tuned_threshold if given is None else given

    def describe(self):
        """Values of flags, so that a later command need not repeat them."""
        names = ("max_seq_length", "doc_stride", "max_query_length", "n_best_size", "max_answer_length",
                 "version_2_with_negative", "answer_text")
        return {**{name: getattr(self.settings, name) for name in names},
                "null_score_diff_threshold": self._known_threshold}

    def _find_answers(self, examples, features, outputs):
        return squad_answers.find_answers(examples, features, outputs, self.tokenizer.vocabulary,
                                          self.tokenizer.do_lower_case, self._answers)

    def _score(self, examples, found):
        right = [[text for text, _ in question.answers] for question in examples]
        if not self.settings.version_2_with_negative:
            return squad_scores.score([each.text(0.0) for each in found], right)
        figures = squad_scores.score_with_negatives([each.best for each in found], [each.null_odds for each in found],
                                                    right, self.settings.null_score_diff_threshold)
        self._tuned_threshold = figures["best_f1_thresh"]
        return figures

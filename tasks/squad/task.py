"""Extractive question answering: SQuAD 1.1 and 2.0, and your own files in their layout (paper, sections 4.2, 4.3)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inputs.features import Features
from tasks.squad import answers, features, scores
from tasks.squad.answers import Answers
from tasks.squad.files import AUTO, Question, SquadFiles, SquadSettings, has_answers
from tasks.task import FileTask, Network, Predicted

if TYPE_CHECKING:
    from tokenization.tokenizer import Tokenizer

_TUNED = "best_f1_thresh"  # the metric that --null_score_diff_threshold=auto takes


class SquadTask(FileTask):
    """The task (`tasks.task.Task`) of files in SQuAD's layout.

    Args:
        settings: the data, the windows, and how answers are chosen.
    """

    name = "squad"
    metric = "f1"
    dev_splits: tuple[str, ...] = ("dev",)
    test_splits: tuple[str, ...] = ("test",)  # of the same file
    token_outputs: tuple[str, ...] = ("start_logits", "end_logits")
    labels: None = None

    def __init__(self, settings: SquadSettings) -> None:
        self.settings = settings
        self.data = SquadFiles(settings)
        if not settings.windows_overlap:
            print(f"warning: with --doc_stride={settings.doc_stride} and --max_seq_length={settings.max_seq_length} "
                  "the windows of a long context do not overlap: no window holds an answer that crosses a border. "
                  "Lower --doc_stride.", flush=True)

    def fingerprint(self) -> dict[str, Any]:
        """The sizes of windows, and whether questions may have no answer."""
        names = ("max_seq_length", "doc_stride", "max_query_length", "version_2_with_negative")
        return {"family": self.name, **{name: getattr(self.settings, name) for name in names}}

    def features(self, examples: Sequence[Question], tokenizer: "Tokenizer", training: bool) -> Features:
        """A row for each window (`tasks.squad.features`)."""
        return features.make_features(examples, tokenizer, self.settings, training)

    def network(self) -> Network:
        """Two scores for each token."""
        from tasks.squad.network import SquadNetwork

        return SquadNetwork()

    def score(self, split: str, predicted: Predicted) -> dict[str, float]:
        """Exact match and F1 in percent, as the official scripts print them, at --null_score_diff_threshold; auto: at
        the threshold that is best for F1 on these questions. See `tasks.squad.scores`.
        """
        threshold = self.settings.null_score_diff_threshold
        return self._score(predicted, self._find_answers(predicted), None if threshold == AUTO else float(threshold))

    def write(self, split: str, predicted: Predicted, folder: str, metrics: Mapping[str, float]) -> list[str]:
        """Writes the release's JSON files; prints the metrics of questions with known answers."""
        threshold = self._threshold(metrics)
        if threshold is None:
            threshold = 0.0
            if self.settings.version_2_with_negative:
                print(f"{self.settings.predict_file}: --null_score_diff_threshold=auto needs an evaluation (--do_eval) "
                      "of these weights; 0.0 is used.", flush=True)
        found = self._find_answers(predicted)
        if has_answers(predicted.examples):
            values = self._score(predicted, found, threshold)
            print(f"{self.settings.predict_file}: "
                  f"{'  '.join(f'{name} {value:.4f}' for name, value in values.items())}", flush=True)
        return answers.write(folder, predicted.examples, found, threshold)

    def describe(self, metrics: Mapping[str, float]) -> dict[str, Any]:
        """Windows, how answers are chosen, and the threshold; with auto the tuned one, where there are metrics."""
        threshold = self._threshold(metrics)
        return {**{name: getattr(self.settings, name) for name in self.settings.described},
                "null_score_diff_threshold": AUTO if threshold is None else threshold}

    def _threshold(self, metrics: Mapping[str, float]) -> float | None:
        """The given threshold, or with auto the tuned one; None where nothing was tuned."""
        given = self.settings.null_score_diff_threshold
        return metrics.get(_TUNED) if given == AUTO else float(given)

    def _find_answers(self, predicted: Predicted) -> list[Answers]:
        tokenizer = predicted.tokenizer
        return answers.find_answers(predicted.examples, predicted.features, predicted.outputs, tokenizer.vocabulary,
                                    tokenizer.do_lower_case, self.settings)

    def _score(self, predicted: Predicted, found: Sequence[Answers], threshold: float | None) -> dict[str, float]:
        right = [[text for text, _ in question.answers] for question in predicted.examples]
        if not self.settings.version_2_with_negative:
            return scores.score([each.text(0.0) for each in found], right)
        null_odds = [each.null_odds for each in found if each.null_odds is not None]
        return scores.score_with_negatives([each.best for each in found], null_odds, right, threshold)

"""What people see of a run: console lines, TensorBoard scalars, `metrics.jsonl`, `eval_results.txt`."""

import time
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from foundation import files, run_files
from foundation.durations import duration
from foundation.errors import BertError
from training import metrics_log
from training.run_directory import RunDirectory


class Reporter:
    """Reports progress; silent on machines other than the first.

    Args:
        directory: RunDirectory.
        total_steps: the last step of this run.
        examples_per_step: global batch size, or its mean.
        tokens_per_example: positions of a row, padding included.
    """

    def __init__(self, directory: RunDirectory, total_steps: int, examples_per_step: float, tokens_per_example: float
                 ) -> None:
        self.directory = directory
        self.total_steps = total_steps
        self.examples_per_step = examples_per_step
        self.tokens_per_example = tokens_per_example
        self._writers: dict[str, Any] = {}
        self._last_step, self._last_time = 0, time.monotonic()
        self._seconds_per_step, self._windows = 0.0, 0
        self._log_lost = False

    def print(self, line: str) -> None:
        """Prints a line."""
        if self.directory.writable:
            print(line, flush=True)

    def start_clock(self, step: int) -> None:
        """Starts a reporting window, so that evaluation and saving are not counted as training."""
        self._last_step, self._last_time = step, time.monotonic()

    def train(self, step: int, metrics: Mapping[str, float]) -> None:
        """Reports a window of updates that ends at `step`; `metrics` are means over it."""
        now = time.monotonic()
        steps, seconds = step - self._last_step, max(now - self._last_time, 1e-9)
        self._last_step, self._last_time = step, now
        seconds_per_step = seconds / steps
        self._windows += 1
        line = f"step {step:>{len(f'{self.total_steps:,}')},}/{self.total_steps:,}  {_line(metrics)}"
        if self._windows == 1:
            # This window includes the compilation: its speed says nothing about the rest.
            self.print(f"{line}  ({seconds:.0f} s, compilation included)")
            self._record("train", step, metrics)
            return
        # Half old, half new is steady.
        steady = self._windows > 2
        self._seconds_per_step = (self._seconds_per_step + seconds_per_step) / 2 if steady else seconds_per_step
        examples = self.examples_per_step / seconds_per_step
        tokens = examples * self.tokens_per_example
        left = duration((self.total_steps - step) * self._seconds_per_step)
        self.print(f"{line}  {examples:,.1f} examples/s  {tokens:,.0f} tokens/s  left {left}")
        self._record("train", step, {**metrics, "examples_per_second": examples, "tokens_per_second": tokens})

    def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Reports an evaluation and writes it to eval_results.txt, one `key = value` a line as the release does."""
        self.print(f"evaluation at step {step:,}: {_line(metrics)}")
        self._record("eval", step, metrics)
        if self.directory.writable:
            results = sorted({**metrics, run_files.GLOBAL_STEP: step}.items())
            files.write_text(self.directory.join(run_files.EVAL_RESULTS),
                             "".join(f"{key} = {value}\n" for key, value in results))

    def flush(self) -> None:
        """Writes out TensorBoard's files, before the process may end."""
        try:
            for writer in self._writers.values():
                writer.flush()
        except files.errors() as error:
            self._report_lost_log(error)

    def _report_lost_log(self, error: BaseException) -> None:
        if not self._log_lost:
            self._log_lost = True
            reason = str(error).strip().splitlines()[-1][:200] if str(error).strip() else type(error).__name__
            self.print(f"warning: reports in {self.directory.path} are incomplete: {reason}")

    def _record(self, kind: str, step: int, metrics: Mapping[str, float]) -> None:
        if not self.directory.writable:
            return
        errors: tuple[type[BaseException], ...] = (*files.errors(), BertError)
        try:
            if kind not in self._writers:
                self._writers[kind] = tf.summary.create_file_writer(self.directory.join(kind))
            with self._writers[kind].as_default(step=step):
                for name, value in metrics.items():
                    tf.summary.scalar(name, value)
            metrics_log.add(self.directory.path, {"kind": kind, "step": step, **metrics})
        except errors as error:
            # A log is not worth a run: what counts is whether the next checkpoint can be written.
            self._report_lost_log(error)


def _line(metrics: Mapping[str, float]) -> str:
    return "  ".join(f"{_SHORT.get(name, name)} {_number(value)}" for name, value in metrics.items()
                     if name not in _QUIET)


_SHORT = {"masked_lm_accuracy": "mlm acc", "masked_lm_loss": "mlm loss", "next_sentence_accuracy": "nsp acc",
          "next_sentence_loss": "nsp loss", "masked_lm_perplexity": "perplexity", "learning_rate": "lr"}
_QUIET = {"gradient_norm"}


def _number(value: float) -> str:
    return f"{value:.2e}" if 0 < abs(value) < 1e-2 else f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"

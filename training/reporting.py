"""What the person watching a run sees: console lines, TensorBoard scalars, `metrics.jsonl`, `eval_results.txt`."""

import json
import time

import tensorflow as tf

from foundation import files

_METRICS = "metrics.jsonl"


class Reporter:
    """Tells how training goes; silent on machines other than the first.

    Args:
        directory: training.run_directory.RunDirectory.
        total_steps: the last step of this run.
        examples_per_step: global batch size.
        tokens_per_example: positions of a row, padding included.
        first_step: step the run starts at; later lines of an earlier start are dropped from metrics.jsonl.
        continues: whether nothing is trained, so that what was reported before stays.
    """

    def __init__(self, directory, total_steps, examples_per_step, tokens_per_example, first_step, continues=False):
        self.directory = directory
        self.total_steps = total_steps
        self.examples_per_step = examples_per_step
        self.tokens_per_example = tokens_per_example
        self._writers = {}
        self._last_step, self._last_time = first_step, time.monotonic()
        self._seconds_per_step, self._windows = 0.0, 0
        if directory.writable and not continues:
            self._drop_after(first_step)

    def say(self, line):
        """Prints a line."""
        if self.directory.writable:
            print(line, flush=True)

    def start_clock(self, step):
        """Starts a reporting window, so that evaluation and saving are not counted as training."""
        self._last_step, self._last_time = step, time.monotonic()

    def train(self, step, figures):
        """Reports a window of updates that ends at `step`; `figures` are means over it."""
        now = time.monotonic()
        steps, seconds = step - self._last_step, max(now - self._last_time, 1e-9)
        self._last_step, self._last_time = step, now
        rate = seconds / steps
        self._windows += 1
        line = f"step {step:>{len(f'{self.total_steps:,}')},}/{self.total_steps:,}  {_line(figures)}"
        if self._windows == 1:
            # This window holds the compilation: its speed says nothing about the rest.
            self.say(f"{line}  ({seconds:.0f} s, compilation included)")
            self._record("train", step, figures)
            return
        # Half old, half new is steady.
        self._seconds_per_step = rate if self._windows == 2 else (self._seconds_per_step + rate) / 2
        examples = self.examples_per_step / rate
        tokens = examples * self.tokens_per_example
        left = duration((self.total_steps - step) * self._seconds_per_step)
        self.say(f"{line}  {examples:,.1f} examples/s  {tokens:,.0f} tokens/s  left {left}")
        self._record("train", step, {**figures, "examples_per_second": examples, "tokens_per_second": tokens})

    def evaluation(self, step, figures):
        """Reports an evaluation and writes it to eval_results.txt, one `key = value` a line as the release does."""
        self.say(f"evaluation at step {step:,}: {_line(figures)}")
        self._record("eval", step, figures)
        if self.directory.writable:
            results = sorted({**figures, "global_step": step}.items())
            files.write_text(self.directory.join("eval_results.txt"),
                             "".join(f"{key} = {value}\n" for key, value in results))

    def flush(self):
        """Makes TensorBoard's files whole, before a process may end."""
        for writer in self._writers.values():
            writer.flush()

    def _record(self, kind, step, figures):
        if not self.directory.writable:
            return
        if kind not in self._writers:
            self._writers[kind] = tf.summary.create_file_writer(self.directory.join(kind))
        with self._writers[kind].as_default(step=step):
            for name, value in figures.items():
                tf.summary.scalar(name, value)
        with files.open_file(self.directory.join(_METRICS), "a") as file:
            file.write(json.dumps({"kind": kind, "step": step, **figures}) + "\n")

    def _drop_after(self, step):
        if lines := read_metrics(self.directory.path):
            kept = "".join(json.dumps(line) + "\n" for line in lines if line["step"] <= step)
            files.write_text(self.directory.join(_METRICS), kept)


def read_metrics(run_folder):
    """List of dicts (`kind`, `step` and figures) that a run has reported, for drawing its curve."""
    path = f"{run_folder}/{_METRICS}"
    lines = files.read_text(path).splitlines() if files.exists(path) else []
    # A process killed while it wrote leaves half a line at the end.
    return [json.loads(line) for line in lines if line.endswith("}")]


def duration(seconds):
    """Seconds as h:mm:ss."""
    minutes, seconds = divmod(round(max(0, seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def _line(figures):
    return "  ".join(f"{_SHORT.get(name, name)} {_number(value)}" for name, value in figures.items()
                     if name not in _QUIET)


_SHORT = {"masked_lm_accuracy": "mlm acc", "masked_lm_loss": "mlm loss", "next_sentence_accuracy": "nsp acc",
          "next_sentence_loss": "nsp loss", "masked_lm_perplexity": "perplexity", "learning_rate": "lr"}
_QUIET = {"gradient_norm"}


def _number(value):
    return f"{value:.2e}" if 0 < abs(value) < 1e-2 else f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"

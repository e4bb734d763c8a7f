"""The training loop: calls of several steps, reports, checkpoints, a clean stop.

The state of a run is its variables and its step; the order of records and the dropout masks follow from seed and step.
So a run that is killed and started again resumes from its newest checkpoint and ends with the same weights.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf

from foundation.errors import BertError, Stopped
from training import input_pipeline
from training.devices import Placement
from training.record_counter import RecordCounter
from training.reporting import Reporter
from training.run_directory import RunDirectory
from training.settings import LoopSettings
from training.step import TrainStep


class TrainLoop:
    """Trains from one step to another.

    Args:
        placement: Placement.
        step: TrainStep.
        state: dict of name to variable: what a checkpoint holds besides the step.
        directory: RunDirectory.
        reporter: Reporter.
        settings: LoopSettings.
        describe_error: function from an error of the input to the one to raise.
        evaluate: called with the step when an evaluation is due, or None; training ends where it returns True. It is
            called again for a step whose evaluation a kill may have cut short.
        counter: of the records of packed batches, or None; its count is saved with the state.
    """

    def __init__(self, placement: Placement, step: TrainStep, state: Mapping[str, Any], directory: RunDirectory,
                 reporter: Reporter, settings: LoopSettings,
                 describe_error: Callable[[BaseException], BaseException] = lambda error: error,
                 evaluate: Callable[[int], bool] | None = None, counter: RecordCounter | None = None) -> None:
        self.placement = placement
        self.step = step
        self.state = state
        self.counter = counter
        self.directory = directory
        self.reporter = reporter
        self.settings = settings
        self.describe_error = describe_error
        self.evaluate = evaluate
        self._steps_per_call = 1
        self._stop_signal: str | None = None
        self._evaluating = False

    def run(self, dataset: Callable[[Any], Any], first_step: int, last_step: int) -> int:
        """Makes updates number `first_step` + 1 to `last_step`.

        Args:
            dataset: function from tf.distribute.InputContext to the batches, beginning with number `first_step`.
            first_step: updates made before.
            last_step: updates made at the end.

        Returns:
            the step at which it ended.

        Raises:
            Stopped: on Ctrl-C or SIGTERM, after saving.
            BertError: the loss is not finite, or records cannot be read.
        """
        iterator = iter(self.placement.distribute(dataset))
        now = first_step
        with self._listening(), self._lost_machine_reported():
            # A kill between a checkpoint and its evaluation leaves the evaluation to be made.
            if self._evaluated_to_the_end(now, last_step):
                return now
            self.reporter.start_clock(now)
            while now < last_step:
                now = self._one_call(iterator, now, last_step)
                if self._due(now, self.settings.save_checkpoints_steps) or now == last_step:
                    self._save(now)
                    self.reporter.start_clock(now)
                if self._evaluated_to_the_end(now, last_step):
                    self._save(now)
                    break
                if self._agreed_to_stop() and now < last_step:
                    self._save_and_stop(now)
        self.reporter.flush()
        return now

    def _evaluated_to_the_end(self, now: int, last_step: int) -> bool:
        """Makes the evaluation that is due, if any; returns whether training ends with it."""
        if not self.evaluate or not now or now >= last_step or not self._due(now, self.settings.eval_every_steps):
            return False
        self._evaluating = True
        try:
            return self.evaluate(now)
        except _EvaluationStopped:
            self._save_and_stop(now)
        finally:
            self._evaluating = False
            self.reporter.start_clock(now)

    def _save(self, now: int) -> str:
        return self.directory.save(now, {**self.state, **(self.counter.state() if self.counter else {})})

    def _save_and_stop(self, now: int) -> NoReturn:
        prefix = self._save(now)
        self.reporter.flush()
        reason = f"by {self._stop_signal}" if self._stop_signal else "with another machine"
        raise Stopped(f"Stopped at step {now:,} {reason}; saved {prefix}. Rerun the same command to resume.")

    def _one_call(self, iterator: Any, now: int, last_step: int) -> int:
        count = self._call_length(now, last_step)
        started = time.monotonic()
        try:
            rows = self.step.call(iterator, tf.constant(now, tf.int64), tf.constant(count, tf.int64)).numpy()
        except input_pipeline.ERRORS as error:
            raise self.describe_error(error) from None
        self._require_finite(rows, now)
        # Machines must make calls of equal length, so they agree on how long the last one took.
        seconds = self.placement.mean_over_machines(time.monotonic() - started)
        self._adapt(count, seconds, first=self._steps_per_call == 1)
        now += count
        sums = dict(zip(self.step.names, rows.sum(axis=0, dtype=np.float64)))
        if self.counter:
            self.counter.add(sums)
        norm = sums.pop("gradient_norm") / count
        metrics = self.step.objective.summarize(sums)
        metrics["learning_rate"] = float(self.step.learning_rate(tf.constant(now - 1, tf.int64)))
        self.reporter.train(now, {**metrics, "gradient_norm": norm})
        return now

    def _call_length(self, now, last_step):
        """Steps until a checkpoint or evaluation is due, at most those of one call."""
        ends = [last_step, now + min(self._steps_per_call, self.settings.iterations_per_loop)]
        for every in (self.settings.save_checkpoints_steps, self.settings.eval_every_steps):
            if every:
                ends.append((now // every + 1) * every)
        return min(ends) - now

    def _adapt(self, count, seconds, first):
        """Sizes the next call to last about as long as a person should wait for a line.

        The first call is one step, which compiles; the second is ten, which measures.
        """
        if self.placement.platform == "tpu":
            self._steps_per_call = self.settings.iterations_per_loop
        elif first:
            self._steps_per_call = 2 if seconds > 60 else 10
        elif count == self._steps_per_call:
            self._steps_per_call = max(2, _round_down(count * self.settings.seconds_per_report / seconds))

    def _require_finite(self, rows, first_step):
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if not bad.size:
            return
        step, batch = first_step + int(bad[0]), self.reporter.examples_per_step
        first, end = step * batch, (step + 1) * batch
        if self.counter:
            first, end = self.counter.records_of(rows[:, self.step.names.index("examples")], int(bad[0]))
        raise BertError(
            f"Step {step + 1}: loss or gradient is not finite. Its batch holds records {first:,} to "
            f"{end - 1:,} of the stream that seed and files determine. Nothing after the last "
            f"checkpoint was saved; try a lower --learning_rate, more --num_warmup_steps, or --precision=float32."
        )

    @staticmethod
    def _due(now, every):
        return bool(every) and now % every == 0

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """Catches Ctrl-C and SIGTERM, which a cloud machine gets before it is taken away, and stops after the call in
        progress; an evaluation is broken off, unless other machines take part in it."""

        def note(number: int, _: Any) -> None:
            self._stop_signal = signal.Signals(number).name
            if self._evaluating and self.placement.num_workers == 1:
                raise _EvaluationStopped

        if threading.current_thread() is not threading.main_thread():  # which alone receives signals
            yield
            return
        before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    @contextlib.contextmanager
    def _lost_machine_reported(self) -> Iterator[None]:
        try:
            yield
        except _LOST_MACHINE:
            if self.placement.num_workers == 1:
                raise
            raise BertError("Another machine does not answer any more. Start all of them with the same command to "
                            "resume from the newest checkpoint.") from None

    def _agreed_to_stop(self):
        """Whether any machine was asked to stop; all of them must leave the loop together."""
        return self.placement.mean_over_machines(float(self._stop_signal is not None)) > 0


class _EvaluationStopped(BaseException):
    """Breaks off an evaluation. Not an Exception: nothing in between may take it for an error of its own."""


# What collective operations raise when a machine is gone.
_LOST_MACHINE = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError,
                 tf.errors.DeadlineExceededError, tf.errors.InternalError, tf.errors.UnknownError)


def _round_down(number: float) -> int:
    """The largest of 1, 2, 5, 10, 20, 50, ... that is not above a number."""
    power = 10 ** int(np.floor(np.log10(max(number, 1))))
    return int(max(factor for factor in (1, 2, 5) if factor * power <= max(number, 1)) * power)

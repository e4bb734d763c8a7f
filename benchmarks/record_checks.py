"""What it costs to check every record where it is parsed: milliseconds of a batch with and without.

    python -m benchmarks.record_checks

One thread parses the same batch again and again, with and without the checks in turn; the least of --rounds is
reported.
"""

import dataclasses
import os
import time

import numpy as np

from data_prep import records
from foundation import command
from foundation.settings import EVALUATION, Settings, setting

# Rows, max_seq_length, max_predictions_per_seq.
_BATCHES = ((32, 128, 20), (256, 128, 20), (256, 512, 77))
_VOCAB_SIZE = 30522
_REPEATS = 300


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckSettings(Settings):
    """How often to measure."""

    rounds: int = setting(7, at_least=1, group=EVALUATION, help="Rounds; the least time is reported.")


def main(settings: CheckSettings) -> None:
    """Prints a row per batch."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    print(f"{'rows':>5} {'length':>6} {'unchecked ms':>12} {'checked ms':>10} {'more ms':>7}")
    for rows, length, predictions in _BATCHES:
        schema = records.PretrainingSchema(length, predictions, _VOCAB_SIZE, 2)
        serialized = _batch(rows, schema)
        seconds: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(settings.rounds):
            for checked, times in seconds.items():
                times.append(_seconds(serialized, schema.parse if checked else _unchecked(schema)))
        without, with_checks = (1e3 * min(seconds[checked]) for checked in (False, True))
        print(f"{rows:5} {length:6} {without:12.3f} {with_checks:10.3f} {with_checks - without:7.3f}")


def _batch(rows, schema):
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(0, schema.limits().get(name, 2), (rows, length))
              for name, length in schema.lengths().items()}
    return records.encode_pretraining(arrays)


def _unchecked(schema):
    import tensorflow as tf

    features = {name: tf.io.FixedLenFeature([length], tf.int64 if name in schema.limits() else tf.float32)
                for name, length in schema.lengths().items()}

    def parse(serialized):
        parsed = tf.io.parse_example(serialized, features)
        return {name: value if value.dtype == tf.float32 else tf.cast(value, tf.int32)
                for name, value in parsed.items()}

    return parse


def _seconds(serialized, parse):
    """Seconds of a batch."""
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensors(tf.constant(serialized)).repeat(_REPEATS).map(parse)
    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = 1
    started = time.perf_counter()
    for _ in dataset.with_options(options):
        pass
    return (time.perf_counter() - started) / _REPEATS


if __name__ == "__main__":
    command.run_with(main, CheckSettings, __doc__)

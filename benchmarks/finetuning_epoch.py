"""What an epoch of fine-tuning costs in batches of like length, beside batches padded to the maximum.

    python -m benchmarks.finetuning_epoch --init_checkpoint=minilm --cola_dir=glue/CoLA --sst2_dir=glue/SST-2 \\
        --squad_file=train-v1.1.json

For each data set given, batches drawn at random from an epoch's plan are trained in both ways by turns, in one process;
the share is that of an epoch's cost, each way's mean over its batches. Then rows are predicted both ways and compared.
"""

import time

import keras
import numpy as np
import tensorflow as tf
from absl import flags

import foundation  # noqa: F401  before TensorFlow, whose notices it keeps away
from finetuning.driver import TaskObjective
from foundation import command
from inputs import batching
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from tasks.squad.task import SquadSettings, SquadTask
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary
from training import flags as training_flags
from training import strategy
from training.initial_model import StartingPoint
from training.optimization import make_optimizer
from training.settings import OptimizationSettings
from training.step import PredictionStep, TrainStep

FLAGS = flags.FLAGS
training_flags.define_model()
training_flags.define_hardware()
flags.adopt_module_key_flags(training_flags)
flags.DEFINE_string("cola_dir", None, "GLUE's folder of CoLA.")
flags.DEFINE_string("sst2_dir", None, "GLUE's folder of SST-2.")
flags.DEFINE_string("squad_file", None, "SQuAD v1.1's train file.")
flags.DEFINE_integer("batch_size", 32, "Rows of a batch.")
flags.DEFINE_integer("rounds", 5, "Turns of each way.")
flags.DEFINE_integer("steps", 4, "Batches of a turn that is padded; the other way's are four times as many.")
flags.DEFINE_integer("predicted_rows", 256, "Rows predicted both ways.")


class Way:
    """One way of batching: a model, its step, and batches drawn from the plan of an epoch."""

    def __init__(self, task, features, start, static):
        self.features, self.static = features, static
        self.placement = strategy.create(training_flags.hardware(FLAGS))
        keras.utils.set_random_seed(0)
        packs = self.placement.platform == "cpu" and not self.placement.xla and not static
        model = task.model(start.config, self.placement.dtype, packs)
        start.load(model, new_head=True)
        self.objective = TaskObjective(task, model)
        settings = OptimizationSettings(num_train_steps=1000, learning_rate=1e-5)
        optimizer = make_optimizer(settings)
        optimizer.build(self.objective.variables)
        self.step = TrainStep(self.placement, self.objective, optimizer, lambda step: 1e-5, settings, 0)
        self.predictor = PredictionStep(self.placement, self.objective)
        self.max_seq_length = task.max_seq_length
        self.plan = batching.training_plan(
            features.lengths, FLAGS.batch_size, len(features) // FLAGS.batch_size, 0, task.max_seq_length, static)
        self.order = np.random.default_rng(1).permutation(len(self.plan.rows))
        self.used = 0

    def turn(self, count):
        """Trains `count` batches; returns CPU-seconds and seconds a batch."""
        chosen = self.order[self.used : self.used + count]
        self.used += count
        plan = batching.Plan(self.plan.rows[chosen], self.plan.lengths[chosen])
        batches = iter(self.placement.strategy.distribute_datasets_from_function(self._batches(plan)))
        started, cpu = time.perf_counter(), time.process_time()
        self.step.call(batches, tf.constant(0, tf.int64), tf.constant(count, tf.int64)).numpy()
        return (time.process_time() - cpu) / count, (time.perf_counter() - started) / count

    def predictions(self, rows):
        """The model's outputs for the first rows, in their order."""
        lengths = self.features.lengths[:rows]
        plan = batching.prediction_plan(lengths, FLAGS.batch_size, self.max_seq_length, self.static)
        dataset = self.placement.strategy.distribute_datasets_from_function(self._batches(plan))
        found = {}
        for numbers, outputs in zip(plan.rows, self.predictor.run(dataset, len(plan.rows))):
            for place, row in enumerate(numbers):
                if row >= 0:
                    length = self.features.lengths[row]
                    found[row] = np.stack([value[place][..., :length] for value in outputs.values()])
        return found

    def _batches(self, plan):
        # One shape for all turns, so that nothing is traced twice.
        features = self.features
        return batching.batches(features, plan, lengths_vary=not self.static)


def compare(name, task, start, tokenizer):
    """Prints one data set's line."""
    features = task.features(task.read("train"), tokenizer, True)
    padded, bucketed = Way(task, features, start, True), Way(task, features, start, False)
    rows = FLAGS.predicted_rows
    one, other = padded.predictions(rows), bucketed.predictions(rows)
    differ = max(float(np.abs(one[row] - other[row]).max()) for row in one)
    padded.turn(1), bucketed.turn(2)  # compiles
    pairs = [(np.array(bucketed.turn(4 * FLAGS.steps)), np.array(padded.turn(FLAGS.steps)))
             for _ in range(FLAGS.rounds)]
    shares = np.array([like / all_long for like, all_long in pairs])
    like, all_long = (np.mean([pair[way] for pair in pairs], axis=0) for way in (0, 1))
    steps, share = len(padded.plan.rows), like / all_long
    print(f"{name:8} {task.max_seq_length:6} {features.lengths.mean():8.1f} {all_long[0] * steps:12,.0f} "
          f"{like[0] * steps:12,.0f} {share[0]:8.2f} ({shares[:, 0].min():.2f} to {shares[:, 0].max():.2f}) "
          f"{share[1]:8.2f} {differ:12.1e}", flush=True)


def main(_):
    """One line a data set."""
    start = StartingPoint(training_flags.start(FLAGS))
    tokenizer = Tokenizer(Vocabulary.from_file(start.vocab_file), start.do_lower_case)
    print(f"{'data':8} {'length':>6} {'pieces':>8} {'padded CPU-s':>12} {'like CPU-s':>12} {'share of CPU-s':>23} "
          f"{'of s':>8} {'predictions':>12}")
    for name, folder in (("cola", FLAGS.cola_dir), ("sst-2", FLAGS.sst2_dir)):
        if folder:
            settings = ClassificationSettings(task_name=name, data_dir=folder, max_seq_length=128)
            compare(name, ClassificationTask(settings), start, tokenizer)
    if FLAGS.squad_file:
        compare("squad", SquadTask(SquadSettings(train_file=FLAGS.squad_file, max_seq_length=384)), start, tokenizer)


if __name__ == "__main__":
    command.run(main)

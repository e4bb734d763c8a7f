"""The main job on an embedded default: English prose that every machine has → vocabulary → records → a small BERT →
the same BERT fine-tuned on a labelled set made of that prose → predictions.

    python -m demo.run --output_dir=demo_output            the prose of Python's own documentation
    python -m demo.run --output_dir=out --corpus=folder    your own text files
"""

import dataclasses
import os
import time

import numpy as np
from absl import flags

from data_prep import build_vocab, pretraining_job
from data_prep.settings import CorpusSettings, InstanceSettings, RecordSettings, VocabularySettings
from data_prep.workers import Workers
from demo import corpus, word_order
from demo.fill_in import BlankFiller
from foundation import command, files
from foundation.errors import BertError
from foundation.parallel import default_num_workers
from modeling.config import PRESETS
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary
from training import curve, pretraining
from training.settings import HardwareSettings, LoopSettings, OptimizationSettings, PretrainingSettings, StartSettings

flags.DEFINE_string("output_dir", "demo_output", "Folder for all that is made.")
flags.DEFINE_string("corpus", None, "Folder of .txt files to train on; Python's documentation where not given.")
flags.DEFINE_integer("num_train_steps", 3000, "Updates; the learning rate falls to zero at the last.", lower_bound=1)
flags.DEFINE_integer("vocab_size", 4000, "Word pieces to learn.")

# One document in so many is kept from training, for evaluation and for the blanks.
_HELD_OUT_EVERY = 15
_SEQ, _PREDICTIONS = 32, 5


def main(_):
    values = flags.FLAGS
    started = time.monotonic()
    folder = values.output_dir
    files.make_folder(folder)
    train_text, held_out_text, held_out = make_corpus(folder, values.corpus)
    vocab_file = f"{folder}/vocab.txt"
    say("2. Vocabulary")
    print(build_vocab.run(VocabularySettings(
        input_file=[train_text], output_file=vocab_file, vocab_size=values.vocab_size)).summary())
    say("3. TFRecords")
    with Workers(default_num_workers()) as workers:
        for text, name, dupe_factor in ((train_text, "train", 10), (held_out_text, "held_out", 1)):
            settings = RecordSettings(
                input_file=[text], output_file=f"{folder}/{name}.tfrecord", overwrite=True,
                corpus=CorpusSettings(vocab_file=vocab_file),
                instances=InstanceSettings(
                    max_seq_length=_SEQ, max_predictions_per_seq=_PREDICTIONS, dupe_factor=dupe_factor))
            manifest = pretraining_job.run(settings, workers)
            print(pretraining_job.summary(manifest))
    say("4. Pre-training, then evaluation on the documents held out")
    report = pretrain(folder, vocab_file, values.num_train_steps)
    entropy = unigram_entropy(train_text, vocab_file)
    loss = dataclasses.replace(curve.MASKED_LM_LOSS, reference=("unigram entropy", entropy))
    curve.draw(f"{folder}/run", f"{folder}/learning_curve.png", "The demo's BERT", (loss, curve.PRETRAINING_ACCURACY))
    say("5. Blanks in sentences it has never seen")
    for blank in fill_blanks(report.final_model, held_out):
        print(blank.line())
    accuracy = fine_tune(folder, report.final_model, train_text, held_out)
    conclude(folder, report, entropy, accuracy, time.monotonic() - started)


def make_corpus(folder, source):
    """Writes the corpus and cuts it in two. Returns both paths and the held-out sentences."""
    say(f"1. Documents from {source or 'the documentation strings and topics of this Python'}")
    everything = f"{folder}/corpus.txt"
    statistics = corpus.from_folder(source, everything) if source else corpus.build(everything)
    print(f"{statistics.documents:,} documents, {statistics.sentences:,} sentences, {statistics.words:,} words.")
    documents = [text for text in files.read_text(everything).split("\n\n") if text.strip()]
    if len(documents) < 4:
        raise BertError(f"{source}: {len(documents)} documents are too few; four are the least, to hold one out.")
    every = min(_HELD_OUT_EVERY, len(documents) // 2)
    held_out = documents[every - 1 :: every]
    train = [document for index, document in enumerate(documents) if index % every != every - 1]
    paths = f"{folder}/train.txt", f"{folder}/held_out.txt"
    for path, part in zip(paths, (train, held_out)):
        files.write_text(path, "\n\n".join(document.strip("\n") for document in part) + "\n")
    return *paths, [sentence for document in held_out for sentence in document.splitlines()]


def pretrain(folder, vocab_file, num_train_steps):
    """Pre-trains BERT-tiny and evaluates it on the held-out records.

    Two things differ from a long run. Initial weights of 0.02 leave a narrow model guessing by frequency alone for
    thousands of steps; 0.1 lets it see the context after two hundred. And a run this short needs no dropout.
    """
    vocabulary = Vocabulary.from_file(vocab_file)
    config = PRESETS["tiny"].replace(
        vocab_size=vocabulary.size, max_position_embeddings=_SEQ, initializer_range=0.1,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    config.to_json_file(f"{folder}/bert_config.json")
    settings = PretrainingSettings(
        start=StartSettings(bert_config_file=f"{folder}/bert_config.json", vocab_file=vocab_file),
        do_train=True, do_eval=True,
        input_file=f"{folder}/train.tfrecord", eval_input_file=f"{folder}/held_out.tfrecord",
        max_seq_length=_SEQ, max_predictions_per_seq=_PREDICTIONS, train_batch_size=64, eval_batch_size=64,
        hardware=HardwareSettings(),
        optimization=OptimizationSettings(
            num_train_steps=num_train_steps, num_warmup_steps=num_train_steps // 10, learning_rate=1e-3),
        loop=LoopSettings(output_dir=f"{folder}/run", save_checkpoints_steps=max(1, num_train_steps // 4),
                          eval_every_steps=max(1, num_train_steps // 4)))
    return pretraining.run(settings)


def unigram_entropy(text, vocab_file):
    """Entropy of the corpus' pieces, in nats: the loss of the best guess that does not look at the context."""
    ids, _ = Tokenizer(Vocabulary.from_file(vocab_file)).encode_lines(files.read_text(text).splitlines())
    counts = np.bincount(ids)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def fill_blanks(model_folder, sentences, number=10):
    """Blanks in sentences of middling length, the same ones each time."""
    rng = np.random.default_rng(0)
    candidates = [sentence for sentence in sentences if 40 < len(sentence) < 110]
    chosen = [candidates[index] for index in rng.permutation(len(candidates))[:number]]
    return BlankFiller(model_folder).hide_each(chosen, seed=0)


def fine_tune(folder, model_folder, train_text, held_out):
    """Fine-tunes the model to tell sentences from shuffled ones; returns the share of right answers."""
    say("6. Fine-tuning: are a sentence's words in their order?")
    labelled = f"{folder}/word_order"
    sentences = [line for line in files.read_text(train_text).splitlines() if line.strip()]
    test_rows = word_order.write_files(labelled, sentences, held_out)
    report = word_order.fine_tune(labelled, model_folder, _SEQ)
    say("7. Predictions for sentences it has never seen")
    print("\n".join(word_order.lines(test_rows, word_order.predictions(labelled))))
    return report.evaluation["eval_accuracy"]


def conclude(folder, report, entropy, accuracy, seconds):
    """Says what came out and where it is."""
    figures = report.evaluation
    say("Done")
    print(f"Masked-word loss on documents held out: {figures['masked_lm_loss']:.2f} nats, "
          f"accuracy {figures['masked_lm_accuracy']:.1%}.\n"
          f"Unigram entropy of the corpus:          {entropy:.2f} nats, the cost of guessing without the context.\n"
          f"Word order told right, held-out sentences: {accuracy:.1%}, where guessing gives 50 %.\n")
    files.write_json(f"{folder}/summary.json", {**figures, "unigram_entropy": entropy,
                                                "word_order_accuracy": accuracy, "seconds": round(seconds)})
    for name, what in (("corpus.txt", "the documents"), ("vocab.txt", "the vocabulary"),
                       ("train.tfrecord", "records trained on"), ("held_out.tfrecord", "records held out"),
                       ("run", "checkpoints, TensorBoard's files, metrics.jsonl"),
                       ("run/final_model", "the model, laid out as a released one"),
                       ("word_order", "the labelled set, and the fine-tuned model with its predictions"),
                       ("learning_curve.png", "loss and accuracy"), ("summary.json", "these figures")):
        print(f"  {os.path.join(folder, name):<36} {what}")
    print(f"\n{seconds / 60:.1f} minutes. Next: README.md, \"Your own pre-training\".")


def say(heading):
    """Prints a heading."""
    print(f"\n=== {heading}", flush=True)


if __name__ == "__main__":
    command.run(main)

"""The main job on text that every machine has: prose → vocabulary → records → a small BERT, pre-trained and evaluated →
the same BERT fine-tuned on a labelled set made of that prose → predictions.

    python -m demo.run --output_dir=demo_output            the prose of Python's own documentation
    python -m demo.run --output_dir=out --corpus=folder    your own text files
"""

import dataclasses
import os
import time
from typing import TYPE_CHECKING

import numpy as np

from data_prep import build_vocab, pretraining_job
from data_prep.settings import CorpusSettings, InstanceSettings, RecordSettings, VocabularySettings
from data_prep.workers import Workers
from demo import corpus, word_order
from foundation import command, files
from foundation.errors import BertError
from foundation.parallel import default_num_workers
from foundation.settings import DATA, SAVING, TRAINING, Settings, setting
from modeling.config import PRESETS
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary
from training import curve, pretraining
from training.settings import InitialModelSettings, LoopSettings, OptimizationSettings, PretrainingSettings

if TYPE_CHECKING:
    from demo.fill_in import Blank

# One document in this many is held out from training, for the evaluation and the blanks.
_HELD_OUT_EVERY = 15
_MIN_DOCUMENTS = 4
_SEQ, _PREDICTIONS = 32, 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoSettings(Settings):
    """One `demo.run` command."""

    corpus: str | None = setting(
        None, group=DATA, help="Folder of .txt files to train on. Default: the documentation of this Python.")
    vocab_size: int = setting(4000, group=DATA, at_least=6, help="Word pieces to learn.")
    num_train_steps: int = setting(
        3000, group=TRAINING, at_least=1, help="Updates in all; the learning rate falls to zero at the last.")
    output_dir: str = setting("demo_output", group=SAVING, help="Folder for all results.")


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Documents to train on and documents held out.

    Attributes:
        train, held_out: paths.
        held_out_sentences: the sentences of the second.
    """

    train: str
    held_out: str
    held_out_sentences: list[str]


def main(settings: DemoSettings) -> None:
    """Runs every step of the demo."""
    started, folder = time.monotonic(), settings.output_dir
    files.make_folder(folder)
    vocab_file = f"{folder}/vocab.txt"
    texts = make_corpus(folder, settings.corpus)
    make_vocabulary(texts, vocab_file, settings.vocab_size)
    make_records(folder, texts, vocab_file)
    model_folder, evaluation = pretrain(folder, vocab_file, settings.num_train_steps)
    entropy = unigram_entropy(texts.train, vocab_file)
    draw_curve(folder, entropy)
    for blank in fill_blanks(model_folder, texts.held_out_sentences):
        print(blank.line())
    accuracy = fine_tune(folder, model_folder, texts)
    conclude(folder, evaluation, entropy, accuracy, time.monotonic() - started)


def make_corpus(folder: str, source: str | None) -> Corpus:
    """Writes the corpus and holds out some of its documents.

    Args:
        folder: of the demo's files.
        source: folder of text; None for the documentation of this Python.

    Raises:
        BertError: no text, or too few documents to hold one out.
    """
    print_heading(f"1. Documents from {source or 'the docstrings, comments and help topics of this Python'}")
    everything = f"{folder}/corpus.txt"
    statistics = corpus.from_folder(source, everything) if source else corpus.build(everything)
    print(f"{statistics.documents:,} documents, {statistics.sentences:,} sentences, {statistics.words:,} words.")
    documents = [text for text in files.read_text(everything).split("\n\n") if text.strip()]
    if len(documents) < _MIN_DOCUMENTS:
        raise BertError(f"{source}: too few documents, {len(documents)}. The demo needs at least {_MIN_DOCUMENTS}, to "
                        "hold one out.")
    every = min(_HELD_OUT_EVERY, len(documents) // 2)
    held_out = documents[every - 1 :: every]
    train = [document for index, document in enumerate(documents) if index % every != every - 1]
    texts = Corpus(f"{folder}/train.txt", f"{folder}/held_out.txt",
                   [sentence for document in held_out for sentence in document.splitlines()])
    for path, part in ((texts.train, train), (texts.held_out, held_out)):
        files.write_text(path, "\n\n".join(document.strip("\n") for document in part) + "\n")
    return texts


def make_vocabulary(texts: Corpus, vocab_file: str, size: int) -> None:
    """Learns a vocabulary from the training documents."""
    print_heading("2. Vocabulary")
    print(build_vocab.run(VocabularySettings(
        input_file=[texts.train], output_file=vocab_file, vocab_size=size)).summary())


def make_records(folder: str, texts: Corpus, vocab_file: str) -> None:
    """Makes the records to train on, ten times masked, and those to evaluate on."""
    print_heading("3. TFRecords")
    # TensorFlow is not yet imported here: the workers may be forked.
    with Workers(default_num_workers(), may_fork=True) as workers:
        for text, name, dupe_factor in ((texts.train, "train", 10), (texts.held_out, "held_out", 1)):
            made = pretraining_job.run(RecordSettings(
                input_file=[text], output_file=f"{folder}/{name}.tfrecord", overwrite=True,
                corpus=CorpusSettings(vocab_file=vocab_file),
                instances=InstanceSettings(
                    max_seq_length=_SEQ, max_predictions_per_seq=_PREDICTIONS, dupe_factor=dupe_factor)), workers)
            print(pretraining_job.summary(made))


def pretrain(folder: str, vocab_file: str, num_train_steps: int) -> tuple[str, dict[str, float]]:
    """Pre-trains BERT-tiny and evaluates it on the held-out records; returns the model's folder and the metrics.

    Two settings differ from those of a long run. With initial weights of 0.02 a narrow model predicts by frequency
    alone for thousands of steps; with 0.1 it uses the context after two hundred. And a run this short needs no dropout.
    """
    print_heading("4. Pre-training, then evaluation on held-out documents")
    config_file = f"{folder}/bert_config.json"
    PRESETS["tiny"].replace(
        vocab_size=Vocabulary.from_file(vocab_file).size, max_position_embeddings=_SEQ, initializer_range=0.1,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).to_json_file(config_file)
    quarter = max(1, num_train_steps // 4)
    report = pretraining.run(PretrainingSettings(
        initial_model=InitialModelSettings(bert_config_file=config_file, vocab_file=vocab_file),
        do_train=True, do_eval=True,
        input_file=f"{folder}/train.tfrecord", eval_input_file=f"{folder}/held_out.tfrecord",
        max_seq_length=_SEQ, max_predictions_per_seq=_PREDICTIONS, train_batch_size=64, eval_batch_size=64,
        num_train_steps=num_train_steps, num_warmup_steps=num_train_steps // 10,
        optimization=OptimizationSettings(learning_rate=1e-3),
        loop=LoopSettings(output_dir=f"{folder}/run", save_checkpoints_steps=quarter, eval_every_steps=quarter)))
    assert report.final_model and report.evaluation
    return report.final_model, report.evaluation


def unigram_entropy(text: str, vocab_file: str) -> float:
    """Entropy of a text's word pieces in nats: the loss of the best prediction that ignores the context."""
    ids, _ = Tokenizer(Vocabulary.from_file(vocab_file)).encode_lines(files.read_text(text).splitlines())
    counts = np.bincount(ids)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def draw_curve(folder: str, entropy: float) -> None:
    """Draws learning_curve.png, with the entropy to compare with."""
    loss = dataclasses.replace(curve.MASKED_LM_LOSS, reference=("unigram entropy", entropy))
    curve.draw(f"{folder}/run", f"{folder}/learning_curve.png", "The demo's BERT", (loss, curve.PRETRAINING_ACCURACY))


def fill_blanks(model_folder: str, sentences: list[str], number: int = 10) -> "list[Blank]":
    """Blanks in sentences of medium length, the same ones each time."""
    # Imported here: it builds a model, which takes TensorFlow.
    from demo import fill_in

    print_heading("5. Blanks in sentences it has never seen")
    rng = np.random.default_rng(0)
    candidates = [sentence for sentence in sentences if 40 < len(sentence) < 110]
    chosen = [candidates[index] for index in rng.permutation(len(candidates))[:number]]
    return fill_in.open_model(model_folder).hide_each(chosen, seed=0)


def fine_tune(folder: str, model_folder: str, texts: Corpus) -> float:
    """Fine-tunes the model to tell whole sentences from shuffled ones; returns the accuracy on held-out sentences."""
    print_heading("6. Fine-tuning: are the words of a sentence in order?")
    labelled = f"{folder}/word_order"
    sentences = [line for line in files.read_text(texts.train).splitlines() if line.strip()]
    test_rows = word_order.write_files(labelled, sentences, texts.held_out_sentences)
    evaluation = word_order.fine_tune(labelled, model_folder, _SEQ)
    print_heading("7. Predictions for sentences it has never seen")
    print("\n".join(word_order.lines(test_rows, word_order.predictions(labelled))))
    return evaluation["eval_accuracy"]


def conclude(folder: str, evaluation: dict[str, float], entropy: float, accuracy: float, seconds: float) -> None:
    """Prints the metrics and the files, and writes summary.json."""
    print_heading("Done")
    print(f"Masked-word loss on held-out documents:      {evaluation['masked_lm_loss']:.2f} nats, "
          f"accuracy {evaluation['masked_lm_accuracy']:.1%}.\n"
          f"Unigram entropy of the corpus:               {entropy:.2f} nats, the loss without any context.\n"
          f"Word order accuracy on held-out sentences:   {accuracy:.1%}; chance is 50%.\n")
    files.write_json(f"{folder}/summary.json", {**evaluation, "unigram_entropy": entropy,
                                                "word_order_accuracy": accuracy, "seconds": round(seconds)})
    for name, content in (
            ("corpus.txt", "the documents"), ("vocab.txt", "the vocabulary"),
            ("train.tfrecord", "training records"), ("held_out.tfrecord", "held-out records"),
            ("run", "checkpoints, TensorBoard logs, metrics.jsonl"),
            ("run/final_model", "the model, laid out as a released one"),
            ("word_order", "the labelled set, the fine-tuned model and its predictions"),
            ("learning_curve.png", "loss and accuracy"), ("summary.json", "the metrics above")):
        print(f"  {os.path.join(folder, name):<36} {content}")
    print(f"\n{seconds / 60:.1f} minutes. Next: README.md, \"I have text\".")


def print_heading(heading: str) -> None:
    """Prints a heading."""
    print(f"\n=== {heading}", flush=True)


if __name__ == "__main__":
    command.run_with(main, DemoSettings, __doc__)

"""A small labelled set out of any text, and a BERT fine-tuned on it: are a sentence's words in their order?

It is CoLA's question (is this a sentence?) in its simplest form. Sentences of the corpus are "whole"; half of them get
a run of their words shuffled and are "shuffled".
"""

import numpy as np

from finetuning import driver
from foundation import files
from foundation.errors import BertError
from tasks.classification.task import ClassificationSettings, ClassificationTask
from training.settings import FineTuningSettings, HardwareSettings, LoopSettings, OptimizationSettings, StartSettings

LABELS = ("whole", "shuffled")
_SHUFFLED_WORDS = 6
_FEWEST_WORDS, _MOST_WORDS = 8, 20


def labelled(sentences, most, seed):
    """Labels sentences.

    Args:
        sentences: list of str; those of middling length are used.
        most: rows at most.
        seed: chooses sentences and orders.

    Returns:
        list of (text, label), half of each label.
    """
    rng = np.random.default_rng(seed)
    usable = sorted({sentence for sentence in sentences if "\t" not in sentence
                     and _FEWEST_WORDS <= len(sentence.split()) <= _MOST_WORDS})
    rows = []
    for row, index in enumerate(rng.permutation(len(usable))[:most]):
        text = usable[index]
        rows.append((_shuffled(text, rng), LABELS[1]) if row % 2 else (text, LABELS[0]))
    return rows


def _shuffled(text, rng):
    """A sentence with a run of its words in another order; capitals and final stops do not give it away."""
    words = text.split()
    first = int(rng.integers(0, len(words) - _SHUFFLED_WORDS))
    run = words[first : first + _SHUFFLED_WORDS]
    order = rng.permutation(len(run))
    while (order == np.arange(len(run))).all():
        order = rng.permutation(len(run))
    return " ".join(words[:first] + [run[place] for place in order] + words[first + len(run):])


def write_files(folder, train_sentences, held_out_sentences):
    """Writes train.tsv, dev.tsv and test.tsv; returns the test rows with their labels.

    Raises:
        BertError: too few sentences of middling length.
    """
    rows = {"train": labelled(train_sentences, 8000, 0), "dev": labelled(held_out_sentences[::2], 500, 1),
            "test": labelled(held_out_sentences[1::2], 500, 2)}
    for split, found in rows.items():
        if len(found) < 2:
            raise BertError(f"{folder}: {len(found)} sentences of {_FEWEST_WORDS} to {_MOST_WORDS} words are too few "
                            f"for a labelled set ({split}).")
        lines = ["text" if split == "test" else "text\tlabel"]
        lines += [text if split == "test" else f"{text}\t{label}" for text, label in found]
        files.write_text(f"{folder}/{split}.tsv", "\n".join(lines) + "\n")
    return rows["test"]


def fine_tune(folder, model_folder, max_seq_length):
    """Fine-tunes a pre-trained model on the files of `write_files`; returns the Report of `driver.driver`."""
    paths = {f"{split}_file": f"{folder}/{split}.tsv" for split in ("train", "dev", "test")}
    task = ClassificationTask(ClassificationSettings(
        task_name="custom", text_a_column="text", label_column="label", header=True, labels=LABELS,
        max_seq_length=max_seq_length, **paths))
    return driver.run(task, FineTuningSettings(
        start=StartSettings(init_checkpoint=model_folder), hardware=HardwareSettings(),
        optimization=OptimizationSettings(0, learning_rate=3e-4), loop=LoopSettings(output_dir=f"{folder}/run"),
        do_train=True, do_eval=True, do_predict=True, train_batch_size=32, eval_batch_size=100, predict_batch_size=100,
        num_train_epochs=3.0))


def predictions(folder):
    """Probabilities of the labels for each test row, float [rows, 2]."""
    rows = files.read_text(f"{folder}/run/test_results.tsv").splitlines()
    return np.array([[float(cell) for cell in row.split("\t")] for row in rows])


def lines(test_rows, probabilities, number=8):
    """Lines that show some predictions."""
    shown = []
    for (text, label), found in list(zip(test_rows, probabilities))[:number]:
        guess = LABELS[int(np.argmax(found))]
        right = "right" if guess == label else f"it is {label}"
        shown.append(f"  {text[:100]}\n      {guess} {found.max():.0%}   ({right})")
    return shown

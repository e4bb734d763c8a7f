"""A small labelled set made of any text, and a BERT fine-tuned on it: are the words of a sentence in order?

This is CoLA's question (is this a sentence?) in its simplest form. Sentences of the corpus are "whole"; in half of
them, consecutive words are put in another order, and the label is "shuffled".
"""

from collections.abc import Sequence

import numpy as np

from finetuning import driver
from finetuning.settings import FineTuningSettings
from foundation import files
from foundation.errors import BertError
from tasks.classification.files import ClassificationSettings
from tasks.classification.task import ClassificationTask
from training.settings import InitialModelSettings, LoopSettings, OptimizationSettings

LABELS = ("whole", "shuffled")
_SHUFFLED_WORDS = 6
_MIN_WORDS, _MAX_WORDS = 8, 20


def labelled(sentences: Sequence[str], limit: int, seed: int) -> list[tuple[str, str]]:
    """Labels sentences of medium length.

    Args:
        sentences: of a corpus.
        limit: maximum number of rows.
        seed: of the choice of sentences and of the new orders.

    Returns:
        rows of text and label, half of each label.
    """
    rng = np.random.default_rng(seed)
    usable = sorted({sentence for sentence in sentences if "\t" not in sentence
                     and _MIN_WORDS <= len(sentence.split()) <= _MAX_WORDS})
    rows = []
    for row, index in enumerate(rng.permutation(len(usable))[:limit]):
        text = usable[index]
        rows.append((_shuffled(text, rng), LABELS[1]) if row % 2 else (text, LABELS[0]))
    return rows


def _shuffled(text: str, rng: np.random.Generator) -> str:
    """A sentence with a few consecutive words in another order."""
    words = text.split()
    # The last word stays: a full stop in mid-sentence would give the label away.
    first = int(rng.integers(0, len(words) - _SHUFFLED_WORDS))
    run = words[first : first + _SHUFFLED_WORDS]
    order = rng.permutation(len(run))
    while (order == np.arange(len(run))).all():
        order = rng.permutation(len(run))
    return " ".join(words[:first] + [run[place] for place in order] + words[first + len(run):])


def write_files(folder: str, train_sentences: Sequence[str], held_out_sentences: Sequence[str]
                ) -> list[tuple[str, str]]:
    """Writes train.tsv, dev.tsv and test.tsv; returns the test rows with their labels.

    Raises:
        BertError: too few sentences of medium length.
    """
    rows = {"train": labelled(train_sentences, 8000, 0), "dev": labelled(held_out_sentences[::2], 500, 1),
            "test": labelled(held_out_sentences[1::2], 500, 2)}
    for split, found in rows.items():
        if len(found) < 2:
            raise BertError(f"{folder}: too few sentences of {_MIN_WORDS} to {_MAX_WORDS} words for a labelled set "
                            f"({split}: {len(found)}).")
        lines = ["text" if split == "test" else "text\tlabel"]
        lines += [text if split == "test" else f"{text}\t{label}" for text, label in found]
        files.write_text(f"{folder}/{split}.tsv", "\n".join(lines) + "\n")
    return rows["test"]


def fine_tune(folder: str, model_folder: str, max_seq_length: int) -> dict[str, float]:
    """Fine-tunes a pre-trained model on the files of `write_files`; returns the metrics of the dev set."""
    task = ClassificationTask(ClassificationSettings(
        task_name="custom", train_file=f"{folder}/train.tsv", dev_file=f"{folder}/dev.tsv",
        test_file=f"{folder}/test.tsv", text_a_column="text", label_column="label", header=True, labels=LABELS,
        max_seq_length=max_seq_length))
    report = driver.run(task, FineTuningSettings(
        initial_model=InitialModelSettings(init_checkpoint=model_folder),
        optimization=OptimizationSettings(learning_rate=3e-4), loop=LoopSettings(output_dir=f"{folder}/run"),
        do_train=True, do_eval=True, do_predict=True, train_batch_size=32, eval_batch_size=100, predict_batch_size=100,
        num_train_epochs=3.0))
    assert report.evaluation
    return report.evaluation


def predictions(folder: str) -> np.ndarray:
    """Probabilities of the labels for each test row, float [rows, 2]."""
    rows = files.read_text(f"{folder}/run/test_results.tsv").splitlines()
    return np.array([[float(cell) for cell in row.split("\t")] for row in rows])


def lines(test_rows: Sequence[tuple[str, str]], probabilities: np.ndarray, number: int = 8) -> list[str]:
    """Lines for the console, with the first predictions."""
    shown = []
    for (text, label), found in list(zip(test_rows, probabilities))[:number]:
        guess = LABELS[int(np.argmax(found))]
        verdict = "right" if guess == label else f"answer: {label}"
        shown.append(f"  {text[:100]}\n      {guess} {found.max():.0%}   ({verdict})")
    return shown

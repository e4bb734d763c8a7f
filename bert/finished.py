"""Fine-tuned models: the predictions of a finished run, for texts in place of files."""

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert import undescribed
from bert.texts import Text, check_list, columns_of
from finetuning import description, driver
from foundation import run_files
from foundation.errors import BertError
from tasks import families, predictions
from tasks.classification.files import Example
from tasks.families import FAMILIES
from tasks.labels import LabelOrder
from tasks.multiple_choice import files as multiple_choice
from tasks.ner.files import Sentence
from tasks.squad import answers
from tasks.squad import files as squad
from tasks.task import Predicted, Task
from training import initial_model
from training.initial_model import InitialModel
from training.settings import HardwareSettings, InitialModelSettings

if typing.TYPE_CHECKING:
    from finetuning.prediction import RowPredictor
    from tokenization.tokenizer import Tokenizer


def load_finished(folder: str, *, precision: str = "auto") -> "Finished":
    """Loads the model of a fine-tuning run.

    Args:
        folder: the run's --output_dir, or its final_model; or any folder with the weights of a fine-tuned model, such
            as one of `transformers` for sequence or token classification, answers or multiple choice.
        precision: "float32", "bfloat16", or "auto": bfloat16 where the chip multiplies it, as the scripts do.

    Returns:
        Classifier, Regression, MultipleChoice, QuestionAnswering or Tagger, by the run's task or the weights' head.

    Raises:
        BertError: no fine-tuned model of a known family, or no trained weights in it.

    Example:
        >>> import bert
        >>> bert.load_finished("/models/mrpc")
        <bert.Classifier of /models/mrpc>
    """
    name, settings, initial = _found(folder)
    task = FAMILIES[name].task(FAMILIES[name].settings(**settings))
    initial.check_length(task.max_seq_length)
    orders = driver.label_orders(task, [initial])
    prepared = _prepared(task, initial, HardwareSettings(precision=precision))
    model = Regression if settings.get("regression") else _MODELS[name]
    return model(folder, task, *prepared, orders[0] if orders else LabelOrder())


def _found(folder: str) -> tuple[str, dict[str, Any], InitialModel]:
    """The family of a model, its settings and its weights: by its task.json, or else by its head."""
    if name := families.described_by(description.read(folder)):
        settings = description.settings(folder, FAMILIES[name].settings)
        return name, settings, initial_model.find(InitialModelSettings(init_checkpoint=folder))
    initial = initial_model.find(InitialModelSettings(init_checkpoint=folder))
    if not (found := undescribed.settings_of(initial)):
        raise BertError(f"{folder}: no {run_files.TASK} of a fine-tuning run here or in {run_files.FINAL_MODEL}, and "
                        "no task's head in the weights, named in config.json (architectures) if it is a folder of "
                        "transformers. bert.load loads a pre-trained model.")
    return *found, initial


class Finished:
    """A fine-tuned model. `bert.load_finished` makes one of the classes below.

    Attributes:
        folder: as given to `bert.load_finished`.
        task: what it was trained for.
        tokenizer: text to word pieces.
        predictor: runs the network over rows of features.
        label_order: where its outputs have the task's labels.
    """

    def __init__(self, folder: str, task: Any, tokenizer: "Tokenizer", predictor: "RowPredictor",
                 label_order: LabelOrder) -> None:
        self.folder = folder
        self.task = task
        self.tokenizer = tokenizer
        self.predictor = predictor
        self.label_order = label_order

    def __repr__(self) -> str:
        return f"<bert.{type(self).__name__} of {self.folder}>"

    def predict(self, inputs: Sequence[Any], batch_size: int = 32) -> list[Any]:
        """A result for each input; see the family's class.

        Args:
            inputs: what the family predicts for.
            batch_size: rows of a batch, each a sequence of word pieces. A batch holds rows of similar length.
        """
        raise NotImplementedError

    def _predicted(self, examples: Sequence[Any], batch_size: int) -> Predicted:
        """The outputs for examples, at least one, of the task's own kind."""
        from finetuning.prediction import as_arrays

        features = self.task.features(examples, self.tokenizer, training=False)
        replicas = self.predictor.placement.num_replicas
        outputs = self.predictor.outputs(features, -(-batch_size // replicas) * replicas, "predict")
        arranged = self.label_order.arrange(outputs)
        return Predicted(examples, features, as_arrays(self.task, arranged), self.tokenizer)


@dataclasses.dataclass(frozen=True)
class Label:
    """A label, with the probability of each."""

    label: str
    probabilities: Mapping[str, float]


class Classifier(Finished):
    """A label for a text or a pair of texts.

    Example:
        >>> import bert
        >>> classifier = bert.load_finished("/models/mrpc")
        >>> (result,) = classifier.predict([("He left.", "He went away.")])
        >>> result.label, result.probabilities[result.label]
        ('1', 0.93)
    """

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order of their ids."""
        return self.task.data.labels

    def predict(self, inputs: Sequence[Text], batch_size: int = 32) -> list[Label]:
        """The label of each text or pair. Raises BertError where `inputs` is no list of them."""
        examples = _text_examples(inputs)
        logits = self._predicted(examples, batch_size).outputs["logits"] if examples else ()
        rows = [predictions.probabilities(np.asarray(row, np.float64)).tolist() for row in logits]
        return [Label(self.labels[int(np.argmax(row))], dict(zip(self.labels, row))) for row in rows]


class Regression(Finished):
    """A number for a text or a pair of texts, such as STS-B's similarity.

    Example:
        >>> import bert
        >>> bert.load_finished("/models/sts-b").predict([("A cat sits.", "A cat is sitting.")])
        [4.7]
    """

    def predict(self, inputs: Sequence[Text], batch_size: int = 32) -> list[float]:
        """The number of each text or pair. Raises BertError where `inputs` is no list of them."""
        examples = _text_examples(inputs)
        return self._predicted(examples, batch_size).outputs["logits"][:, 0].tolist() if examples else []


@dataclasses.dataclass(frozen=True)
class Choice:
    """A choice: its number from 0, its text, and the probability of each choice."""

    number: int
    text: str
    probabilities: tuple[float, ...]


class MultipleChoice(Finished):
    """One of several continuations of a text.

    Example:
        >>> import bert
        >>> endings = ["sat down.", "was a car.", "of the.", "blue."]
        >>> (choice,) = bert.load_finished("/models/swag").predict([("The cat yawned.", endings)])
        >>> choice.text
        'sat down.'
    """

    def predict(self, inputs: Sequence[tuple[str, Sequence[str]]], batch_size: int = 32) -> list[Choice]:
        """The choice for each (prompt, choices).

        Raises:
            BertError: as many choices as the model was trained for are needed; where its folder does not specify how
                many, two or more, and the same number of them in all questions.
        """
        check_list(inputs, "questions")
        columns = self.task.settings.choice_columns
        for number, (_, choices) in enumerate(inputs):
            check_list(choices, "choices")
            needed = len(columns or inputs[0][1])
            if len(choices) != needed:
                raise BertError(f"Question {number} has {len(choices)} choices, the model needs {needed}." if columns
                                else f"Question {number} has {len(choices)} choices, question 0 has {needed}.")
            if needed < 2:
                raise BertError(f"Question {number} has {needed} choices. Give at least two.")
        questions = [multiple_choice.Question(prompt, tuple(choices), None) for prompt, choices in inputs]
        logits = self._predicted(questions, batch_size).outputs["logits"] if questions else ()
        rows = [predictions.probabilities(np.asarray(row, np.float64)) for row in logits]
        return [Choice(best, question.choices[best], tuple(row.tolist()))
                for question, row, best in zip(questions, rows, (int(np.argmax(row)) for row in rows))]


class QuestionAnswering(Finished):
    """The part of a context that answers a question.

    Example:
        >>> import bert
        >>> reader = bert.load_finished("/models/squad")
        >>> reader.predict([("Where is the cat?", "The cat is on the mat.")])
        ['on the mat']
    """

    def predict(self, inputs: Sequence[tuple[str, str]], batch_size: int = 32) -> list[str]:
        """The answer to each (question, context), as in `predictions.json`: "" for none, where the model was trained
        on such questions (SQuAD 2.0). Raises BertError where a context is empty.
        """
        check_list(inputs, "questions and contexts")
        for number, (_, context) in enumerate(inputs):
            if not context.strip():
                raise BertError(f"Question {number} has an empty context.")
        settings = self.task.settings
        questions = [squad.Question(str(number), text, squad.Paragraph("", context), None, False)
                     for number, (text, context) in enumerate(inputs)]
        if not questions:
            return []
        predicted = self._predicted(questions, batch_size)
        found = answers.find_answers(questions, predicted.features, predicted.outputs, self.tokenizer.vocabulary,
                                     self.tokenizer.do_lower_case, settings)
        # A threshold that no evaluation tuned is that of the release.
        given = settings.null_score_diff_threshold
        return [each.text(0.0 if given == squad.AUTO else float(given)) for each in found]


class Tagger(Finished):
    """A tag for each word of a sentence, such as the names in it.

    Example:
        >>> import bert
        >>> tagger = bert.load_finished("/models/ner")
        >>> tagger.predict([["Angela", "Merkel", "visited", "Paris"]])
        [['B-PER', 'I-PER', 'O', 'B-LOC']]
    """

    def predict(self, inputs: Sequence[Sequence[str]], batch_size: int = 32) -> list[list[str]]:
        """The tags of each sentence, a list of words. To a model with --document_context all are one document, in
        their order. Raises BertError for a sentence that is a string or has no word.
        """
        check_list(inputs, "sentences")
        for number, words in enumerate(inputs):
            check_list(words, "words")
            if not words:
                raise BertError(f"Sentence {number} has no words.")
        sentences = [Sentence(tuple(words), None, 0, "", number) for number, words in enumerate(inputs)]
        return self.task.predictions(self._predicted(sentences, batch_size)) if sentences else []


_MODELS: dict[str, type[Finished]] = {
    "classification": Classifier, "choice": MultipleChoice, "squad": QuestionAnswering, "ner": Tagger}


def _prepared(task: Task, initial: InitialModel, hardware: HardwareSettings) -> "tuple[Tokenizer, RowPredictor]":
    """A task's network on its devices, with trained weights."""
    # Imported here: TensorFlow takes seconds, and a wrong path has been reported by now.
    from finetuning.objective import TaskObjective
    from finetuning.prediction import RowPredictor, load_weights
    from training import devices

    placement = devices.create(hardware)
    initial.check_sizes()
    assert initial.checkpoint
    task.check_weights(initial.checkpoint.path, initial.checkpoint.reader.shapes)
    tokenizer, network, static_shapes = initial.tokenizer(), task.network(), placement.platform == "tpu"
    with placement.strategy.scope():
        model = network.model(initial.config, placement.dtype, placement.unpads and not static_shapes)
    load_weights(task, model, initial)
    return tokenizer, RowPredictor(task, placement, TaskObjective(network, model), static_shapes)


def _text_examples(inputs: Sequence[Text]) -> list[Example]:
    first, second = columns_of(inputs)
    return [Example(text, second[row] if second else None, None) for row, text in enumerate(first)]

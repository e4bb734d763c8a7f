"""BERT from Python: vectors of texts, words for blanks, and the answers of fine-tuned models.

    import bert

    model = bert.load("uncased_L-12_H-768_A-12")
    vectors = model.encode(["The cat sat.", "A dog barked."])      # float32 [2, 768]
    guesses = model.fill("Paris is the [MASK] of France.")         # for each blank [(word, probability), ...]

    classifier = bert.load_finished("/models/mrpc")                # a run of run_classifier.py
    results = classifier.predict([("He left.", "He went away.")])  # [Label(label="1", probabilities={...})]

Training, and anything over files, is the scripts' work (`run_classifier.py` and the others). TensorFlow is imported by
the first call that computes, not by `import bert`.
"""

from bert.finished import (
    Choice,
    Classifier,
    Finished,
    Label,
    MultipleChoice,
    QuestionAnswering,
    Regression,
    Tagger,
    load_finished,
)
from bert.model import Model, load
from foundation.errors import BertError

__version__ = "0.1.0"  # pyproject.toml reads it

__all__ = [
    "BertError", "Choice", "Classifier", "Finished", "Label", "Model", "MultipleChoice", "QuestionAnswering",
    "Regression", "Tagger", "load", "load_finished",
]

"""The task heads under their names in the release's checkpoints and in Hugging Face's classes.

Models, the table of Hugging Face names and Keras' weight files read this table. A new family's head is one line here.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class TaskHead:
    """One linear layer on the encoder, as checkpoints know it.

    Attributes:
        name: of the task family.
        scope: what precedes `output_weights` and `output_bias` in the release's variable names.
        hugging_face_class: the class of `transformers` with this head.
        hugging_face_module: the name of the linear layer in that class.
        has_pooler: whether that class has the pooler.
        has_labels: whether its outputs are classes with names (`id2label`).
    """

    name: str
    scope: str
    hugging_face_class: str
    hugging_face_module: str
    has_pooler: bool
    has_labels: bool


HEADS = {head.name: head for head in (
    TaskHead("classification", "", "BertForSequenceClassification", "classifier", has_pooler=True, has_labels=True),
    TaskHead("ner", "cls/ner/", "BertForTokenClassification", "classifier", has_pooler=False, has_labels=True),
    TaskHead("choice", "cls/choice/", "BertForMultipleChoice", "classifier", has_pooler=True, has_labels=False),
    TaskHead("squad", "cls/squad/", "BertForQuestionAnswering", "qa_outputs", has_pooler=False, has_labels=False),
)}

"""What a fine-tuning family is to the driver (`finetuning.driver`): its files, features, model, loss, scores, outputs.

A family implements this once; a data set of the family is then a few values (`tasks.classification.glue`).
"""

import typing


class Task(typing.Protocol):
    """One data set, or one family on the user's own files.

    Attributes:
        name: as in --task_name.
        metric: the figure of the first dev split that chooses the best checkpoint; higher is better.
        dev_splits: names of the splits that are evaluated, as ("dev",) or ("dev_matched", "dev_mismatched").
        test_splits: names of the splits that are predicted. The training split is "train".
        token_outputs: the model's outputs whose second axis is the sequence.
        max_seq_length: most positions of a row.
        tokenizer: what the features were made with; the driver sets it before it asks for anything else.
    """

    name: str
    metric: str
    dev_splits: tuple
    test_splits: tuple
    token_outputs: tuple
    max_seq_length: int
    tokenizer: object

    def files(self, split):
        """Paths that a split is read from. Raises BertError where one is missing, naming the flag that gives it."""

    def read(self, split):
        """List of examples, of the family's own kind. Raises BertError naming file, line and column of a mistake."""

    def fingerprint(self):
        """JSON-able dict of what features depend on beside files, vocabulary and casing, as max_seq_length."""

    def features(self, examples, tokenizer, training):
        """Features of examples; with labels where `training` (a row that cannot be trained on may be left out)."""

    def model(self, config, dtype, skip_padding):
        """A Keras model: `model(batch, dropout_seed=None)` gives a dict of float32 [rows, ...].

        A batch is a dict of int [rows, seq] (or [rows, choices, seq]) `input_ids`, `input_mask`, `segment_ids`, other
        token columns, the features' values, and `is_real_example`, 0 for rows that only complete a batch.
        """

    def weights(self, batch):
        """Float32 [n]: how much each term of the loss counts; 0 for rows that are not real."""

    def losses(self, outputs, batch):
        """Float32 [n], the terms. Their weighted sum, divided by rows times `terms_per_row`, is a batch's loss."""

    def terms_per_row(self, features):
        """Mean weight of a row's terms over a training set; 1 where a row is one term."""

    def score(self, split, examples, features, outputs):
        """Dict of figures. `outputs` is a dict of arrays [rows, ...], token outputs a list of [length, ...]."""

    def write(self, split, examples, features, outputs, folder):
        """Writes the family's prediction files into a folder; returns their paths."""

    def describe(self):
        """JSON-able dict that final_model/task.json keeps: what predicting needs beside the weights, as the labels."""

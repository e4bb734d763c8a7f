"""What a run starts from: the configuration, vocabulary and weights that its flags and its checkpoint name together."""

import os

from foundation import files
from foundation.errors import BertError
from modeling.checkpoints import load
from modeling.config import BertConfig


class StartingPoint:
    """The checkpoint, if any, and what goes with it.

    Args:
        settings: StartSettings.
        training: whether the checkpoint's optimizer state is wanted too.

    Attributes:
        checkpoint: modeling.checkpoints.load.Checkpoint, or None for random weights.
        config: BertConfig: of --bert_config_file, or else the checkpoint's own.
        config_file: where that was read.
        do_lower_case: as the flag or else the configuration says; True, as in the release, where neither does.

    Raises:
        BertError: no configuration, no such checkpoint, or a casing against the checkpoint's.
    """

    def __init__(self, settings, training=False):
        self.settings = settings
        self.checkpoint = load.find(settings.init_checkpoint, training) if settings.init_checkpoint else None
        if settings.bert_config_file:
            self.config_file = settings.bert_config_file
            self.config = BertConfig.from_json_file(settings.bert_config_file)
        elif self.checkpoint:
            self.config_file = self.checkpoint.config_file
            self.config = self.checkpoint.config()
        else:
            raise BertError("Which model? Give --bert_config_file, or --init_checkpoint with its configuration beside "
                            "it.")
        self.do_lower_case = self._casing()

    def _casing(self):
        said, place, asked = self.config.do_lower_case, self.config_file, self.settings.do_lower_case
        if self.checkpoint and (said is None or not self.settings.bert_config_file):
            said, place = self.checkpoint.lower_case(), self.checkpoint.path
        if None not in (said, asked) and said != asked:
            raise BertError(f"--do_lower_case={str(asked).lower()}, but the model is {'un' if said else ''}cased "
                            f"({place}). Leave the flag out.")
        return asked if asked is not None else True if said is None else said

    def check_length(self, max_seq_length):
        """Raises BertError where sequences may be longer than the model's positions."""
        positions = self.config.max_position_embeddings
        if max_seq_length > positions:
            raise BertError(f"--max_seq_length={max_seq_length} is over the model's {positions} positions "
                            f"(max_position_embeddings in {self.config_file}).")

    @property
    def vocab_file(self):
        """--vocab_file, or the vocab.txt beside the checkpoint or the configuration; None where there is none."""
        if self.settings.vocab_file:
            return files.match(self.settings.vocab_file, "vocab_file")[0]
        if self.checkpoint and self.checkpoint.vocab_file:
            return self.checkpoint.vocab_file
        beside = os.path.join(os.path.dirname(self.config_file), "vocab.txt")
        return beside if files.exists(beside) else None

    def load(self, model, new_head=False):
        """Reads the checkpoint into a model.

        Args:
            model: a Keras model of `modeling.models`.
            new_head: whether a head that the checkpoint may have is left where it is: another task's is of no use.

        Returns:
            modeling.checkpoints.load.LoadReport.

        Raises:
            BertError: see modeling.checkpoints.load.load_into.
        """
        settings = self.settings
        return load.load_into(model, self.checkpoint, load.LoadOptions(
            settings.allow_missing_weights, settings.extend_positions, settings.extend_vocabulary, new_head))

"""What a run starts from: the configuration, vocabulary and weights that its flags and its checkpoint name together.

Everything but the weights is read without TensorFlow, so that a wrong path or flag is reported at once.
"""

import functools
import os
from typing import TYPE_CHECKING

from foundation import files, run_files
from foundation.errors import BertError
from modeling.checkpoints import load, tokenizer_files
from modeling.checkpoints.load import LoadOptions
from modeling.config import BertConfig
from tokenization.vocabulary import Vocabulary
from training.settings import InitialModelSettings

if TYPE_CHECKING:
    import keras

    from tokenization.tokenizer import Tokenizer


class InitialModel:
    """A configuration, its vocabulary and its casing, and a checkpoint, if any.

    Args:
        settings: InitialModelSettings.
        checkpoint: the opened --init_checkpoint, or None for random weights.
        config: of --bert_config_file, or else the checkpoint's own.
        config_file: where the configuration was read.
        do_lower_case: as the flag or else the configuration says; True, as in the release, where neither does.

    `find` makes one.
    """

    def __init__(self, settings: InitialModelSettings, checkpoint: load.Checkpoint | None, config: BertConfig,
                 config_file: str, do_lower_case: bool) -> None:
        self.settings = settings
        self.checkpoint = checkpoint
        self.config = config
        self.config_file = config_file
        self.do_lower_case = do_lower_case

    def check_length(self, max_seq_length: int) -> None:
        """Raises BertError where sequences may be longer than the model's positions."""
        positions = self.config.max_position_embeddings
        if max_seq_length > positions:
            raise BertError(f"--max_seq_length={max_seq_length} exceeds the model's {positions} positions "
                            f"(max_position_embeddings in {self.config_file}).")

    @property
    def vocab_file(self) -> str | None:
        """--vocab_file, or what lies next to the checkpoint or the configuration: vocab.txt, or else Hugging Face's
        tokenizer.json. None where there is neither.
        """
        if self.settings.vocab_file:
            return files.match(self.settings.vocab_file, "vocab_file")[0]
        if self.checkpoint and self.checkpoint.vocab_file:
            return self.checkpoint.vocab_file
        return tokenizer_files.vocabulary_in(os.path.dirname(self.config_file))

    @functools.cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary. Raises BertError where there is none, or one with more word pieces than the model."""
        path = self.vocab_file
        if not path:
            raise BertError("No vocabulary found: give --vocab_file. There is no vocab.txt and no tokenizer.json next "
                            "to the checkpoint.")
        vocabulary = Vocabulary.from_file(path)
        if vocabulary.size > self.config.vocab_size:
            raise BertError(f"{path} has {vocabulary.size} word pieces, the model {self.config.vocab_size} "
                            f"({self.config_file}).")
        return vocabulary

    def tokenizer(self) -> "Tokenizer":
        """The model's tokenizer. Raises BertError: see `vocabulary`."""
        # Imported here: it runs on TensorFlow.
        from tokenization.tokenizer import Tokenizer

        return Tokenizer(self.vocabulary, self.do_lower_case)

    def load(self, model: "keras.Model", new_head: bool = False) -> load.LoadReport:
        """Reads the checkpoint into a model.

        Args:
            model: a Keras model of `modeling.models`.
            new_head: leave the checkpoint's head unread: it belongs to another task.

        Returns:
            modeling.checkpoints.load.LoadReport.

        Raises:
            BertError: see modeling.checkpoints.load.load_into.
        """
        assert self.checkpoint, "random weights are not loaded"
        return load.load_into(model, self.checkpoint, self._options(new_head))

    def check_sizes(self) -> None:
        """Compares the configuration with the checkpoint, which TensorFlow may read, before a model is built.

        Raises:
            BertError: they are not of the same model, and no flag allows it.
        """
        if self.checkpoint:
            load.check_config(self.checkpoint, self.config, self._options(new_head=False))

    def _options(self, new_head: bool) -> LoadOptions:
        settings = self.settings
        return LoadOptions(settings.allow_missing_weights, settings.extend_positions, settings.extend_vocabulary,
                                new_head)


def find(settings: InitialModelSettings, training: bool = False) -> InitialModel:
    """Finds the configuration, the checkpoint and the casing.

    Args:
        settings: InitialModelSettings.
        training: whether a training run's newest checkpoint, with its optimizer slots, is meant.

    Raises:
        BertError: no configuration, no such checkpoint, or a casing that contradicts the checkpoint's.
    """
    checkpoint = load.find(settings.init_checkpoint, training) if settings.init_checkpoint else None
    if settings.bert_config_file:
        config_file, config = settings.bert_config_file, BertConfig.from_json_file(settings.bert_config_file)
    elif checkpoint:
        config = checkpoint.config()
        config_file = checkpoint.config_file or checkpoint.path
    else:
        raise BertError("No model given. Pass --bert_config_file, or an --init_checkpoint whose folder has a "
                        "configuration.")
    return InitialModel(settings, checkpoint, config, config_file, _casing(settings, checkpoint, config, config_file))


def _casing(settings: InitialModelSettings, checkpoint: load.Checkpoint | None, config: BertConfig,
            config_file: str) -> bool:
    found, place, asked = config.do_lower_case, config_file, settings.do_lower_case
    if checkpoint and (found is None or not settings.bert_config_file):
        found, place = checkpoint.lower_case(), checkpoint.path
    if found is not None and asked is not None and found != asked:
        raise BertError(f"--do_lower_case={str(asked).lower()}, but the model is {'un' if found else ''}cased "
                        f"({place}). Leave the flag out.")
    if asked is not None:
        return asked
    return True if found is None else found


def holds_weights(folder: str) -> bool:
    """Whether a folder is that of a run that has saved a checkpoint or finished."""
    final = os.path.join(folder, run_files.FINAL_MODEL, f"{run_files.RELEASED_CHECKPOINT}.index")
    return files.exists(final) or bool(files.glob(os.path.join(folder, f"{run_files.RUN_CHECKPOINT}-*.index")))

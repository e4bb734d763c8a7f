"""A pre-trained model: vectors of texts, and words for blanks."""

import typing
from collections.abc import Sequence

import numpy as np

from bert.texts import Text, columns_of
from extraction.settings import ExtractionSettings
from foundation.errors import BertError
from modeling.checkpoints.load import LoadReport
from modeling.config import BertConfig
from tokenization.vocabulary import MASK, Vocabulary
from training import initial_model
from training.settings import HardwareSettings, InitialModelSettings

if typing.TYPE_CHECKING:
    from extraction.text_encoder import TextEncoder
    from modeling.models import PretrainingModel
    from tokenization.tokenizer import Tokenizer
    from training.devices import Placement

Pooling = typing.Literal["mean", "cls", "pooler"]


def load(path: str, *, bert_config_file: str | None = None, vocab_file: str | None = None,
         do_lower_case: bool | None = None, precision: str = "float32") -> "Model":
    """Loads a pre-trained model.

    Args:
        path: anything that --init_checkpoint takes: a released `bert_model.ckpt` or its folder, a Hugging Face folder
            or `.safetensors` file, a Keras `.weights.h5` file, or a folder of this project. Of a fine-tuned model, its
            encoder.
        bert_config_file: the model's sizes, where its folder does not have them.
        vocab_file: the vocabulary, where it is not next to the checkpoint.
        do_lower_case: whether the vocabulary is of lower-cased text, where the checkpoint does not specify it.
        precision: "float32", "bfloat16", or "auto": bfloat16 where the chip multiplies it.

    Raises:
        BertError: no checkpoint, a damaged one, or one without configuration or vocabulary.

    Example:
        >>> import bert
        >>> model = bert.load("uncased_L-12_H-768_A-12")
        >>> model.config.hidden_size
        768
    """
    initial = initial_model.find(InitialModelSettings(
        init_checkpoint=path, bert_config_file=bert_config_file, vocab_file=vocab_file, do_lower_case=do_lower_case))
    vocabulary = initial.vocabulary
    hardware = HardwareSettings(precision=precision)
    # Imported here: TensorFlow takes seconds, and a wrong path has been reported by now.
    from modeling.models import PretrainingModel
    from training import devices

    placement = devices.create(hardware)
    initial.check_sizes()
    with placement.strategy.scope():
        network = PretrainingModel(initial.config, next_sentence=False, unpad=placement.unpads, dtype=placement.dtype)
    report = initial.load(network)
    return Model(path, vocabulary, initial.tokenizer(), network, placement, report)


class Model:
    """A pre-trained model. `bert.load` makes one.

    Attributes:
        path: as given to `bert.load`.
        vocabulary: its word pieces.
        tokenizer: text to word pieces.
        network: the Keras model, an encoder and the masked-LM head; its variables have the release's names.
        placement: the devices that it is on.
        report: what became of each tensor when it was loaded.
    """

    def __init__(self, path: str, vocabulary: Vocabulary, tokenizer: "Tokenizer", network: "PretrainingModel",
                 placement: "Placement", report: LoadReport) -> None:
        self.path = path
        self.vocabulary = vocabulary
        self.tokenizer = tokenizer
        self.network = network
        self.placement = placement
        self.report = report
        self._encoders: dict[ExtractionSettings, TextEncoder] = {}  # each has a compiled graph of its own

    @property
    def config(self) -> BertConfig:
        """The model's sizes."""
        return self.network.config

    @typing.overload
    def encode(self, texts: Sequence[Text], layer: int = ..., pooling: Pooling = ..., *, batch_size: int = ...,
               max_seq_length: int | None = ...) -> np.ndarray: ...

    @typing.overload
    def encode(self, texts: Sequence[Text], layer: int, pooling: None, *, batch_size: int = ...,
               max_seq_length: int | None = ...) -> list[np.ndarray]: ...

    @typing.overload
    def encode(self, texts: Sequence[Text], layer: int = ..., *, pooling: None, batch_size: int = ...,
               max_seq_length: int | None = ...) -> list[np.ndarray]: ...

    def encode(self, texts: Sequence[Text], layer: int = -1, pooling: Pooling | None = "mean", *,
               batch_size: int = 32, max_seq_length: int | None = None) -> np.ndarray | list[np.ndarray]:
        """Vectors of texts, as `extract_features.py` writes them (paper, section 5.3).

        Args:
            texts: texts, or pairs of texts.
            layer: 0 is the first, -1 the last.
            pooling: "mean" over the tokens, [CLS] and [SEP] included; "cls", the vector of [CLS]; "pooler", the
                model's own tanh layer on the last layer's [CLS] (`layer` has no effect); or None, every token's.
            batch_size: texts of a batch. A batch holds texts of similar length.
            max_seq_length: maximum word pieces of a text or pair, [CLS] and [SEP] included; longer ones are cut.
                None: the model's positions.

        Returns:
            float32 [texts, hidden]; with pooling=None a list of float32 [tokens, hidden], one a text.

        Raises:
            BertError: no such layer or pooling, no pooler in the checkpoint, or `texts` is no list of texts.

        Example:
            >>> import bert
            >>> model = bert.load("uncased_L-12_H-768_A-12")
            >>> model.encode(["The cat sat.", ("Is it a cat?", "It is.")]).shape
            (2, 768)
            >>> by_token = model.encode(["The cat sat."], layer=-2, pooling=None)
            >>> by_token[0].shape  # [CLS] the cat sat . [SEP]
            (6, 768)
        """
        encoder = self._encoder(layer, pooling, batch_size, max_seq_length)
        first, second = columns_of(texts)
        vectors: list[np.ndarray] = []
        for features in encoder.chunks_of_pairs(first, second) if first else ():
            (found,) = encoder.vectors(features).values()
            vectors += [found] if pooling else np.split(found, features.row_splits[1:-1])
        if not pooling:
            return vectors
        return np.concatenate([np.zeros((0, self.config.hidden_size), np.float32), *vectors])

    def fill(self, text: str, top_k: int = 5) -> list[list[tuple[str, float]]]:
        """The words that the model expects in the place of each [MASK] (paper, section 3.1, Task #1).

        Args:
            text: with one [MASK] or several, each in place of one word piece.
            top_k: words for each.

        Returns:
            for each [MASK], in order, (word piece, probability), the most probable first.

        Raises:
            BertError: no [MASK], a text longer than the model's positions, or no masked-LM head in the checkpoint.

        Example:
            >>> import bert
            >>> model = bert.load("uncased_L-12_H-768_A-12")
            >>> guesses = model.fill("The [MASK] of France is [MASK].", top_k=3)
            >>> [[word for word, probability in blank] for blank in guesses]
            [['capital', 'city', 'center'], ['paris', 'lyon', 'france']]
        """
        self._require("cls/predictions/", "no masked-LM head to fill blanks with. A pre-trained checkpoint has one; a "
                                          "fine-tuned model has none.")
        ids = self._ids_with_blanks(text)
        features = {"input_ids": ids[None], "input_mask": np.ones_like(ids)[None],
                    "segment_ids": np.zeros_like(ids)[None],
                    "masked_lm_positions": np.flatnonzero(ids == self.vocabulary.mask_id).astype(np.int32)[None]}
        logits = np.asarray(self.network(features)["masked_lm_logits"][0], np.float64)[:, : self.vocabulary.size]
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probabilities = powers / powers.sum(axis=-1, keepdims=True)
        best = np.argsort(-probabilities, axis=-1, kind="stable")[:, :top_k]
        return [[(self.vocabulary.tokens[index], float(row[index])) for index in indices]
                for row, indices in zip(probabilities, best)]

    def _encoder(self, layer: int, pooling: str | None, batch_size: int, max_seq_length: int | None) -> "TextEncoder":
        from extraction.text_encoder import TextEncoder

        positions = self.config.max_position_embeddings
        if max_seq_length is not None and max_seq_length > positions:
            raise BertError(f"max_seq_length={max_seq_length} exceeds the model's {positions} positions ({self.path}).")
        settings = ExtractionSettings(
            input_file="", output_file="", initial_model=InitialModelSettings(init_checkpoint=self.path),
            layers=(layer,), pooling=pooling or "none", batch_size=batch_size,
            max_seq_length=positions if max_seq_length is None else max_seq_length)
        settings.check_layers(self.config)
        if pooling == "pooler":
            self._require("bert/pooler/", 'no pooler. pooling="mean" and "cls" need none.')
        if settings not in self._encoders:
            self._encoders[settings] = TextEncoder(settings, self.tokenizer, self.network.bert, self.placement)
        return self._encoders[settings]

    def _ids_with_blanks(self, text: str) -> np.ndarray:
        """Ids int32 [tokens] of a text, its [MASK] as they are; the tokenizer would cut them up."""
        ids, splits = self.tokenizer.encode_lines(text.split(MASK))
        if len(splits) == 2:
            raise BertError(f"{text!r}: no {MASK} to fill.")
        vocabulary, positions = self.vocabulary, self.config.max_position_embeddings
        ids = np.insert(ids, splits[1:-1], vocabulary.mask_id)
        if len(ids) + 2 > positions:
            raise BertError(f"{text[:60]!r} ...: {len(ids) + 2} word pieces with [CLS] and [SEP], the model has "
                            f"{positions} positions.")
        return np.array([vocabulary.cls_id, *ids, vocabulary.sep_id], np.int32)

    def _require(self, scope: str, problem: str) -> None:
        """Raises BertError where the checkpoint lacks variables of a scope."""
        if any(name.startswith(scope) for name in self.report.initial):
            raise BertError(f"{self.path}: {problem}")

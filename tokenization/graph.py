"""Text to word pieces inside a TensorFlow graph, for a SavedModel that takes text.

It applies the same table as the offline path (`tokenization.text_rules`), as gathers over the code points of a batch,
so that both give the same ids.
"""

import numpy as np
import tensorflow as tf

from tokenization import text_rules, wordpiece
from tokenization.text_rules import (
    CAPITAL_SIGMA,
    CASE_IGNORABLE,
    CASED,
    DROP,
    DROPPED,
    FINAL_SIGMA,
    NATIVE_SEPARATOR,
    NONSTARTER,
    SMALL_SIGMA,
    SPACE,
)
from tokenization.vocabulary import Vocabulary


class GraphTokenizer(tf.Module):
    """The release's `FullTokenizer` as TensorFlow operations.

    A process that loads a SavedModel that contains it must `import tensorflow_text` first.

    Args:
        vocabulary: Vocabulary.
        do_lower_case: lower-case and strip accents, as for the uncased models.
        max_input_chars_per_word: a longer word is `[UNK]`.

    Call:
        texts: string [batch], UTF-8; bytes that are not UTF-8 are left out.

    Returns:
        RaggedTensor int32 [batch, None], the ids.
    """

    def __init__(self, vocabulary: Vocabulary, do_lower_case: bool = True,
                 max_input_chars_per_word: int = wordpiece.MAX_WORD_CHARACTERS) -> None:
        super().__init__()
        # ASCII without control characters and without a word over the limit: lower-casing is all it needs.
        word = f"[0-9A-Za-z]{{0,{min(max_input_chars_per_word, 1000)}}}"
        self._plain = rf"(?:{word}[ -/:-@\[-`{{-~\t\n\r])*{word}"
        self.do_lower_case = do_lower_case
        self.max_input_chars_per_word = max_input_chars_per_word
        self._rules = wordpiece.native_rules(do_lower_case)
        self._native = wordpiece.native_tokenizer(vocabulary)

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        texts = tf.convert_to_tensor(texts, tf.string)
        texts.shape.assert_has_rank(1)
        plain = tf.strings.regex_full_match(texts, self._plain)
        rest = tf.where(~plain)
        normal = tf.strings.lower(texts) if self.do_lower_case else texts
        normal = tf.tensor_scatter_nd_update(normal, rest, self._normalize(tf.gather_nd(texts, rest)))
        return self._native.tokenize(normal)

    def _normalize(self, texts: tf.Tensor) -> tf.Tensor:
        """Applies the text rules and the length limit, string [batch] to string [batch]."""
        # A line feed separates the last word of a text from the first of the next.
        decoded = tf.strings.unicode_decode(tf.strings.join([texts, "\n"]), "UTF-8")
        normal = tf.gather(self._rules.single, decoded.flat_values)
        normal, row_splits = tf.cond(
            tf.reduce_any(normal < DROP),
            lambda: self._apply_rare_rules(decoded.flat_values, normal, decoded.row_splits),
            lambda: (normal, decoded.row_splits),
        )
        normal = self._hide_long_words(normal)
        normal = tf.RaggedTensor.from_row_splits(normal, row_splits, validate=False)
        return tf.strings.unicode_encode(normal, "UTF-8", errors="ignore")  # leaves out DROP

    def _apply_rare_rules(self, points: tf.Tensor, normal: tf.Tensor, row_splits: tf.Tensor
                          ) -> tuple[tf.Tensor, tf.Tensor]:
        """Sequences and what depends on its neighbours, like `text_rules.TextRules.apply`."""
        rules = self._rules
        if self.do_lower_case:
            normal = _lower_sigmas(points, normal)
        rare = normal < DROP
        sequence = tf.maximum(-2 - normal, 0)
        lengths = tf.where(rare, tf.gather(rules.sequence_lengths, sequence), 1)
        ends = tf.cumsum(lengths)
        row_splits = tf.gather(tf.pad(tf.cast(ends, tf.int64), [[1, 0]]), row_splits)
        source = tf.repeat(tf.range(tf.size(points)), lengths)
        # Output i of a sequence that starts at output `first` is value i - first of that sequence.
        shift = tf.where(rare, tf.gather(rules.sequence_starts, sequence) - (ends - lengths), 0)
        places = _positions(tf.gather(rare, source))
        values = tf.cast(places, tf.int32) + tf.gather(shift, tf.gather(source, places))
        values = tf.gather(rules.sequence_values, values)
        normal = tf.tensor_scatter_nd_update(tf.gather(normal, source), places[:, tf.newaxis], values)
        if self.do_lower_case:
            normal = _order_marks(points, normal, source)
        return normal, row_splits

    def _hide_long_words(self, normal: tf.Tensor) -> tf.Tensor:
        """Like `tokenizer._hide_long_words`."""
        limit = self.max_input_chars_per_word

        def hide() -> tf.Tensor:
            classes = tf.gather(text_rules.character_classes(), tf.maximum(normal, 0))
            is_end = _has(classes, NATIVE_SEPARATOR) | (normal == SPACE)
            word = tf.cumsum(tf.cast(is_end, tf.int32))
            counted = tf.cast((normal != DROP) & ~is_end, tf.int32)
            lengths = tf.math.unsorted_segment_sum(counted, word, tf.reduce_max(word) + 1)
            long = tf.gather(lengths > limit, word) & ~is_end
            return tf.where(long, wordpiece.UNKNOWN, normal)

        spaces = _positions(normal == SPACE)
        bounds = tf.concat([[-1], spaces, [tf.size(normal, tf.int64)]], 0)
        longest = tf.reduce_max(bounds[1:] - bounds[:-1]) - 1
        return tf.cond(longest > limit, hide, lambda: normal)


def _lower_sigmas(points: tf.Tensor, normal: tf.Tensor) -> tf.Tensor:
    """Like `text_rules._lower_sigmas`."""
    sigmas = _positions(points == CAPITAL_SIGMA)
    classes = tf.gather(text_rules.character_classes(), points)
    seen = _positions(_has(classes, CASE_IGNORABLE | DROPPED, False))
    cased = tf.pad(_has(tf.gather(classes, seen), CASED), [[1, 1]])
    place = tf.searchsorted(seen, sigmas) + 1
    final = tf.gather(cased, place - 1) & ~tf.gather(cased, place + 1)
    return tf.tensor_scatter_nd_update(
        normal, sigmas[:, tf.newaxis], tf.where(final, np.int32(FINAL_SIGMA), np.int32(SMALL_SIGMA)))


def _order_marks(points: tf.Tensor, normal: tf.Tensor, source: tf.Tensor) -> tf.Tensor:
    """Like `text_rules._order_marks`."""
    combining = tf.gather(text_rules.combining_classes(), tf.maximum(normal, 0))

    def sort() -> tf.Tensor:
        starters = _has(tf.gather(text_rules.character_classes(), points), NONSTARTER | DROPPED, False)
        runs = tf.gather(tf.cumsum(tf.cast(starters, tf.int64)), source)
        return tf.gather(normal, tf.argsort(runs * 256 + tf.cast(combining, tf.int64), stable=True))

    return tf.cond(tf.reduce_any(combining != 0), sort, lambda: normal)


def _has(classes: tf.Tensor, bits: int, wanted: bool = True) -> tf.Tensor:
    """Whether any of the bits is set; where `wanted` is false, whether none is."""
    found = tf.bitwise.bitwise_and(classes, tf.constant(bits, classes.dtype)) != 0
    return found if wanted else ~found


def _positions(mask: tf.Tensor) -> tf.Tensor:
    """Indices where a vector is true, int64."""
    return tf.where(mask)[:, 0]

"""Features kept on disk, found again by what they are made from: data, vocabulary, casing, settings."""

import contextlib
import hashlib
import io
import json
import os
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from foundation import files
from inputs.features import Features
from tokenization.vocabulary import Vocabulary

# Raised when features of the same input change.
_VERSION = 1


class Encoding(typing.Protocol):
    """What word pieces follow from: a Tokenizer, or a model that names its vocabulary and casing."""

    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def do_lower_case(self) -> bool: ...


class FeatureCache:
    """A folder of features.

    Args:
        folder: made when something is kept.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def get(self, split: str, key: str, make: Callable[[], Features], keep: bool = True) -> Features:
        """Features of a split, made only where the folder does not hold them.

        Args:
            split: name of the split.
            key: from `key_of`, of what they are made from.
            make: makes them.
            keep: False on machines other than the first, which only read the folder.
        """
        path = self._path(split, key)
        if files.exists(path):
            # A damaged file is made again; numpy's exceptions for one are of many kinds.
            with contextlib.suppress(Exception):
                return Features.load(io.BytesIO(files.read_bytes(path)))
        features = make()
        if keep:
            features.save(buffer := io.BytesIO())
            files.write_bytes(path, buffer.getvalue())
        return features

    def has(self, split: str, key: str) -> bool:
        """Whether the folder holds features of a split."""
        return files.exists(self._path(split, key))

    def _path(self, split: str, key: str) -> str:
        return os.path.join(self.folder, f"{split}-{key[:16]}.npz")


def key_of(fingerprint: Mapping[str, Any], paths: Iterable[str], encoding: Encoding, training: bool) -> str:
    """64 hex digits that differ where features would.

    Args:
        fingerprint: of the task (`tasks.task.Task.fingerprint`).
        paths: the files that the split is read from.
        encoding: of the word pieces.
        training: whether the features are for training.
    """
    made_from = {
        "version": _VERSION, "task": fingerprint, "training": training,
        "files": [files.sha256(path) for path in paths],
        "vocabulary": encoding.vocabulary.sha256, "do_lower_case": encoding.do_lower_case,
    }
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()

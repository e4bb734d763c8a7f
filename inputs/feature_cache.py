"""Features kept on disk, found again by what they are made from: data, vocabulary, casing, settings."""

import contextlib
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from foundation import files
from foundation.errors import BertError
from inputs.features import Features

if TYPE_CHECKING:
    from tokenization.tokenizer import Tokenizer

# Raised when features of the same input change.
_VERSION = 1


class FeatureCache:
    """A folder of features.

    Args:
        folder: made when something is kept.
        writable: False on machines other than the first, which only read.
    """

    def __init__(self, folder: str, writable: bool = True) -> None:
        self.folder = folder
        self.writable = writable

    def get(self, split: str, key: str, make: Callable[[], Features]) -> Features:
        """Features of a split, made only where the folder does not hold them.

        Args:
            split: name of the split.
            key: from `key_of`, of what they are made from.
            make: makes them.
        """
        path = os.path.join(self.folder, f"{split}-{key[:16]}.npz")
        if files.exists(path):
            # A damaged file is made again.
            with contextlib.suppress(BertError, OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
                return Features.load(io.BytesIO(files.read_bytes(path)))
        features = make()
        if self.writable:
            features.save(buffer := io.BytesIO())
            files.write_bytes(path, buffer.getvalue())
        return features


def key_of(fingerprint: Mapping[str, Any], paths: Iterable[str], tokenizer: "Tokenizer", training: bool) -> str:
    """64 hex digits that differ where features would.

    Args:
        fingerprint: of the task (`tasks.task.Task.fingerprint`).
        paths: the files that the split is read from.
        tokenizer: makes the word pieces.
        training: whether the features are for training.
    """
    made_from = {
        "version": _VERSION, "task": fingerprint, "training": training,
        "files": [files.sha256(path) for path in paths],
        "vocabulary": tokenizer.vocabulary.sha256, "do_lower_case": tokenizer.do_lower_case,
    }
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()

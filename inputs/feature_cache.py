"""Features kept on disk, found again by what they were made from: data, vocabulary, casing, settings."""

import contextlib
import hashlib
import io
import json
import os
import zipfile

from foundation import files
from foundation.errors import BertError
from inputs.features import Features

# Counted up when features come out differently for the same input.
_VERSION = 1


class FeatureCache:
    """A folder of features.

    Args:
        folder: made when something is kept.
        tokenizer: tokenization.tokenizer.Tokenizer that makes them.
        writable: False on machines other than the first, which only read.
    """

    def __init__(self, folder, tokenizer, writable=True):
        self.folder, self.tokenizer, self.writable = folder, tokenizer, writable

    def get(self, task, split, training, make):
        """Features of a split, made only where the folder does not hold them.

        Args:
            task: Task.
            split: name of the split.
            training: whether they are for training.
            make: function that makes them.

        Returns:
            Features.
        """
        path = os.path.join(self.folder, f"{split}-{self.key(task, split, training)[:16]}.npz")
        if files.exists(path):
            # A damaged file is made again.
            with contextlib.suppress(BertError, OSError, ValueError, KeyError, zipfile.BadZipFile):
                return Features.load(io.BytesIO(files.read_bytes(path)))
        features = make()
        if self.writable:
            features.save(buffer := io.BytesIO())
            with files.atomic(path) as temporary, files.open_file(temporary, "wb") as file:
                file.write(buffer.getvalue())
        return features

    def key(self, task, split, training):
        """64 hex digits that differ where features would."""
        made_from = {
            "version": _VERSION, "task": task.fingerprint(), "training": training,
            "files": [files.sha256(path) for path in task.files(split)],
            "vocabulary": self.tokenizer.vocabulary.sha256, "do_lower_case": self.tokenizer.do_lower_case,
        }
        return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()

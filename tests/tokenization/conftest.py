"""The recorded lines, and vocabularies that reproduce the recorded ids."""

import json

import pytest

from tests.tokenization import released_vocabulary
from tokenization.vocabulary import Vocabulary


@pytest.fixture(scope="session")
def recorded_lines(golden):
    """The release's ids: list of {"text", "uncased", "cased"}."""
    return json.loads((golden / "tokenization" / "golden_tokenization.json").read_text("utf-8"))["cases"]


@pytest.fixture(scope="session", params=["uncased", "cased"])
def casing(request):
    return request.param


@pytest.fixture(scope="session")
def vocabulary(casing, tmp_path_factory):
    """The stand-in for the released vocabulary of a casing, read from a file."""
    return Vocabulary.from_file(released_vocabulary.write(casing, tmp_path_factory.mktemp(casing) / "vocab.txt"))

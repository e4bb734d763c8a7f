"""The recorded model in each format."""

import pytest

from modeling.checkpoints import convert
from modeling.checkpoints.formats import FORMATS


@pytest.fixture(scope="module")
def in_every_format(golden, tmp_path_factory):
    """Folder with a folder of the recorded model for each format, by its name."""
    folder = tmp_path_factory.mktemp("formats")
    for kind in FORMATS:
        convert.convert(str(golden / "model"), str(folder / kind), kind)
    return folder

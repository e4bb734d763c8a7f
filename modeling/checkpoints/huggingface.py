"""Checkpoints in Hugging Face's format: a folder with `config.json` and `model.safetensors`, whole or in shards.

`huggingface_names` holds the table of names, `huggingface_config` the configuration, `tokenizer_files` the vocabulary.
"""

from modeling.checkpoints import huggingface_config, huggingface_shards, tokenizer_files
from modeling.checkpoints.format import Contents
from modeling.checkpoints.huggingface_reader import Reader, read
from modeling.checkpoints.huggingface_writer import write


class HuggingFaceFormat:
    """Folders that `from_pretrained` loads; see `format.CheckpointFormat`."""

    name = "huggingface"
    description = f"{huggingface_shards.WEIGHTS} and {huggingface_config.CONFIG}"
    example = huggingface_shards.WEIGHTS
    config_files: tuple[str, ...] = (huggingface_config.CONFIG,)

    def find(self, path: str) -> str | None:
        """A folder, a safetensors file or an index of shards."""
        return huggingface_shards.find(path)

    def refusal(self, path: str) -> str | None:
        """Pickles, weights of other frameworks, shards without an index."""
        return huggingface_shards.refusal(path)

    def open(self, path: str) -> Reader:
        """Opens it, shards and all."""
        return read(path)

    def labels(self, folder: str) -> list[str] | None:
        """From `id2label`."""
        return huggingface_config.labels_of(huggingface_config.values_in(folder))

    def lower_case(self, folder: str) -> bool | None:
        """From the tokenizer's files."""
        return tokenizer_files.lower_case_of(folder)

    def write(self, folder: str, contents: Contents) -> list[str]:
        """For the class with the model's head; what it has no tensor for is left out."""
        return list(write(folder, contents).left_out)


FORMAT = HuggingFaceFormat()

"""The release's recorded SQuAD features and predictions, and the pieces of its uncased vocabulary that they need.

`tests/golden/squad/pieces.json` has, by its original id, each piece that the release's longest-match search meets in
`mini_squad.json`. It was made by

    python -m tests.tasks.squad.golden --uncased=uncased/vocab.txt
"""

import argparse
import functools
import gzip
import json
import pathlib

from tests.tokenization import release
from tokenization.tokenizer import Tokenizer
from tokenization.vocabulary import Vocabulary

FOLDER = pathlib.Path(__file__).parents[2] / "golden" / "squad"
QUESTIONS = str(FOLDER / "mini_squad.json")
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def text(name):
    """A recorded JSON file, unpacked."""
    path = FOLDER / name
    return path.read_text("utf-8") if path.exists() else gzip.decompress((FOLDER / f"{name}.gz").read_bytes()).decode()


@functools.cache
def tokens():
    """All lines of the stand-in for the uncased vocabulary: pieces at their ids, the rest unused."""
    recorded = json.loads(text("pieces.json"))
    pieces = {int(index): piece for index, piece in recorded["pieces"].items()}
    return [pieces.get(index, f"[unused{index}]") for index in range(recorded["size"])]


@functools.cache
def tokenizer():
    """The tokenizer of the recorded ids."""
    return Tokenizer(Vocabulary(tokens()))


def _texts():
    for article in json.loads(text("mini_squad.json"))["data"]:
        for paragraph in article["paragraphs"]:
            yield paragraph["context"]
            for question in paragraph["qas"]:
                yield question["question"]
                yield from (answer["text"] for answer in question["answers"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--uncased", required=True)
    lines = [line.strip() for line in pathlib.Path(parser.parse_args().uncased).read_text("utf-8").split("\n")[:-1]]
    vocabulary = {token: index for index, token in enumerate(lines)}
    words = {word for each in _texts() for word in release.basic_words(each, True)}
    met = {piece for word in words if len(word) <= 200 for piece in release.matches(word, vocabulary)[0]}
    kept = sorted(vocabulary[piece] for piece in met.union(_SPECIAL))
    reduced = {"size": len(lines), "pieces": {str(index): lines[index] for index in kept}}
    (FOLDER / "pieces.json").write_text(json.dumps(reduced, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


if __name__ == "__main__":
    main()

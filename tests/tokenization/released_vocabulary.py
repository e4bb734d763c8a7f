"""Stand-ins for the released vocabularies, which are not in the repository.

`tests/golden/tokenization/pieces.json.gz` has, by its original id, each piece that the release's longest-match search
finds in the recorded texts, also in words that end as [UNK]; so the ids of these texts are those of the full
vocabulary. It was made by

    python -m tests.tokenization.released_vocabulary --uncased=uncased/vocab.txt --cased=cased/vocab.txt
"""

import argparse
import gzip
import json
import pathlib

from tests.tokenization import release

_GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
_PIECES = _GOLDEN / "tokenization" / "pieces.json.gz"
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def tokens(casing):
    """All lines of the stand-in for the "uncased" or "cased" vocabulary: pieces at their ids, the rest unused."""
    recorded = json.loads(gzip.decompress(_PIECES.read_bytes()))[casing]
    pieces = {int(index): piece for index, piece in recorded["pieces"].items()}
    return [pieces.get(index, f"[unused{index}]") for index in range(recorded["size"])]


def write(casing, path):
    """Writes the stand-in for the "uncased" or "cased" vocabulary to a file; returns the path as str."""
    pathlib.Path(path).write_text("".join(f"{token}\n" for token in tokens(casing)), "utf-8")
    return str(path)


def recorded_texts():
    """Every text whose ids are in the recorded outputs."""
    cases = json.loads((_GOLDEN / "tokenization" / "golden_tokenization.json").read_text("utf-8"))["cases"]
    files = sorted((_GOLDEN / "pretraining_data").glob("input_*.txt"))
    return [case["text"] for case in cases] + [path.read_text("utf-8") for path in files]


def _reduce(path, do_lower_case):
    lines = [line.strip() for line in pathlib.Path(path).read_text("utf-8").split("\n")[:-1]]
    vocabulary = {token: index for index, token in enumerate(lines)}
    words = {word for text in recorded_texts() for word in release.basic_words(text, do_lower_case)}
    met = {piece for word in words if len(word) <= 200 for piece in release.matches(word, vocabulary)[0]}
    kept = sorted(vocabulary[piece] for piece in met.union(_SPECIAL))
    return {"size": len(lines), "pieces": {str(index): lines[index] for index in kept}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--uncased", required=True)
    parser.add_argument("--cased", required=True)
    arguments = parser.parse_args()
    reduced = {"uncased": _reduce(arguments.uncased, True), "cased": _reduce(arguments.cased, False)}
    data = json.dumps(reduced, ensure_ascii=False, separators=(",", ":")).encode()
    _PIECES.write_bytes(gzip.compress(data, 9, mtime=0))


if __name__ == "__main__":
    main()

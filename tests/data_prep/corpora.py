"""A small vocabulary and small corpora for tests of record making."""

import random

SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [a + b + c for a in "bdfglm" for b in "aeiou" for c in ("", "n", "r", "st")]
PIECES = ["##" + c for c in ("ing", "ed", "s", "ly", "ness")]


def write_vocabulary(path):
    """A vocabulary of 132 pieces: 7 special and unused ones, 120 words and 5 continuations."""
    path.write_text("".join(f"{piece}\n" for piece in [*SPECIAL, *WORDS, *PIECES]))
    return str(path)


def make_documents(number, seed=0, sentences=(1, 30), words=(1, 25)):
    """Documents of random words, some of them of several pieces.

    Returns:
        list of lists of str.
    """
    rng = random.Random(seed)
    return [
        [
            " ".join(
                rng.choice(WORDS) + (rng.choice(PIECES)[2:] if rng.random() < 0.3 else "")
                for _ in range(rng.randint(*words))
            )
            for _ in range(rng.randint(*sentences))
        ]
        for _ in range(number)
    ]


def write_corpus(path, documents):
    """One sentence a line, an empty line after each document."""
    path.write_text("".join("".join(f"{line}\n" for line in document) + "\n" for document in documents))
    return str(path)

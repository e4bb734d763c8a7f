"""The three commands: help and mistakes are answered without TensorFlow, which takes seconds to import."""

import json
import subprocess
import sys

import pytest

from tests.data_prep import corpora

HEAVY = {"tensorflow", "tensorflow_text", "keras", "scipy", "sklearn", "matplotlib", "tqdm"}
PROGRAM = """
import contextlib, importlib, io, json, sys
answers = []
for name, *arguments in json.loads(sys.argv[1]):
    sys.argv = [name, *arguments]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        importlib.import_module(f"data_prep.{name}").cli()
    answers.append(out.getvalue() + err.getvalue())
importlib.import_module("tokenization.tokenizer")
print(json.dumps([answers, list(sys.modules)]))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory, repository):
    """What command lines print, by the command line, and the modules that answering them all imported."""
    folder = tmp_path_factory.mktemp("commands")
    corpora.write_corpus(folder / "text.txt", corpora.make_documents(2))
    corpora.write_vocabulary(folder / "vocab.txt")
    (folder / "exists").write_text("precious")
    (folder / "bad.txt").write_bytes(b"ban\n[PAD]\n\xff\n")
    text, vocabulary, output = f"--input_file={folder}/text.txt", f"--vocab_file={folder}/vocab.txt", "--output_file=o"
    lines = [
        ("split_sentences", "--help"),
        ("build_vocab", "--help"),
        ("create_pretraining_data", "--help"),
        ("split_sentences", "--input_fil=a"),
        ("split_sentences", f"--input_file={folder}/gone.txt", output),
        ("build_vocab", text, output, "--vocab_size=x"),
        ("build_vocab", f"--input_file={folder}/bad.txt", output),
        ("create_pretraining_data", text, vocabulary),
        ("create_pretraining_data", f"--input_file={folder}/gone.txt", vocabulary, output),
        ("create_pretraining_data", text, f"--vocab_file={folder}/bad.txt", output),
        ("create_pretraining_data", text, vocabulary, f"--output_file={folder}/exists"),
        ("create_pretraining_data", text, vocabulary, output, "--masking_mix=80,20"),
    ]
    done = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(lines)], cwd=repository, capture_output=True,
                          text=True, check=True)
    printed, modules = json.loads(done.stdout.splitlines()[-1])
    return dict(zip(lines, printed)), modules


def test_help_and_mistakes_import_nothing_heavy(answers):
    assert not HEAVY.intersection(answers[1])


def test_help_has_the_flags_of_the_release_first(answers):
    printed = answers[0]["create_pretraining_data", "--help"]
    assert printed.startswith("Makes pre-training records")
    flags = ["--input_file*  (required)", "--dupe_factor*  (default 10)", "--masking_mix  (default 80,10,10)"]
    assert sorted(flags, key=printed.index) == flags
    for name in ("split_sentences", "build_vocab"):
        assert "--num_workers" in answers[0][name, "--help"]


def test_mistakes_are_one_line_each(answers):
    messages = [printed for (_, *arguments), printed in answers[0].items() if arguments != ["--help"]]
    for message, part in zip(messages, [
        "--input_fil: no such flag. Did you mean --input_file?",
        "gone.txt: no such file",
        "--vocab_size=x: not a whole number",
        "bad.txt: byte 10 is not UTF-8 (0xff)",
        "--output_file is required",
        "gone.txt: no such file",
        "bad.txt, line 3: byte 10 is not UTF-8 (0xff)",
        "exists: exists, and no ",
        "--masking_mix=80,20: must be three percentages",
    ], strict=True):
        assert message.startswith("error: ") and message.count("\n") == 1
        assert part in message

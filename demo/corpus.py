"""The corpus of the demo: the prose of Python's own documentation, or any folder of text.

Every machine that runs the demo has Python, whose standard library has several hundred thousand words of English in its
docstrings, comments and help topics. The sources are read, never imported.
"""

import ast
import glob
import importlib.util
import os
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Sequence

from data_prep import split_sentences
from data_prep.sentence_rules import split
from data_prep.settings import AUTO, SKIP, SentenceSettings
from data_prep.split_sentences import Statistics
from demo.prose import paragraphs
from foundation import files
from foundation.errors import BertError

# Folders of tests, third-party packages and generated tables.
_SKIPPED_FOLDERS = {
    "test", "tests", "idle_test", "site-packages", "dist-packages", "lib-dynload", "__pycache__", "encodings",
    "pydoc_data", "_pyrepl", "config",
}
_MIN_SENTENCES = 3
_YOUR_OWN_TEXT = "Pass a folder of .txt files: --corpus=folder, or make demo CORPUS=folder."
_COMMENT_LINE = re.compile(r"^[ \t]*#[#:!]*(?: |$)(.*)$")


def build(output_file: str, library: str | None = None, packages: Sequence[str] = ()) -> Statistics:
    """Writes the prose of a Python's standard library as documents. The same Python gives the same file.

    Args:
        output_file: path; one sentence per line, a blank line between documents. A document is a module or help topic.
        library: folder of the standard library; that of the running Python where None.
        packages: names of installed packages to read after the library.

    Raises:
        BertError: a package is not installed, or no prose was found.
    """
    library = library or sysconfig.get_path("stdlib")
    folders = [library, *map(_package_folder, packages)]
    seen: set[str] = set()
    done = Statistics()
    with files.atomic(output_file) as temporary, open(temporary, "w", encoding="utf-8") as output:
        for texts in _documents(library, folders):
            done.files += 1
            sentences = [sentence for text in _fresh(texts, seen) for sentence in split(text)]
            if len(sentences) < _MIN_SENTENCES:
                continue
            output.write("\n" * bool(done.documents) + "".join(f"{sentence}\n" for sentence in sentences))
            done.documents += 1
            done.sentences += len(sentences)
            done.words += sum(len(sentence.split()) for sentence in sentences)
        if not done.documents:
            raise BertError(f"{library}: no Python sources with documentation. {_YOUR_OWN_TEXT}")
    return done


def from_folder(folder: str, output_file: str, num_workers: int = 1) -> Statistics:
    """Writes the text files of a folder and its subfolders as documents.

    A file is one document, unless blank lines seem to separate several: its lines are not wrapped, and most are in
    blocks of two or more. Bytes that are not UTF-8 are left out and counted.

    Args:
        folder: path; its `.txt` files are read in the order of their names.
        output_file: path; one sentence per line, a blank line between documents.
        num_workers: processes.

    Raises:
        BertError: no such folder, no text files in it, or no text in them.
    """
    if not os.path.isdir(folder):
        raise BertError(f"{folder}: no such folder. {_YOUR_OWN_TEXT}")
    found = sorted(os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names
                   if name.endswith(".txt"))
    if not found:
        raise BertError(f"{folder}: holds no .txt files. {_YOUR_OWN_TEXT}")
    return split_sentences.run(SentenceSettings(
        input_file=[glob.escape(path) for path in found], output_file=output_file, input_format=AUTO, on_bad_utf8=SKIP,
        num_workers=num_workers))


def _documents(library: str, folders: Iterable[str]) -> Iterator[list[str]]:
    """Yields the paragraphs of each topic and each module, in a fixed order."""
    for text in _topics(library):
        yield paragraphs(text)
    for folder in folders:
        for path in _modules(folder):
            yield module_paragraphs(_read(path))


def _package_folder(name: str) -> str:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise BertError(f"{name}: no such package is installed.")
    return spec.submodule_search_locations[0]


def _fresh(texts: Iterable[str], seen: set[str]) -> list[str]:
    """The paragraphs that appear for the first time; adds them to `seen`."""
    fresh = []
    for text in texts:
        key = text.lower()
        if key not in seen:
            seen.add(key)
            fresh.append(text)
    return fresh


def _topics(library: str) -> Iterator[str]:
    """Yields the texts of `help("topics")`, from the source of `pydoc_data.topics`; none where it is absent."""
    tree = _parse(_read(os.path.join(library, "pydoc_data", "topics.py")))
    if tree is None:
        return
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            for value in node.value.values:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.value


def _modules(library: str) -> list[str]:
    """Paths of the library's modules, sorted."""
    found: list[str] = []
    for folder, folders, names in os.walk(library):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS and "-" not in name)
        found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    return sorted(found, key=lambda path: os.path.relpath(path, library).split(os.sep))


def module_paragraphs(source: str) -> list[str]:
    """The prose of one module, docstrings and comments, in the order of the source.

    Args:
        source: Python.

    Returns:
        paragraphs; none where the source does not parse.
    """
    tree = _parse(source)
    if tree is None:
        return []
    texts = list(_comments(source))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node, clean=False)
            if text:
                texts.append((node.body[0].lineno, text))
    return [paragraph for _, text in sorted(texts) for paragraph in paragraphs(text)]


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yields each block of consecutive comment lines, with the number of its first line."""
    block: list[str] = []
    first = 0
    for number, line in enumerate([*source.split("\n"), ""], 1):
        match = _COMMENT_LINE.match(line)
        if match:
            first = first if block else number
            block.append(match.group(1))
        elif block:
            yield first, "\n".join(block)
            block = []


def _parse(source: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source) if source else None
        except (SyntaxError, ValueError):
            return None


def _read(path: str) -> str:
    """The text of a source; empty where it is absent or not UTF-8."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


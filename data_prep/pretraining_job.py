"""The whole job of making pre-training records: text → store of ids → plan → shuffled, masked records."""

import contextlib
import fcntl
import functools
import glob
import hashlib
import itertools
import os
import pathlib
import shutil
import sys
import tempfile

import tensorflow as tf

from data_prep import id_store, instances, manifest, sentence_pairs
from data_prep.records import PretrainingSchema
from foundation import files
from foundation.errors import BertError
from tokenization.vocabulary import Vocabulary

_JOB_FILE = "job.json"
_LOCK_FILE = "lock"
# What a job makes in its work folder, in this order.
_WORK = (
    "tokenized",
    "tokenized_done",
    "store",
    "planned",
    "planned_done",
    "plan",
    "pieces",
    "pieces_done",
    "outputs_done",
)


def run(input_file, output_file, corpus, settings, workers, *, work_dir=None, overwrite=False):
    """Makes pre-training records.

    The records depend on the text, the vocabulary, the settings and the seed only. A job that is killed and started
    again goes on where it was.

    Args:
        input_file: comma-separated files and globs.
        output_file: comma-separated files; `name@N` for N of them. Their concatenation is the same for any number.
        corpus: `CorpusSettings`.
        settings: `InstanceSettings`.
        workers: `Workers`, entered.
        work_dir: local folder for what is in the making; None puts it beside the output, or in the folder for
            temporary files where the output is remote. Removed when the job has ended well.
        overwrite: replace files that are there.

    Returns:
        dict, the manifest: written beside the first output as `<output>.manifest.json`.

    Raises:
        BertError: any mistake in what was given, or a full disk.
    """
    inputs = files.match(input_file, "input_file")
    vocabulary = Vocabulary.from_file(corpus.vocab_file)
    outputs, manifest_path = manifest.output_files(output_file)
    description = manifest.describe(corpus, settings, vocabulary, inputs)
    job = {"description": description, "outputs": outputs, "modified": list(map(_modified, inputs))}
    folder = work_dir or _work_folder(manifest_path)
    if files.is_remote(folder):
        raise BertError(f"--work_dir={folder} must be a local folder.")
    with _locked(folder):
        if not _is_marked(folder, job):
            if _is_marked(folder, None):
                _discard(folder)
            made = manifest.already_made(manifest_path, outputs, description, overwrite)
            if made:
                print(f"{manifest_path}: made already, of the same text and settings.", file=sys.stderr)
                return made
            _begin(folder, job)
        counts = _make_store(workers, folder, inputs, corpus, vocabulary, settings)
        _make_plan(workers, folder, settings)
        counts |= _make_pieces(workers, folder, corpus, settings, len(outputs))
        written = _make_outputs(workers, folder, outputs, manifest_path)
        made = {**description, "counts": counts, "outputs": written}
        files.write_json(manifest_path, made)
        _discard(folder)
    return made


def _work_folder(manifest_path):
    if files.is_remote(manifest_path):
        return os.path.join(tempfile.gettempdir(), f"bert-{hashlib.sha256(manifest_path.encode()).hexdigest()[:16]}")
    folder, name = os.path.split(manifest_path)
    return os.path.join(folder, f".{name.removesuffix('.manifest.json')}.work")


def _modified(path):
    return files.modified(path)


@contextlib.contextmanager
def _locked(folder):
    """Holds the work folder for this process; afterwards the folder is removed unless it has a job to go on with.

    Raises:
        BertError: another process works there.
    """
    files.make_folder(folder)
    with files.writing(folder), open(os.path.join(folder, _LOCK_FILE), "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BertError(f"{folder}: another process is making these records. Wait for it, or stop it.") from None
        try:
            yield
        finally:
            done = os.path.join(folder, "tokenized_done")
            if os.path.exists(os.path.join(folder, _JOB_FILE)) and not (os.path.isdir(done) and os.listdir(done)):
                _discard(folder)
            os.remove(lock.name)
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _is_marked(folder, job):
    """Whether the folder belongs to this job, or with None to one that stopped while it tidied up."""
    path = os.path.join(folder, _JOB_FILE)
    return os.path.exists(path) and files.read_json(path) == job


def _begin(folder, job):
    """Marks the folder as this job's, emptied of what another job left there."""
    if os.path.exists(os.path.join(folder, _JOB_FILE)):
        _discard(folder)
    if set(os.listdir(folder)) - {_LOCK_FILE}:
        raise BertError(f"--work_dir={folder} holds other files. Name an empty folder, or one that does not exist.")
    files.write_json(os.path.join(folder, _JOB_FILE), job)


def _discard(folder):
    """Removes all that a job made in its folder.

    The mark of a job stays to the end, as that of no job in particular: whatever is left when this is interrupted is
    nobody's to resume, and known to be ours to remove.
    """
    mark = os.path.join(folder, _JOB_FILE)
    files.write_json(mark, None)
    for name in _WORK:
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else pathlib.Path(path).unlink(missing_ok=True)
    for stale in glob.glob(os.path.join(glob.escape(folder), "*.tmp-*")):
        os.remove(stale)
    os.remove(mark)


def _make_store(workers, folder, inputs, corpus, vocabulary, settings):
    """First pass. Returns the counts of the corpus."""
    source = os.path.join(folder, "tokenized")
    files.make_folder(source)
    units = [(f"{number:06d}", spans) for number, spans in enumerate(id_store.plan_spans(inputs))]
    results = workers.run(
        functools.partial(
            id_store.tokenize_unit, folder=source, corpus=corpus, vocab_sha256=vocabulary.sha256
        ),
        units,
        os.path.join(folder, "tokenized_done"),
        "Tokenizing",
        amount=lambda unit: sum(span.end - span.start for span in unit[1]),
        measure="bytes",
    )
    counts = {name: sum(result[name] for result in results) for name in ("documents", "sentences", "tokens", "bytes")}
    counts["bad_lines"] = sum(result["bad_lines"] for result in results)
    problem = None
    if not counts["documents"]:
        problem = f"{', '.join(inputs[:3])}: no text (--input_file)."
    elif counts["documents"] == 1 and settings.next_sentence:
        problem = sentence_pairs.SINGLE_DOCUMENT
    if problem:
        _discard(folder)
        raise BertError(problem)
    store = os.path.join(folder, "store")
    if not os.path.exists(os.path.join(store, "store.json")):
        id_store.join_units([unit[0] for unit in units], source, store, vocabulary.size)
    return {f"corpus_{name}": count for name, count in counts.items()}


def _make_plan(workers, folder, settings):
    """Second pass, first half."""
    store_folder, source = os.path.join(folder, "store"), os.path.join(folder, "planned")
    files.make_folder(source)
    blocks = sentence_pairs.plan_blocks(id_store.IdStore(store_folder))
    units = [
        (f"{dupe:04d}-{number:06d}", dupe, number, documents)
        for dupe in range(settings.dupe_factor)
        for number, documents in enumerate(blocks)
    ]
    workers.run(
        functools.partial(sentence_pairs.plan_unit, folder=source, store_folder=store_folder, settings=settings),
        units,
        os.path.join(folder, "planned_done"),
        "Pairing sentences",
        amount=lambda unit: unit[3][1] - unit[3][0],
        measure="documents",
    )
    if not os.path.exists(os.path.join(folder, "plan")):
        sentence_pairs.join_plans([unit[0] for unit in units], source, os.path.join(folder, "plan"))


def _make_pieces(workers, folder, corpus, settings, num_outputs):
    """Second pass, second half. Returns the counts of the instances."""
    plan_file, source = os.path.join(folder, "plan"), os.path.join(folder, "pieces")
    files.make_folder(source)
    total = os.path.getsize(plan_file) // sentence_pairs.PLAN_ROW.itemsize
    results = workers.run(
        functools.partial(
            instances.write_piece,
            folder=source,
            store_folder=os.path.join(folder, "store"),
            plan_file=plan_file,
            vocab_file=corpus.vocab_file,
            settings=settings,
        ),
        [piece for pieces in _cut_pieces(total, num_outputs) for piece in pieces],
        os.path.join(folder, "pieces_done"),
        "Writing instances",
        amount=lambda unit: unit[2] - unit[1],
        measure="instances",
    )
    return {name: sum(result[name] for result in results) for name in results[0]}


def _cut_pieces(total, num_outputs):
    """Shares records evenly among outputs, and each output among pieces: a list of (name, begin, end) an output."""
    edges = [total * output // num_outputs for output in range(num_outputs + 1)]
    return [
        [
            (f"{output:05d}-{begin:012d}", begin, min(begin + instances.PIECE_ROWS, end))
            for begin in range(start, end, instances.PIECE_ROWS)
        ]
        for output, (start, end) in enumerate(itertools.pairwise(edges))
    ]


def _make_outputs(workers, folder, outputs, manifest_path):
    """Joins pieces into the output files. Returns the manifest's list of them."""
    source = os.path.join(folder, "pieces")
    total = os.path.getsize(os.path.join(folder, "plan")) // sentence_pairs.PLAN_ROW.itemsize
    for path in (manifest_path, *outputs):
        for stale in files.glob(f"{path}.tmp-*"):
            files.remove(stale)
    if files.exists(manifest_path):
        files.remove(manifest_path)

    def remove_pieces(unit, _):
        for piece in unit[2]:
            pathlib.Path(source, f"{piece}.tfrecord").unlink(missing_ok=True)

    results = workers.run(
        functools.partial(instances.join_pieces, folder=source),
        [
            (f"{number:05d}", path, [name for name, _, _ in pieces], sum(end - begin for _, begin, end in pieces))
            for number, (path, pieces) in enumerate(zip(outputs, _cut_pieces(total, len(outputs))))
        ],
        os.path.join(folder, "outputs_done"),
        "Joining files",
        amount=lambda unit: unit[3],
        measure="instances",
        after=remove_pieces,
    )
    return [
        {"name": os.path.relpath(path, os.path.dirname(manifest_path)), **result}
        for path, result in zip(outputs, results)
    ]


def summary(made):
    """What was made, in a few lines, from a manifest."""
    counts, settings = made["counts"], made["settings"]
    instances_made = counts["instances"]
    slots = instances_made * settings["max_seq_length"]
    lines = [
        f"{counts['corpus_documents']:,} documents, {counts['corpus_sentences']:,} sentences, "
        f"{counts['corpus_tokens']:,} tokens",
        f"{instances_made:,} instances in {len(made['outputs'])} files, "
        f"{sum(output['bytes'] for output in made['outputs']):,} bytes",
        f"{100 * (1 - counts['tokens'] / slots):.1f} % padding, {100 * counts['full'] / instances_made:.1f} % of the "
        f"instances full, {counts['predictions'] / instances_made:.1f} predictions an instance",
    ]
    if settings["next_sentence"]:
        lines.append(f"{100 * counts['random'] / instances_made:.1f} % of the second segments are random texts")
    if counts["corpus_bad_lines"]:
        lines.append(f"{counts['corpus_bad_lines']:,} lines left out that are not UTF-8 (--on_bad_utf8=skip)")
    return "\n".join(lines)


def examples(made, output_file, vocab_file, number):
    """The first finished instances as word pieces, one paragraph each; predictions as position, original piece."""
    outputs, _ = manifest.output_files(output_file)
    schema = PretrainingSchema(made["settings"]["max_seq_length"], made["settings"]["max_predictions_per_seq"])
    vocabulary = Vocabulary.from_file(vocab_file)
    shown = []
    for record in tf.data.TFRecordDataset(outputs).take(number):
        row = {name: values[0].numpy() for name, values in schema.parse(record[None]).items()}
        used = row["masked_lm_weights"] > 0
        pieces = vocabulary.tokens_of(row["input_ids"][row["input_mask"] > 0])
        targets = zip(row["masked_lm_positions"][used], vocabulary.tokens_of(row["masked_lm_ids"][used]))
        shown.append(
            f"\n{' '.join(pieces)}\nto predict: {' '.join(f'{position}:{piece}' for position, piece in targets)}\n"
            f"second segment: {'random' if row['next_sentence_labels'][0] else 'the next'}"
        )
    return "\n".join(shown)

"""The whole job of making pre-training records: text → store of ids → plan → shuffled, masked records."""

import contextlib
import functools
import itertools
import os
import pathlib
import sys
from typing import Any

from data_prep import id_store, instances, intermediate, manifest, output_paths, sentence_pairs, work_folder
from data_prep.records import PretrainingSchema
from data_prep.settings import RecordSettings
from data_prep.workers import Result, Workers, kept_result
from foundation import files
from foundation.counting import counted
from foundation.errors import BertError
from tokenization.vocabulary import Vocabulary

# From so much text on, tokenizing with TensorFlow saves more time than importing it takes.
_NATIVE_BYTES = 1 << 26
_OUTPUT_SCHEMA = {"records": int, "bytes": int, "sha256": str, "index": str}


def run(settings: RecordSettings, workers: Workers) -> dict[str, Any]:
    """Makes pre-training records.

    The records depend on the text, the vocabulary, the settings and the seed only. A job that was killed resumes when
    it is run again.

    Args:
        settings: RecordSettings. `workers` decides on the number of processes.
        workers: Workers, entered.

    Returns:
        The manifest, which is written next to the first output as `<output>.manifest.json`.

    Raises:
        BertError: any mistake in what was given, or a full disk.
    """
    inputs = files.match(settings.input_file, "input_file")
    vocabulary = Vocabulary.from_file(settings.corpus.vocab_file)
    outputs, manifest_path = manifest.output_files(settings.output_file)
    folder = settings.work_dir or _default_work_folder(manifest_path)
    if files.is_remote(folder):
        raise BertError(f"--work_dir={folder}: must be a local folder.")
    output_paths.check([manifest_path, *outputs], [*inputs, settings.corpus.vocab_file])
    stamps = _stamps(inputs)
    description = manifest.describe(settings.corpus, settings.instances, vocabulary, inputs, settings.workers)
    job = {"format": work_folder.FORMAT, "description": description, "outputs": outputs, "stamps": stamps}
    with work_folder.locked(_default_work_folder(manifest_path)), _own(settings.work_dir):
        if not settings.work_dir:
            work_folder.adopt(folder)
        if not work_folder.belongs_to(folder, job):
            if work_folder.belongs_to(folder, None):
                work_folder.discard(folder)
            made = manifest.already_made(manifest_path, outputs, description, settings.overwrite)
            if made:
                print(f"{manifest_path}: these records exist, made from the same text and settings.", file=sys.stderr)
                return made
            work_folder.begin(folder, job)
        counts = _make_store(workers, folder, inputs, settings, vocabulary)
        if _stamps(inputs) != stamps:
            work_folder.discard(folder)
            raise BertError("--input_file: a text was changed while it was read. Run the same command again.")
        _make_plan(workers, folder, settings)
        _check_outputs(folder, outputs)
        counts |= _make_chunks(workers, folder, settings, len(outputs))
        written = _make_outputs(workers, folder, outputs, manifest_path)
        made = {**description, "counts": counts, "outputs": written}
        files.write_json(manifest_path, made)
        work_folder.discard(folder)
    return made


def _own(work_dir: str | None) -> contextlib.AbstractContextManager[None]:
    """The lock of --work_dir. That of the default folder is held too: it stands for the outputs."""
    return work_folder.locked(work_dir) if work_dir else contextlib.nullcontext()


def _default_work_folder(manifest_path: str) -> str:
    if files.is_remote(manifest_path):
        return work_folder.private(manifest_path)
    folder, name = os.path.split(manifest_path)
    return os.path.join(folder, f".{name.removesuffix('.manifest.json')}.work")


def _stamps(paths: list[str]) -> list[list[int]]:
    """Size and time of change of each file, as JSON gives them back."""
    return [[files.size(path), files.modified(path)] for path in paths]


def _make_store(workers: Workers, folder: str, inputs: list[str], settings: RecordSettings, vocabulary: Vocabulary
                ) -> dict[str, int]:
    """First pass. Returns the counts of the corpus."""
    source, store = os.path.join(folder, work_folder.TOKENIZED), os.path.join(folder, work_folder.STORE)
    files.make_folder(source)
    if id_store.exists(store) and not id_store.is_intact(store):
        work_folder.forget(folder, work_folder.STORE, work_folder.TOKENIZED_DONE)
    joined = id_store.exists(store)
    native = sum(files.size(path) for path in inputs) > _NATIVE_BYTES
    units = [(f"{number:06d}", spans) for number, spans in enumerate(id_store.plan_spans(inputs))]
    results = workers.run(
        functools.partial(
            id_store.tokenize_unit, folder=source, corpus=settings.corpus, vocab_sha256=vocabulary.sha256,
            native=native,
        ),
        units,
        os.path.join(folder, work_folder.TOKENIZED_DONE),
        "Tokenizing",
        amount=lambda unit: sum(span.end - span.start for span in unit[1]),
        measure="bytes",
        schema=id_store.UNIT_SCHEMA,
        is_intact=lambda unit, result: joined or id_store.is_unit_intact(unit[0], source, result),
        modules=("tensorflow_text",) if native else (),
    )
    counts = {name: sum(result[name] for result in results) for name in id_store.COUNTS}
    problem = None
    if not counts["documents"]:
        problem = f"{', '.join(inputs[:3])}: no text (--input_file)."
    elif counts["documents"] == 1 and settings.instances.next_sentence:
        problem = sentence_pairs.SINGLE_DOCUMENT
    if problem:
        work_folder.discard(folder)
        raise BertError(problem)
    if not joined:
        id_store.join_units([name for name, _ in units], source, store, vocabulary.size)
    return {f"corpus_{name}": count for name, count in counts.items()}


def _make_plan(workers: Workers, folder: str, settings: RecordSettings) -> None:
    """Second pass, first half."""
    store_folder, source, plan_file = (
        os.path.join(folder, name) for name in (work_folder.STORE, work_folder.PLANNED, work_folder.PLAN))
    files.make_folder(source)
    if sentence_pairs.exists(plan_file) and not sentence_pairs.is_intact(plan_file):
        work_folder.forget(folder, work_folder.PLAN_DESCRIPTION, work_folder.PLANNED_DONE)
    joined = sentence_pairs.exists(plan_file)
    blocks = sentence_pairs.plan_blocks(id_store.IdStore.open(store_folder))
    units = [
        (f"{dupe:04d}-{number:06d}", dupe, number, documents)
        for dupe in range(settings.instances.dupe_factor)
        for number, documents in enumerate(blocks)
    ]
    workers.run(
        functools.partial(
            sentence_pairs.plan_unit, folder=source, store_folder=store_folder, settings=settings.instances
        ),
        units,
        os.path.join(folder, work_folder.PLANNED_DONE),
        "Pairing sentences",
        amount=lambda unit: unit[3][1] - unit[3][0],
        measure="documents",
        schema=sentence_pairs.UNIT_SCHEMA,
        is_intact=lambda unit, result: joined or intermediate.is_intact(
            sentence_pairs.unit_file(source, unit[0]), result["file"]),
    )
    if not joined:
        sentence_pairs.join_plans([unit[0] for unit in units], source, plan_file)


def _make_chunks(workers: Workers, folder: str, settings: RecordSettings, num_outputs: int) -> dict[str, int]:
    """Second pass, second half. Returns the counts of the instances."""
    plan_file, source = os.path.join(folder, work_folder.PLAN), os.path.join(folder, work_folder.CHUNKS)
    files.make_folder(source)
    chunks = _chunks(sentence_pairs.rows_in(plan_file), num_outputs)
    # Those of outputs that are done have been removed.
    removed = {chunk[0] for number, of_output in enumerate(chunks) if _done_output(folder, number)
               for chunk in of_output}
    results = workers.run(
        functools.partial(
            instances.write_chunk,
            folder=source,
            store_folder=os.path.join(folder, work_folder.STORE),
            plan_file=plan_file,
            vocab_file=settings.corpus.vocab_file,
            settings=settings.instances,
        ),
        [chunk for of_output in chunks for chunk in of_output],
        os.path.join(folder, work_folder.CHUNKS_DONE),
        "Writing instances",
        amount=lambda unit: unit[2] - unit[1],
        measure="instances",
        schema=instances.UNIT_SCHEMA,
        is_intact=lambda unit, result: unit[0] in removed or intermediate.is_intact(
            instances.chunk_file(source, unit[0]), result["file"]),
    )
    return {name: sum(result[name] for result in results) for name in instances.COUNTS}


def _check_outputs(folder: str, outputs: list[str]) -> None:
    """Raises BertError where an output that is done has been changed since."""
    for number, path in enumerate(outputs):
        done = _done_output(folder, number)
        if done and not (files.exists(path) and files.size(path) == done["bytes"]
                         and (files.is_remote(path) or files.sha256(path) == done["sha256"])):
            work_folder.discard(folder)
            raise BertError(f"{path}: was changed while the job was interrupted. Run the same command again.")


def _done_output(folder: str, number: int) -> Result | None:
    """What is kept of an output that is done."""
    return kept_result(os.path.join(folder, work_folder.OUTPUTS_DONE), _output_name(number), _OUTPUT_SCHEMA)


def _output_name(number: int) -> str:
    return f"{number:05d}"


def _chunks(total: int, num_outputs: int) -> list[list[tuple[str, int, int]]]:
    """Shares records evenly among outputs, and each output among chunks: a list of (name, begin, end) an output."""
    edges = [total * output // num_outputs for output in range(num_outputs + 1)]
    return [
        [
            (f"{output:05d}-{begin:012d}", begin, min(begin + instances.CHUNK_ROWS, end))
            for begin in range(start, end, instances.CHUNK_ROWS)
        ]
        for output, (start, end) in enumerate(itertools.pairwise(edges))
    ]


def _make_outputs(workers: Workers, folder: str, outputs: list[str], manifest_path: str) -> list[dict[str, Any]]:
    """Joins chunks into the output files. Returns the manifest's list of them."""
    source = os.path.join(folder, work_folder.CHUNKS)
    total = sentence_pairs.rows_in(os.path.join(folder, work_folder.PLAN))
    for path in (manifest_path, *outputs):
        for leftover in files.glob(f"{path}{files.TEMPORARY}*") if files.is_remote(path) else ():
            files.remove(leftover)
    if files.exists(manifest_path):
        files.remove(manifest_path)

    def remove_chunks(unit: tuple[str, str, list[str], int], _: dict[str, Any]) -> None:
        for name in unit[2]:
            pathlib.Path(instances.chunk_file(source, name)).unlink(missing_ok=True)

    results = workers.run(
        functools.partial(instances.join_chunks, folder=source),
        [
            (_output_name(number), path, [name for name, _, _ in chunks], sum(end - begin for _, begin, end in chunks))
            for number, (path, chunks) in enumerate(zip(outputs, _chunks(total, len(outputs))))
        ],
        os.path.join(folder, work_folder.OUTPUTS_DONE),
        "Joining files",
        amount=lambda unit: unit[3],
        measure="instances",
        after=remove_chunks,
        schema=_OUTPUT_SCHEMA,
    )
    return [
        {"name": os.path.relpath(path, os.path.dirname(manifest_path)), **result}
        for path, result in zip(outputs, results)
    ]


def summary(made: dict[str, Any]) -> str:
    """What was made, in a few lines, from a manifest."""
    counts, settings = made["counts"], made["settings"]
    instances_made = max(1, counts["instances"])
    slots = instances_made * settings["max_seq_length"]
    lines = [
        ", ".join(counted(counts[f"corpus_{noun}s"], noun) for noun in ("document", "sentence", "token")),
        f"{counted(counts['instances'], 'instance')} in {counted(len(made['outputs']), 'file')}, "
        f"{sum(output['bytes'] for output in made['outputs']):,} bytes",
        f"{100 * (1 - counts['tokens'] / slots):.1f} % padding, {100 * counts['full'] / instances_made:.1f} % of the "
        f"instances without padding, {counts['predictions'] / instances_made:.1f} predictions per instance",
    ]
    if settings["next_sentence"]:
        lines.append(f"{100 * counts['random'] / instances_made:.1f} % of the second segments are random texts")
    if counts["corpus_bad_lines"]:
        lines.append(f"{counted(counts['corpus_bad_lines'], 'line')} left out: not UTF-8 (--on_bad_utf8=skip)")
    return "\n".join(lines)


def examples(made: dict[str, Any], output_file: str, vocab_file: str, number: int) -> str:
    """The first finished instances as word pieces, a paragraph each; predictions as position and original piece.

    Args:
        made: their manifest.
        output_file: as in RecordSettings.
        vocab_file: their vocabulary.
        number: how many to show.
    """
    import tensorflow as tf  # here: only reading records needs it

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
            f"second segment: {'random' if row['next_sentence_labels'][0] else 'the actual next one'}"
        )
    return "\n".join(shown)

"""Speed of pre-training, fine-tuning and prediction next to the peers, at their best, on this chip.

    python -m benchmarks.speed --peers_python=peers/bin/python --init_checkpoint=minilm --glue_dir=glue \\
        --squad_dir=squad

The peers need an environment of their own (`pip install -r benchmarks/requirements-peers.txt`); without
`--peers_python` only this project is measured. Each engine runs in a process of its own; all start as the scripts do
and have the same environment. First every variant of an engine is tried for a turn; then the fastest ones (in
CPU-seconds) take turns, and the table has medians of the rounds. "ours faster" is the median of the paired ratios of
CPU-seconds, "of bound" the useful matrix operations as a share of the best matrix product of any library, "kernel" the
kernel's share of the CPU-seconds, "faults" page faults of a step.

    python -m benchmarks.speed --isa=avx2 ...    emulates a chip without AVX-512
"""

import dataclasses
import os
import tempfile
from collections.abc import Mapping

from benchmarks import startup
from benchmarks.speed import batches, cells, chip, table, turns
from benchmarks.speed.cells import Peers
from foundation import command
from foundation.errors import BertError
from foundation.settings import DATA, EVALUATION, HARDWARE, OTHER, Settings, setting
from training import initial_model
from training.settings import PRECISIONS, InitialModelSettings

DATA_SETS = ("cola", "sst-2", "sts-b", "squad")
PARTS = ("products", "pretraining", "finetuning", "prediction", "startup")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpeedSettings(Settings):
    """One command."""

    parts: tuple[str, ...] = setting(
        PARTS, group=EVALUATION, help=f"Parts of the table, separated by commas: {', '.join(PARTS)}.")
    sizes: tuple[str, ...] = setting(
        tuple(batches.SIZES), group=EVALUATION, help="Sizes to pre-train, separated by commas.")
    precisions: tuple[str, ...] = setting(
        ("auto",), group=EVALUATION,
        help="float32, bfloat16 or both, separated by commas; auto: that of the scripts on this chip.")
    glue_dir: str | None = setting(None, group=DATA, help="Folder with CoLA, SST-2 and STS-B.")
    squad_dir: str | None = setting(None, group=DATA, help="Folder with train-v1.1.json and dev-v1.1.json.")
    data_sets: tuple[str, ...] = setting(
        DATA_SETS, group=DATA, help="Data sets to use, separated by commas.")
    init_checkpoint: str | None = setting(
        None, group=DATA, help="Hugging Face folder of the model to fine-tune and to predict with.")
    batch_size: int = setting(32, at_least=1, group=EVALUATION, help="Rows of a fine-tuning batch.")
    prediction_batch_size: int = setting(32, at_least=1, group=EVALUATION, help="Rows of a prediction batch.")
    batches: int = setting(4, at_least=1, group=EVALUATION, help="Batches that stand for a data set in fine-tuning.")
    rounds: int = setting(3, at_least=1, group=EVALUATION, help="Rounds; medians are reported.")
    seconds: float = setting(5.0, at_least=0.0, group=EVALUATION, help="Seconds of a turn, at least.")
    isa: str = setting("native", choices=chip.ISAS, group=HARDWARE, help="avx2 emulates a chip without AVX-512.")
    onednn: str = setting(
        "auto", choices=("auto", "0", "1"), group=HARDWARE, help="TF_ENABLE_ONEDNN_OPTS of every engine.")
    peers_python: str | None = setting(
        None, group=OTHER, help="Python interpreter that has torch, transformers, keras-hub and onnxruntime.")
    peers: tuple[str, ...] = setting(
        cells.PEERS, group=OTHER, help="Peers to measure, separated by commas.")
    peer_threads: tuple[str, ...] = setting(
        ("cores",), group=OTHER, help="Numbers of threads to try PyTorch and onnxruntime with, separated by commas.")


class Bench:
    """Measures and prints cells.

    Args:
        settings: SpeedSettings.
        environment: variables of every engine.
        peers: Peers.
    """

    def __init__(self, settings: SpeedSettings, environment: Mapping[str, str], peers: Peers) -> None:
        self.settings, self.environment, self.peers = settings, environment, peers
        self.bounds: dict[str, float] = {}  # by precision
        self.ratios: dict[str, float] = {}

    def products(self, precision: str) -> None:
        """One large product of each library: the bound."""
        self.bounds[precision] = table.products(precision, self._measure(cells.products(precision, self.peers)))

    def pretraining(self, precision: str) -> None:
        """A line for each size."""
        table.head(f"pre-training in {precision}, rows of {batches.SEQUENCE} tokens", "real tokens; faults of a step")
        for size in self.settings.sizes:
            result = self._measure(cells.pretraining(size, precision, self.peers))
            self._report(f"pre-training {size} {precision}", size, result, precision,
                         batches.useful_operations(size), batches.sample(size, False).tokens)

    def rows(self, part: str, precision: str) -> None:
        """A line for each data set, in fine-tuning or in prediction."""
        settings = self.settings
        if not (settings.glue_dir or settings.squad_dir):
            return
        from benchmarks.speed import data_sets  # with TensorFlow

        size = settings.batch_size if part == "finetuning" else settings.prediction_batch_size
        made, count = {"finetuning": (cells.finetuning, settings.batches),
                       "prediction": (cells.prediction, 2 * settings.batches)}[part]
        table.head(f"{part} in {precision}, batches of {size}", "rows; faults of a batch")
        initial = initial_model.find(InitialModelSettings(init_checkpoint=settings.init_checkpoint))
        shared = {"model": settings.init_checkpoint, "batch_size": size, "count": count}
        with tempfile.TemporaryDirectory() as folder:
            for data in data_sets.make(settings.glue_dir, settings.squad_dir, settings.data_sets, part,
                                       initial.tokenizer(), folder):
                result = self._measure(made(data, precision, shared, self.peers))
                self._report(f"{part} {data.name} {precision}", data.name, result, precision, None, size)

    def startup(self, precision: str) -> None:
        """Time to the first update of a small fine-tuning and to its end."""
        print(f"\nstart-up in {precision}")
        startup.main(startup.StartupSettings(
            cola_dir=os.path.join(self.settings.glue_dir or "", "CoLA"), precision=precision,
            init_checkpoint=self.settings.init_checkpoint or "", repeats=self.settings.rounds), self.environment)

    def _measure(self, engines: list[turns.Engine]) -> turns.Result:
        return turns.measure(engines, self.environment, self.settings.rounds, self.settings.seconds)

    def _report(self, line: str, work: str, result: turns.Result, precision: str, operations: float | None,
                units: float) -> None:
        ratio = table.cell(work, result, operations, self.bounds.get(precision), units)
        if ratio is not None:
            self.ratios[line] = ratio


def check(settings: SpeedSettings) -> None:
    """Raises BertError for a name that is none."""
    cores = [str(number) for number in range(1, len(os.sched_getaffinity(0)) + 1)]
    for flag, known in (("parts", PARTS), ("sizes", tuple(batches.SIZES)), ("precisions", PRECISIONS),
                        ("data_sets", DATA_SETS), ("peers", cells.PEERS), ("peer_threads", ("cores", *cores))):
        for name in getattr(settings, flag):
            if name not in known:
                raise BertError(f"--{flag}={name}: not one of {', '.join(known)}.")
    if (settings.glue_dir or settings.squad_dir) and not settings.init_checkpoint:
        raise BertError("--init_checkpoint is missing: the model to fine-tune.")


def main(settings: SpeedSettings) -> None:
    """Prints the parts."""
    check(settings)
    threads = [len(os.sched_getaffinity(0)) if each == "cores" else int(each) for each in settings.peer_threads]
    bench = Bench(settings, chip.environment(settings.isa, settings.onednn),
                  Peers(settings.peers_python, settings.peers, threads))
    print(chip.describe(settings.isa, bench.environment), flush=True)
    for precision in settings.precisions:
        precision = chip.default_precision(settings.isa) if precision == "auto" else precision
        for part in settings.parts:
            if part in ("finetuning", "prediction"):
                bench.rows(part, precision)
            elif part != "startup" or settings.glue_dir:
                getattr(bench, part)(precision)
    if bench.ratios:
        table.summary(bench.ratios)


if __name__ == "__main__":
    command.run_with(main, SpeedSettings, __doc__)

"""Time from the command to the first update of a small fine-tuning, and to its end.

    python -m benchmarks.startup --init_checkpoint=minilm --cola_dir=glue/CoLA

run_classifier.py trains on the first rows of CoLA with its defaults and evaluates on the first rows of the dev set,
each time in a fresh folder. CPU-seconds are those of the process and of its children that have ended.
"""

import dataclasses
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from foundation import command
from foundation.errors import BertError
from foundation.settings import DATA, EVALUATION, HARDWARE, Settings, setting
from training.settings import PRECISIONS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_MOMENTS = ("the first update", "the end")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StartupSettings(Settings):
    """One command."""

    cola_dir: str = setting(group=DATA, help="GLUE's folder of CoLA.")
    rows: int = setting(200, at_least=32, group=DATA, help="Rows to train on, and to evaluate.")
    init_checkpoint: str = setting(group=DATA, help="Weights to start from.")
    precision: str = setting("auto", choices=PRECISIONS, group=HARDWARE, help="As of run_classifier.py.")
    repeats: int = setting(3, at_least=1, group=EVALUATION, help="Runs; medians are reported.")


@dataclasses.dataclass(frozen=True)
class Moment:
    """Since the command: seconds, and CPU-seconds, with those of the kernel among them."""

    wall: float
    cpu: float
    system: float


def make_data(folder: str, cola_dir: str, rows: int) -> None:
    """Writes the first rows of both splits."""
    for split in ("train", "dev"):
        with (open(os.path.join(cola_dir, f"{split}.tsv"), encoding="utf-8") as source,
              open(os.path.join(folder, f"{split}.tsv"), "w", encoding="utf-8") as target):
            target.writelines(itertools.islice(source, rows))


def run(flags: Sequence[str], environment: Mapping[str, str]) -> tuple[Moment, Moment]:
    """Runs run_classifier.py; returns when the first update was made, and the end.

    Args:
        flags: of the script.
        environment: variables added to those of this process.

    Raises:
        BertError: it failed, or said nothing of an update.
    """
    started, first, lines = time.perf_counter(), None, []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen([sys.executable, "run_classifier.py", *flags], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment}) as process:
        assert process.stdout
        for line in process.stdout:
            lines.append(line)
            if first is None and line.startswith("step "):
                first = Moment(time.perf_counter() - started, *_cpu_of(process.pid))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode or first is None:
        raise BertError(f"run_classifier.py ended with exit code {process.returncode}: {''.join(lines[-3:])}")
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return first, Moment(time.perf_counter() - started, user + system, system)


def _cpu_of(process: int) -> tuple[float, float]:
    """CPU-seconds of a running process and its ended children, according to Linux, and the kernel's among them."""
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    user, system, of_children, system_of_children = (
        int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:15])
    return user + system + of_children + system_of_children, system + system_of_children


def main(settings: StartupSettings, environment: Mapping[str, str] = MappingProxyType({})) -> None:
    """Prints a line for each moment.

    Args:
        settings: StartupSettings.
        environment: variables of the script, added to those of this process.
    """
    runs = []
    for _ in range(settings.repeats):
        with tempfile.TemporaryDirectory() as folder:
            make_data(folder, settings.cola_dir, settings.rows)
            runs.append(run([
                "--task_name=cola", f"--data_dir={folder}", "--do_train=true", "--do_eval=true",
                f"--init_checkpoint={settings.init_checkpoint}", f"--precision={settings.precision}",
                f"--output_dir={os.path.join(folder, 'run')}"], environment))
    print(f"{settings.rows} rows of CoLA, 3 epochs, with evaluation")
    print(f"{'until':16} {'CPU-s':>6} {'kernel':>7} {'seconds':>8}")
    for name, moments in zip(_MOMENTS, zip(*runs)):
        cpu, system, wall = (statistics.median(getattr(moment, field) for moment in moments)
                             for field in ("cpu", "system", "wall"))
        print(f"{name:16} {cpu:6.1f} {system:7.1f} {wall:8.1f}", flush=True)


if __name__ == "__main__":
    command.run_with(main, StartupSettings, __doc__)

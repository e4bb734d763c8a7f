"""The frame around every script: `--help`, flags to settings, `main` called; a mistake or an interrupt is one line."""

import contextlib
import io
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

from foundation import cpu, flags, imports, start
from foundation.errors import BertError, Stopped
from foundation.flags import AnySettings
from foundation.settings import Settings

# What a shell reports of a process that a signal ended.
_EXIT_CODE_OF_SIGNALS = 128


def run(main: Callable[[flags.CommandLine], None], kinds: Iterable[type[Settings]], description: str,
        argv: Sequence[str] | None = None) -> None:
    """Parses flags and runs `main`; a `BertError` becomes one line on stderr and exit code 1.

    Ctrl-C and SIGTERM end the process with one line too, wherever it is; a training loop saves first.

    Args:
        main: called with the parsed command line.
        kinds: the Settings classes that it takes its settings from.
        description: the script's docstring, the head of `--help`.
        argv: the command line; `sys.argv` where None.
    """
    argv = sys.argv if argv is None else argv
    kinds = tuple(kinds)
    _print_anything()
    if flags.asks_for_help(argv):
        print(flags.help_text(kinds, description))
        return
    with _interruptible():
        try:
            line = flags.CommandLine(kinds)
            line.parse(argv)
            cpu.prepare()
            imports.shorten()
            main(line)
        except Stopped as stopped:
            _fail(str(stopped), _EXIT_CODE_OF_SIGNALS + signal.SIGINT)
        except BertError as error:
            _fail(f"error: {error}", 1)
        except KeyboardInterrupt as interrupt:
            name = str(interrupt) or "SIGINT"
            _fail(f"Interrupted ({name}). Nothing that is already written is lost: rerun the same command.",
                  _EXIT_CODE_OF_SIGNALS + signal.Signals[name])


def run_with(main: Callable[[AnySettings], None], kind: type[AnySettings], description: str) -> None:
    """`run` for a script with one settings class: `main` is called with an instance of it."""
    run(lambda line: main(line.settings(kind)), (kind,), description)


def _print_anything() -> None:
    """Escapes characters that the terminal's encoding lacks, or that are none, where `print` would raise."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Has Ctrl-C and SIGTERM raise KeyboardInterrupt, so that Python code can clean up."""

    def interrupt(number: int, _: object) -> NoReturn:
        raise KeyboardInterrupt(signal.Signals(number).name)

    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is start.end:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _fail(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr, flush=True)
    sys.exit(code)

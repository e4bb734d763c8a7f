"""The frame around every script: `--help`, flags to settings, `main` called, a mistake reported in one line."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from foundation import flags
from foundation.errors import BertError
from foundation.flags import AnySettings
from foundation.settings import Settings


def run(main: Callable[[flags.CommandLine], None], kinds: Iterable[type[Settings]], description: str,
        argv: Sequence[str] | None = None) -> None:
    """Parses flags and runs `main`; a `BertError` becomes one line on stderr and exit code 1.

    Args:
        main: called with the parsed command line.
        kinds: the Settings classes that it takes its settings from.
        description: the script's docstring, the head of `--help`.
        argv: the command line; `sys.argv` where None.
    """
    argv = sys.argv if argv is None else argv
    kinds = tuple(kinds)
    if flags.asks_for_help(argv):
        print(flags.help_text(kinds, description))
        return
    try:
        line = flags.CommandLine(kinds)
        line.parse(argv)
        main(line)
    except BertError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)


def run_with(main: Callable[[AnySettings], None], kind: type[AnySettings], description: str) -> None:
    """`run` for a script with one settings class: `main` is called with an instance of it."""
    run(lambda line: main(line.settings(kind)), (kind,), description)


def _fail(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr, flush=True)
    sys.exit(1)

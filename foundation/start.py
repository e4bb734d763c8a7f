"""The first import of every script: from here on, Ctrl-C and SIGTERM end the process at once, with one line.

While a script imports what it needs there is nothing to save, and an exception would get lost inside of an import or
end as a traceback. `foundation.command.run` then has both raise KeyboardInterrupt.
"""

import os
import signal
import sys
from typing import NoReturn

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FOLDERS = ("", "data_prep", "demo", "benchmarks")  # of the scripts
_COMMANDS = "bert-"  # what the names of the installed ones begin with


def end(number: int, _: object) -> NoReturn:
    """The handler of both signals."""
    os.write(2, f"Interrupted ({signal.Signals(number).name}).\n".encode())
    os._exit(128 + number)  # as a shell reports a process that a signal ended


def _is_main() -> bool:
    """Whether the main program is one of the scripts, and neither a program that imports them nor a worker."""
    path = getattr(sys.modules["__main__"], "__file__", None) or ""
    return os.path.basename(path).startswith(_COMMANDS) or os.path.dirname(os.path.abspath(path)) in (
        os.path.join(_ROOT, folder).rstrip(os.sep) for folder in _FOLDERS)


if _is_main():
    for _number, _default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(_number) is _default:  # a job in the background may have been told to ignore Ctrl-C
            signal.signal(_number, end)

"""The script that a search runs, and its flags: `run_search.py SCRIPT [the search's flags] -- [the script's flags]`."""

import dataclasses
import os
import re
from collections.abc import Sequence

from foundation import files
from foundation.errors import BertError

# Scripts in the same folder that do not fine-tune.
_OTHER_SCRIPTS = ("run_pretraining", "run_search")


@dataclasses.dataclass(frozen=True)
class Script:
    """A fine-tuning script with the flags that are the same in every run.

    Attributes:
        path: of its file.
        flags: as `--name=value`.
    """

    path: str
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return os.path.basename(self.path)

    @property
    def given(self) -> set[str]:
        """Names of the flags."""
        return {_flag_name(flag) for flag in self.flags}

    def check(self, searched: Sequence[str]) -> None:
        """Refuses arguments that are not flags, and flags that the search sets.

        Args:
            searched: names of the flags that the search sets.

        Raises:
            BertError: naming the flag.
        """
        for flag in self.flags:
            name = _flag_name(flag)
            if not flag.startswith("-") or ("=" not in flag and not re.fullmatch(r"--?\w+", flag)):
                raise BertError(f"{flag!r}: only flags of {self.name} may follow --, written --name=value.")
            if name in searched:
                raise BertError(f"--{name} is given after --, but the search sets it. Give it before --.")


def divide(argv: Sequence[str]) -> tuple[list[str], str | None, tuple[str, ...]]:
    """Divides a command line at `--`.

    Args:
        argv: as `sys.argv`.

    Returns:
        The search's own command line; the script as it is named there, None where it is not; the script's flags.
    """
    at = argv.index("--") if "--" in argv else len(argv)
    own, script_flags = list(argv[:at]), tuple(argv[at + 1 :])
    if len(own) > 1 and not own[1].startswith("-"):
        return [own[0], *own[2:]], own[1], script_flags
    return own, None, script_flags


def find(name: str | None, folder: str) -> str:
    """The path of a script.

    Args:
        name: a script of `folder`, with or without `.py`, or the path of any other.
        folder: where the fine-tuning scripts are.

    Raises:
        BertError: no name, or no such script.
    """
    known = _scripts_in(folder)
    if not name:
        raise BertError(f"No script given. It comes first: python run_search.py {known[0]} ... ({', '.join(known)}).")
    if name.removesuffix(".py") in known:
        return os.path.join(folder, f"{name.removesuffix('.py')}.py")
    if name.endswith(".py") and os.path.exists(name):
        return name
    raise BertError(f"{name!r} is neither {', '.join(known)} nor the path of a script of your own.")


def _scripts_in(folder: str) -> list[str]:
    """Names of the fine-tuning scripts in a folder, without `.py`."""
    names = [os.path.basename(path).removesuffix(".py") for path in files.glob(os.path.join(folder, "run_*.py"))]
    return [name for name in names if name not in _OTHER_SCRIPTS]


def _flag_name(flag: str) -> str:
    """The name in `--name=value`, `--name` and `--nodo_train`."""
    name = flag.lstrip("-").split("=", 1)[0]
    return name[2:] if "=" not in flag and name.startswith("nodo_") else name

"""The exceptions whose message is meant for the person in front of the screen."""

_LONGEST, _END = 900, 200  # a message may quote a file that is damaged


class BertError(Exception):
    """Something the user can fix: a wrong flag, a bad file, a full disk.

    The message is one plain line: what is wrong, where (file, line, flag), and what to do. `foundation.command.run`
    prints it without a traceback and ends the process with exit code 1.

    Args:
        message: characters that are not printable, such as line feeds in a value that it quotes, are escaped.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(_one_line(str(message)))


class Stopped(BertError):
    """The process was asked to stop (Ctrl-C, SIGTERM): the message says what is saved and how to continue."""


def _one_line(text: str) -> str:
    """A text in one line of limited length."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST - _END]} … {text[-_END:]}"
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)

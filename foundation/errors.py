"""The exceptions whose message is meant for the person in front of the screen."""


class BertError(Exception):
    """Something the user can fix: a wrong flag, a bad file, a full disk.

    The message is one plain line: what is wrong, where (file, line, flag), and what to do. `foundation.command.run`
    prints it without a traceback and ends the process with exit code 1.
    """


class Stopped(BertError):
    """The process was asked to stop (Ctrl-C, SIGTERM): the message says what is saved and how to continue."""

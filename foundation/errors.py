"""The one exception that a person in front of the screen is meant to read."""


class BertError(Exception):
    """Something the user can mend: a wrong flag, a bad file, a full disk.

    The message is one plain line: what is wrong, where (file, line, flag), and what to do. `foundation.command.run`
    prints it without a traceback and ends the process with exit code 1.
    """

"""The frame around every script: flags parsed, `main` called, a mistake told in one line."""

import sys

from absl import app

from foundation.errors import BertError


def run(main, argv=None):
    """Parses flags and runs `main(argv)`; a `BertError` becomes one line on stderr and exit code 1.

    Args:
        main: called with the arguments that are not flags.
        argv: the command line, `sys.argv` where None.
    """

    def guarded(arguments):
        if len(arguments) > 1:
            _fail(f"{arguments[1]!r} is not a flag. Flags are written --name=value; see --help.")
        try:
            return main(arguments)
        except BertError as error:
            _fail(str(error))
        except KeyboardInterrupt:
            print("Interrupted.", file=sys.stderr)
            sys.exit(130)

    app.run(guarded, argv=argv)


def _fail(message):
    print(f"error: {message}", file=sys.stderr, flush=True)
    sys.exit(1)

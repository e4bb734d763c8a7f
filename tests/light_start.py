"""Runs a script and refuses what makes its answer slow: the import of TensorFlow or another heavy library."""

import pathlib
import subprocess
import sys

HEAVY = ("tensorflow", "keras", "sklearn", "scipy", "seqeval", "matplotlib", "tqdm")
_PROGRAM = f"""
import os, runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print("imported:", *(each for each in {HEAVY} if each in sys.modules))
"""


def run_light(script, *arguments, cwd=None):
    """Runs a script to its end; it must import no heavy library.

    Args:
        script: path.
        arguments: of the command line.
        cwd: folder to run in.

    Returns:
        Exit code, output, and what is on stderr.
    """
    done = subprocess.run([sys.executable, "-c", _PROGRAM, str(pathlib.Path(script)), *map(str, arguments)],
                          capture_output=True, text=True, timeout=240, cwd=cwd)
    *output, imported = done.stdout.splitlines()
    assert imported == "imported:", f"{imported}\n{done.stderr}"
    return done.returncode, "\n".join(output), done.stderr

"""`metrics.jsonl` of a run's folder, read back: a line each report, for the learning curve."""

import json
import os
from typing import Any

from foundation import files, run_files


def read(run_folder: str) -> list[dict[str, Any]]:
    """Reports of a run: dicts of `kind` ("train" or "eval"), `step` and metrics."""
    path = os.path.join(run_folder, run_files.METRICS)
    lines = files.read_text(path).splitlines() if files.exists(path) else []
    # A process killed while writing leaves half a line at the end.
    return [json.loads(line) for line in lines if line.endswith("}")]


def drop_after(run_folder: str, step: int) -> None:
    """Drops the reports after a step: a run that resumes there makes them again."""
    if lines := read(run_folder):
        kept = "".join(json.dumps(line) + "\n" for line in lines if line["step"] <= step)
        files.write_text(os.path.join(run_folder, run_files.METRICS), kept)

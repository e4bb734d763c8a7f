"""`metrics.jsonl` of a run's folder, read back: a line each report, for the learning curve."""

import json
import os
from typing import Any

from foundation import files, run_files
from foundation.errors import BertError


def read(run_folder: str) -> list[dict[str, Any]]:
    """Reports of a run: dicts of `kind` ("train" or "eval"), `step` and metrics.

    Raises:
        BertError: a line that is not a report; names file and line.
    """
    path = os.path.join(run_folder, run_files.METRICS)
    lines = files.read_text(path).splitlines() if files.exists(path) else []
    # A process killed while writing leaves half a line at the end.
    return [_report(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)
            if number < len(lines) or line.endswith("}")]


def drop_after(run_folder: str, step: int) -> None:
    """Drops the reports after a step: a run that resumes there makes them again."""
    if lines := read(run_folder):
        kept = "".join(json.dumps(line) + "\n" for line in lines if line["step"] <= step)
        files.write_text(os.path.join(run_folder, run_files.METRICS), kept)


def _report(line: str, place: str) -> dict[str, Any]:
    report = files.parse_json(line, place)
    if not isinstance(report, dict) or type(report.get("step")) is not int or report.get("kind") not in (
            "train", "eval"):
        raise BertError(f"{place}: not a report of a run. Remove the file: only the learning curve is drawn from it.")
    return report

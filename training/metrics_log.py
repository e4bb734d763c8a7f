"""`metrics.jsonl` of a run's folder, read back: a line each report, for the learning curve."""

import json
import os
from typing import Any

from foundation import files, run_files, state
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


def add(run_folder: str, report: dict[str, Any]) -> None:
    """Adds a report; an evaluation replaces one of the same step, which a kill let an earlier start make too."""
    path, line = os.path.join(run_folder, run_files.METRICS), json.dumps(report) + "\n"
    before = read(run_folder) if report["kind"] == "eval" else []
    kept = [each for each in before if (each["kind"], each["step"]) != ("eval", report["step"])]
    if len(kept) < len(before):
        files.write_text(path, "".join(json.dumps(each) + "\n" for each in kept) + line)
        return
    with files.open_file(path, "a") as file:
        file.write(line)


def drop_after(run_folder: str, step: int) -> None:
    """Drops the reports after a step: a run that resumes there makes them again."""
    path = os.path.join(run_folder, run_files.METRICS)
    if files.exists(path):
        # Also without a whole line: the next report would follow on half of one.
        kept = "".join(json.dumps(line) + "\n" for line in read(run_folder) if line["step"] <= step)
        files.write_text(path, kept)


def _report(line: str, place: str) -> dict[str, Any]:
    report = files.parse_json(line, place)
    problem = state.problem(report, {"kind": str, "step": int}) or state.problem(
        {name: value for name, value in report.items() if name != "kind"}, {str: float})
    if not problem and report["kind"] not in ("train", "eval"):
        problem = "its kind is neither train nor eval"
    if problem:
        raise BertError(f"{place}: not a report of a run ({problem}). Remove the file: only the learning curve is "
                        "drawn from it.")
    return report

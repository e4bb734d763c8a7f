"""The learning curve of a run as a picture, from its reports."""

import dataclasses
import io
from collections.abc import Mapping, Sequence
from typing import Any

from foundation import files
from training import metrics_log


@dataclasses.dataclass(frozen=True)
class Panel:
    """One of the picture's diagrams.

    Attributes:
        label: of its vertical axis.
        metrics: dict of a metric's name to its name in the legend; at most two.
        limits: of its vertical axis, or None.
        reference: (label, value) of a line to compare with, or None.
    """

    label: str
    metrics: Mapping[str, str]
    limits: tuple[float, float] | None = None
    reference: tuple[str, float] | None = None


LOSS = Panel("loss", {"loss": "loss"})
MASKED_LM_LOSS = Panel("loss, nats", {"masked_lm_loss": "masked words"})
PRETRAINING_ACCURACY = Panel(
    "accuracy", {"masked_lm_accuracy": "masked words", "next_sentence_accuracy": "next sentence"}, limits=(0, 1))


def draw(run_folder: str, output_file: str, title: str, panels: Sequence[Panel], evaluated: str = "held out") -> None:
    """Draws metrics over steps: those of training as lines, those of evaluations as points.

    Args:
        run_folder: folder with metrics.jsonl.
        output_file: path of the PNG.
        title: above the picture.
        panels: from left to right; a panel whose metrics were never reported is left out.
        evaluated: what the evaluations were of, for the legend.
    """
    lines = metrics_log.read(run_folder)
    panels = [panel for panel in panels if any(name in line for line in lines for name in panel.metrics)]
    if not panels:
        return
    # Imported here: matplotlib takes half a second, and only the picture needs it.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * len(panels), 4.5), layout="constrained")
    figure.suptitle(title)
    for axes, panel in zip(figure.subplots(1, len(panels), sharex=True, squeeze=False)[0], panels):
        _plot(axes, lines, panel, evaluated)
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture)
    files.write_bytes(output_file, picture.getvalue())


def _plot(axes: Any, lines: Sequence[Mapping[str, Any]], panel: Panel, evaluated: str) -> None:
    for color, (name, shown) in zip(("C0", "C1"), panel.metrics.items()):
        for kind, style in (("train", {"linewidth": 1.5}), ("eval", {"marker": "o", "linestyle": "none"})):
            points = [(line["step"], line[name]) for line in lines if line["kind"] == kind and name in line]
            if points:
                suffix = f", {evaluated}" if kind == "eval" else ""
                axes.plot(*zip(*points), color=color, label=shown + suffix, **style)
    if panel.reference:
        label, value = panel.reference
        axes.axhline(value, color="grey", linestyle="--", linewidth=1, label=f"{label} ({value:.2f})")
    if panel.limits:
        axes.set_ylim(panel.limits)
    axes.set_ylabel(panel.label)
    axes.set_xlabel("step")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15))

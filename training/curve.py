"""The learning curve of a run as a picture, from what it reported."""

import dataclasses
import io

from foundation import files
from training.reporting import read_metrics


@dataclasses.dataclass(frozen=True)
class Panel:
    """One of the picture's diagrams.

    Attributes:
        label: of its vertical axis.
        figures: dict of a reported figure's name to what the legend calls it; at most two.
        limits: of its vertical axis, or None.
        reference: (label, value) of a line to compare with, or None.
    """

    label: str
    figures: dict
    limits: tuple | None = None
    reference: tuple | None = None


LOSS = Panel("loss", {"loss": "loss"})
MASKED_LM_LOSS = Panel("loss, nats", {"masked_lm_loss": "masked words"})
PRETRAINING_ACCURACY = Panel(
    "accuracy", {"masked_lm_accuracy": "masked words", "next_sentence_accuracy": "next sentence"}, limits=(0, 1))


def draw(run_folder, output_file, title, panels):
    """Draws figures over steps: those of training as lines, those of evaluations as points.

    Args:
        run_folder: folder with metrics.jsonl.
        output_file: path of the PNG.
        title: above the picture.
        panels: sequence of Panel, from left to right; one of figures that were not reported is left out.
    """
    lines = read_metrics(run_folder)
    panels = [panel for panel in panels if any(name in line for line in lines for name in panel.figures)]
    if not panels:
        return
    # Here and not above: matplotlib takes half a second, and only the picture needs it.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * len(panels), 4.5), layout="constrained")
    figure.suptitle(title)
    for axes, panel in zip(figure.subplots(1, len(panels), sharex=True, squeeze=False)[0], panels):
        _plot(axes, lines, panel)
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture)
    with files.atomic(output_file) as temporary, files.open_file(temporary, "wb") as file:
        file.write(picture.getvalue())


def _plot(axes, lines, panel):
    for color, (name, shown) in zip(("C0", "C1"), panel.figures.items()):
        for kind, style in (("train", {"linewidth": 1.5}), ("eval", {"marker": "o", "linestyle": "none"})):
            points = [(line["step"], line[name]) for line in lines if line["kind"] == kind and name in line]
            if points:
                held_out = ", held out" if kind == "eval" else ""
                axes.plot(*zip(*points), color=color, label=shown + held_out, **style)
    if panel.reference:
        label, value = panel.reference
        axes.axhline(value, color="grey", linestyle="--", linewidth=1, label=f"{label} ({value:.2f})")
    if panel.limits:
        axes.set_ylim(panel.limits)
    axes.set_ylabel(panel.label)
    axes.set_xlabel("step")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)

"""The learning curve of a run as a picture, from what it reported."""

import io

import tensorflow as tf

from foundation import files
from training.reporting import read_metrics


def draw(run_folder, output_file, title="Pre-training", reference=None):
    """Draws loss and accuracy over steps.

    Args:
        run_folder: folder with metrics.jsonl.
        output_file: path of the PNG.
        title: above the picture.
        reference: (label, loss) of a line to compare with, or None.
    """
    # Here and not above: matplotlib takes half a second, and only the picture needs it.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = read_metrics(run_folder)
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    figure.suptitle(title)
    losses, accuracies = figure.subplots(1, 2)
    _plot(losses, lines, {"masked_lm_loss": "masked words"}, "loss, nats")
    if reference:
        label, loss = reference
        losses.axhline(loss, color="grey", linestyle="--", linewidth=1, label=f"{label} ({loss:.2f})")
    names = {"masked_lm_accuracy": "masked words", "next_sentence_accuracy": "next sentence"}
    _plot(accuracies, lines, names, "accuracy")
    accuracies.set_ylim(0, 1)
    for axes in (losses, accuracies):
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture)
    with files.atomic(output_file) as temporary, tf.io.gfile.GFile(temporary, "wb") as file:
        file.write(picture.getvalue())


def _plot(axes, lines, names, label):
    axes.set_ylabel(label)
    for color, (name, shown) in zip(("C0", "C1"), names.items()):
        for kind, style in (("train", {"linewidth": 1.5}), ("eval", {"marker": "o", "linestyle": "none"})):
            points = [(line["step"], line[name]) for line in lines if line["kind"] == kind and name in line]
            if points:
                held_out = ", held out" if kind == "eval" else ""
                axes.plot(*zip(*points), color=color, label=shown + held_out, **style)

"""Pre-training: settings in, a trained and evaluated BERT out (paper, section 3.1 and appendix A.2)."""

import dataclasses

from training import pretraining_inputs
from training.settings import PretrainingSettings


@dataclasses.dataclass
class Report:
    """The result of a run.

    Attributes:
        step: updates made in all.
        evaluation: metrics of the last evaluation, or None.
        final_model: folder of the model, or None where nothing was trained.
    """

    step: int
    evaluation: dict[str, float] | None = None
    final_model: str | None = None

    def summary(self) -> str:
        """A line for the console."""
        return f"Done at step {self.step:,}." + (f" Model: {self.final_model}" if self.final_model else "")


def run(settings: PretrainingSettings) -> Report:
    """Trains, evaluates, or both.

    Args:
        settings: PretrainingSettings.

    Returns:
        Report.

    Raises:
        BertError: anything the user can fix; see each step.
    """
    inputs = pretraining_inputs.find(settings)
    # Imported here: TensorFlow takes seconds, and mistakes in flags and paths have been reported by now.
    from training import pretraining_steps as steps

    run = steps.prepare(settings, inputs)
    with run.setup.directory.held():
        report = Report(steps.start(run))
        if settings.do_train:
            report.step, report.final_model = steps.train(run, report.step)
        if settings.do_eval:
            report.evaluation = steps.evaluate(run, report.step)
        if settings.do_train:
            steps.draw_curve(run)
    return report

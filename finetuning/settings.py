"""Settings that all fine-tuning scripts share; those of their data are in `tasks.<family>.files`."""

import dataclasses

from foundation.settings import EVALUATION, HARDWARE, SAVING, TRAINING, Settings, nested, setting
from training.settings import PACK, HardwareSettings, InitialModelSettings, LoopSettings, OptimizationSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class FineTuningSettings(Settings):
    """One fine-tuning command, without its task. The number of updates follows from the data."""

    initial_model: InitialModelSettings = nested(InitialModelSettings)
    do_train: bool = setting(False, group=TRAINING, released=True, help="Train.")
    train_batch_size: int = setting(
        32, at_least=1, group=TRAINING, released=True,
        help="Examples of one update, over all devices; with --pack on average.")
    num_train_epochs: float = setting(
        3.0, at_least=0.0, group=TRAINING, released=True, help="Passes over the training set.")
    warmup_proportion: float = setting(
        0.1, at_least=0.0, at_most=1.0, group=TRAINING, released=True,
        help="Fraction of the updates over which the learning rate rises.")
    optimization: OptimizationSettings = nested(OptimizationSettings)
    early_stop: int = setting(
        0, at_least=0, group=TRAINING,
        help="Stop after N evaluations (--eval_every) without improvement; 0: never.")
    do_eval: bool = setting(
        False, group=EVALUATION, released=True, help="Evaluate on the dev set, after training where both are given.")
    eval_batch_size: int = setting(
        8, at_least=1, group=EVALUATION, released=True, help="Examples of one evaluation batch, over all devices.")
    do_predict: bool = setting(
        False, group=EVALUATION, released=True, help="Predict the test set with the trained model.")
    predict_batch_size: int = setting(
        8, at_least=1, group=EVALUATION, released=True, help="Examples of one prediction batch, over all devices.")
    ensemble: tuple[str, ...] = setting(
        (), group=EVALUATION,
        help="Folders of finished runs of one task, separated by commas: --do_eval and --do_predict average their "
             "scores.")
    static_shapes: str = setting(
        "auto", choices=("auto", "true", "false"), group=HARDWARE,
        help="Pad every batch to --max_seq_length. auto: on TPUs; elsewhere batches have sequences of similar length. "
             "With --pack all batches have one shape.")
    pack: str = setting(
        "auto", choices=PACK, group=HARDWARE,
        help="Put several examples into one row, so that hardly any padding is computed. auto: with XLA, unless "
             "--static_shapes=false.")
    hardware: HardwareSettings = nested(HardwareSettings)
    loop: LoopSettings = nested(LoopSettings)
    keep_checkpoints: bool = setting(
        False, group=SAVING,
        help="Keep the training checkpoints of a finished run, with optimizer state, to train it further; they take "
             "three times the space of the model each.")
    cache_dir: str | None = setting(
        None, group=SAVING, help="Folder for tokenised data. Default: --output_dir/features.")

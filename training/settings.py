"""What a training run is told, as plain dataclasses: scripts make them from flags, tests make them by hand."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class HardwareSettings:
    """Where a run computes and in which number format.

    `strategy`, `precision` and `xla` may be "auto": then they follow the devices found (`training.strategy`).
    """

    strategy: str = "auto"  # auto, one_device, mirrored, multi_worker, tpu
    precision: str = "auto"  # auto, float32, bfloat16
    xla: str = "auto"  # auto, true, false
    deterministic: bool = False
    use_tpu: bool = False
    tpu_name: str | None = None
    tpu_zone: str | None = None
    gcp_project: str | None = None
    master: str | None = None
    num_tpu_cores: int = 8


@dataclasses.dataclass(frozen=True)
class OptimizationSettings:
    """The update rule and its schedule (paper, appendix A.2; defaults as released)."""

    num_train_steps: int
    num_warmup_steps: int = 0
    learning_rate: float = 5e-5
    optimizer: str = "adamw"  # adamw, lamb
    weight_decay: float = 0.01
    adam_bias_correction: bool = False
    max_grad_norm: float = 1.0
    gradient_accumulation_steps: int = 1


@dataclasses.dataclass(frozen=True)
class LoopSettings:
    """How a run is cut into calls, saved and watched; none of it changes the weights a run ends with."""

    output_dir: str
    iterations_per_loop: int = 1000
    save_checkpoints_steps: int = 1000
    keep_checkpoint_max: int = 5
    eval_every_steps: int = 0  # 0: only at the end
    stop_at_step: int = 0  # 0: at num_train_steps
    seconds_per_report: float = 10.0


@dataclasses.dataclass(frozen=True)
class StartSettings:
    """The model a run starts from; what is None comes from the checkpoint's own folder (`training.initial_model`)."""

    bert_config_file: str | None = None
    init_checkpoint: str | None = None
    vocab_file: str | None = None
    do_lower_case: bool | None = None
    allow_missing_weights: bool = False
    extend_positions: str = "no"  # no, copy, initialize
    extend_vocabulary: bool = False


@dataclasses.dataclass(frozen=True)
class PretrainingSettings:
    """One `run_pretraining.py` command."""

    start: StartSettings
    input_file: str
    hardware: HardwareSettings
    optimization: OptimizationSettings
    loop: LoopSettings
    eval_input_file: str | None = None
    keep_optimizer: bool = False
    do_train: bool = False
    do_eval: bool = False
    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    train_batch_size: int = 32
    eval_batch_size: int = 8
    max_eval_steps: int = 100
    next_sentence: bool = True
    causal: bool = False
    shuffle_buffer: int = 1000
    random_seed: int = 12345


@dataclasses.dataclass(frozen=True)
class FineTuningSettings:
    """What the commands of all fine-tuning families are told alike; the number of updates follows from the data."""

    start: StartSettings
    hardware: HardwareSettings
    optimization: OptimizationSettings
    loop: LoopSettings
    do_train: bool = False
    do_eval: bool = False
    do_predict: bool = False
    train_batch_size: int = 32
    eval_batch_size: int = 8
    predict_batch_size: int = 8
    num_train_epochs: float = 3.0
    warmup_proportion: float = 0.1
    static_shapes: str = "auto"  # auto, true, false
    early_stop: int = 0  # evaluations without a better one; 0: never
    cache_dir: str | None = None
    ensemble: tuple[str, ...] | list[str] = ()  # finished runs whose scores are averaged
    random_seed: int = 12345

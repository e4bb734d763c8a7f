"""Settings of training runs: scripts make them from flags, Python code and tests directly."""

import dataclasses

from foundation.settings import DATA, EVALUATION, HARDWARE, MODEL, SAVING, TRAINING, Settings, nested, setting

STRATEGIES = ("auto", "one_device", "mirrored", "multi_worker", "tpu")
PRECISIONS = ("auto", "float32", "bfloat16")
EXTEND_POSITIONS = ("no", "copy", "initialize")
# Name to module with a function `make(OptimizationSettings)`. A new optimizer is one module and one line here.
OPTIMIZERS = {
    "adamw": "training.optimizers.adamw",
    "lamb": "training.optimizers.lamb",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class InitialModelSettings(Settings):
    """The model a run starts from (`training.initial_model`)."""

    bert_config_file: str | None = setting(
        None, group=MODEL, released=True,
        help="JSON file with the model's sizes. Default: the one in the folder of --init_checkpoint.")
    init_checkpoint: str | None = setting(
        None, group=MODEL, released=True,
        help="Weights to start from: a released bert_model.ckpt, a Hugging Face folder or .safetensors file, or a "
             "folder of this project.")
    vocab_file: str | None = setting(
        None, group=MODEL, released=True,
        help="The vocabulary. Default: the one in the folder of --init_checkpoint.")
    do_lower_case: bool | None = setting(
        None, group=MODEL, released=True,
        help="Whether the vocabulary is lower-cased. Default: that of --init_checkpoint, else true.")
    allow_missing_weights: bool = setting(
        False, group=MODEL, help="Leave parts of the encoder that --init_checkpoint lacks at their initial values.")
    extend_positions: str = setting(
        "no", choices=EXTEND_POSITIONS, group=MODEL,
        help="Positions beyond those of --init_checkpoint: repeat its own from the first on (copy), or initialize.")
    extend_vocabulary: bool = setting(
        False, group=MODEL, help="Leave words beyond the vocabulary of --init_checkpoint at their initial values.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class HardwareSettings(Settings):
    """Devices and number formats (`training.devices`)."""

    use_tpu: bool = setting(False, group=HARDWARE, released=True, help="Run on a TPU.")
    tpu_name: str | None = setting(
        None, group=HARDWARE, released=True,
        help="Name of the Cloud TPU, or its grpc:// address; 'local' on a TPU VM.")
    tpu_zone: str | None = setting(
        None, group=HARDWARE, released=True, help="Zone of the Cloud TPU, where it is not this machine's.")
    gcp_project: str | None = setting(
        None, group=HARDWARE, released=True, help="Project of the Cloud TPU, where it is not this machine's.")
    master: str | None = setting(
        None, group=HARDWARE, released=True, help="Address of the TPU's master, where --tpu_name is not given.")
    num_tpu_cores: int = setting(
        8, group=HARDWARE, released=True,
        help="Accepted for the release's commands, without effect: the TPU reports its cores.")
    strategy: str = setting(
        "auto", choices=STRATEGIES, group=HARDWARE,
        help="Devices: one, all of this machine (mirrored), several machines listed in TF_CONFIG (multi_worker), or a "
             "TPU. auto: chosen from the hardware.")
    precision: str = setting(
        "auto", choices=PRECISIONS, group=HARDWARE,
        help="bfloat16 computes in bfloat16 over float32 weights. auto: bfloat16 where the hardware supports it.")
    xla: str = setting(
        "auto", choices=("auto", "true", "false"), group=HARDWARE,
        help="Compile the forward and backward passes with XLA. auto: on GPUs and TPUs, not on CPUs.")
    deterministic: bool = setting(
        False, group=HARDWARE, help="Bitwise identical results on the same machine; slower.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizationSettings(Settings):
    """The update rule (paper, appendix A.2; defaults as released), and the seed of whatever is random in a run."""

    learning_rate: float = setting(
        5e-5, group=TRAINING, released=True, help="Learning rate at the end of warm-up.")
    optimizer: str = setting(
        "adamw", choices=tuple(OPTIMIZERS), group=TRAINING, help="adamw as released; lamb for very large batches.")
    weight_decay: float = setting(
        0.01, group=TRAINING, help="Decoupled weight decay; biases and LayerNorm are exempt.")
    adam_bias_correction: bool = setting(
        False, group=TRAINING, help="Correct Adam's bias towards zero in the first steps; the release does not.")
    max_grad_norm: float = setting(
        1.0, at_least=0.0, group=TRAINING, help="Clip the summed gradient to this global norm.")
    gradient_accumulation_steps: int = setting(
        1, at_least=1, group=TRAINING,
        help="Split each batch into this many parts to fit it into memory; the result is the same.")
    random_seed: int = setting(
        12345, at_least=0, at_most=2**31 - 1, group=TRAINING,
        help="Seed of initial weights, dropout and the order of the data.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoopSettings(Settings):
    """How a run is saved and reported; none of it changes the final weights."""

    output_dir: str = setting(
        group=SAVING, released=True, help="Folder for checkpoints, logs and results.")
    save_checkpoints_steps: int = setting(
        1000, at_least=1, group=SAVING, released=True, help="Steps between checkpoints.")
    iterations_per_loop: int = setting(
        1000, at_least=1, group=SAVING, released=True,
        help="Maximum steps per graph call. Off TPUs a call also ends after about ten seconds, to report.")
    keep_checkpoint_max: int = setting(
        5, at_least=1, group=SAVING, help="Checkpoints to keep; older ones are removed.")
    eval_every_steps: int = setting(
        0, at_least=0, alias="eval_every", group=EVALUATION,
        help="Evaluate every N steps during training; 0: only at the end.")
    stop_at_step: int = setting(
        0, at_least=0, group=TRAINING, help="Stop at this step of the schedule; 0: at its last step.")
    seconds_per_report: float = 10.0


# Of --pack, in both drivers.
PACK = ("auto", "true", "false")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingSettings(Settings):
    """One `run_pretraining.py` command."""

    input_file: str = setting(
        group=DATA, released=True, help="TFRecords to train on: files or globs, separated by commas.")
    eval_input_file: str | None = setting(
        None, group=DATA, help="Held-out TFRecords for --do_eval. Default: --input_file.")
    max_seq_length: int = setting(
        128, at_least=1, group=DATA, released=True, help="Positions of a record, as built.")
    max_predictions_per_seq: int = setting(
        20, at_least=1, group=DATA, released=True, help="Masked positions of a record, as built.")
    shuffle_buffer: int = setting(
        1000, at_least=1, group=DATA, help="Records shuffled at a time while reading.")
    initial_model: InitialModelSettings = nested(InitialModelSettings)
    next_sentence: bool = setting(
        True, group=MODEL, help="Also train next-sentence prediction (paper, table 5).")
    causal: bool = setting(False, group=MODEL, help="Left-to-right attention (paper, table 5).")
    keep_optimizer: bool = setting(
        False, group=MODEL,
        help="Also take optimizer state and step from --init_checkpoint: the next phase of one schedule.")
    do_train: bool = setting(False, group=TRAINING, released=True, help="Train.")
    train_batch_size: int = setting(
        32, at_least=1, group=TRAINING, released=True,
        help="Records of one update, over all devices; with --pack on average.")
    num_train_steps: int = setting(
        100000, at_least=1, group=TRAINING, released=True,
        help="Updates in all; the learning rate falls to zero at the last.")
    num_warmup_steps: int = setting(
        10000, at_least=0, group=TRAINING, released=True, help="Updates over which the learning rate rises.")
    optimization: OptimizationSettings = nested(OptimizationSettings)
    do_eval: bool = setting(
        False, group=EVALUATION, released=True, help="Evaluate, after training where both are given.")
    eval_batch_size: int = setting(
        8, at_least=1, group=EVALUATION, released=True, help="Records of one evaluation batch, over all devices.")
    max_eval_steps: int = setting(
        100, at_least=1, group=EVALUATION, released=True, help="Maximum batches of an evaluation.")
    hardware: HardwareSettings = nested(HardwareSettings)
    pack: str = setting(
        "auto", choices=PACK, group=HARDWARE,
        help="Put several records into one row, so that hardly any padding is computed. auto: with XLA, which needs "
             "rows of one length; without it padding is left out anyway.")
    loop: LoopSettings = nested(LoopSettings)

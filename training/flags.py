"""The flags that training scripts share, each defined once, and their way into settings.

A script calls the `define_*` functions it needs and hands its parsed flag values to the functions without that prefix.
Names, kinds and defaults are the release's; what is new here only adds.
"""

from absl import flags

from training import settings, strategy


def define_model():
    """Flags of every script that builds a model."""
    flags.DEFINE_string("bert_config_file", None, "JSON file of the model's sizes, as released.")
    flags.DEFINE_string("init_checkpoint", None, "Weights to start from: a checkpoint prefix, or a run's folder.")
    flags.mark_flag_as_required("bert_config_file")


def define_hardware():
    """Flags for devices and number formats."""
    flags.DEFINE_enum("strategy", "auto", strategy.STRATEGIES,
                      "Devices: one, all of this machine (mirrored), several machines by TF_CONFIG (multi_worker), "
                      "or a TPU. auto takes what is there.")
    flags.DEFINE_enum("precision", "auto", strategy.PRECISIONS,
                      "bfloat16 computes in bfloat16 over float32 weights. auto: bfloat16 where the chip has it.")
    flags.DEFINE_enum("xla", "auto", ("auto", "true", "false"),
                      "Compile forward and backward pass by XLA. auto: on GPUs and TPUs, not on CPUs.")
    flags.DEFINE_bool("deterministic", False, "Bitwise the same result each time on the same machine; slower.")
    flags.DEFINE_bool("use_tpu", False, "Run on a TPU.")
    flags.DEFINE_string("tpu_name", None, "The Cloud TPU's name, or its grpc:// address; 'local' on a TPU VM.")
    flags.DEFINE_string("tpu_zone", None, "The Cloud TPU's zone, where it is not this machine's.")
    flags.DEFINE_string("gcp_project", None, "The Cloud TPU's project, where it is not this machine's.")
    flags.DEFINE_string("master", None, "Address of the TPU's master, where --tpu_name is not given.")
    flags.DEFINE_integer("num_tpu_cores", 8, "Kept for the release's commands: the number is asked of the TPU.")


def define_optimization(learning_rate=5e-5):
    """Flags of the update rule."""
    flags.DEFINE_float("learning_rate", learning_rate, "Learning rate at the end of warm-up.")
    flags.DEFINE_enum("optimizer", "adamw", ("adamw", "lamb"), "adamw as released; lamb for very large batches.")
    flags.DEFINE_float("weight_decay", 0.01, "Decoupled decay; biases and LayerNorm are exempt.")
    flags.DEFINE_bool("adam_bias_correction", False, "Correct Adam's bias; the release does not.")
    flags.DEFINE_float("max_grad_norm", 1.0, "Clip the summed gradient to this global norm.", lower_bound=0.0)
    flags.DEFINE_integer("gradient_accumulation_steps", 1,
                         "Cut each batch into this many parts to fit it into memory; the result is the same.",
                         lower_bound=1)


def define_loop():
    """Flags of saving and watching."""
    flags.DEFINE_string("output_dir", None, "Folder for checkpoints, logs and results.")
    flags.mark_flag_as_required("output_dir")
    flags.DEFINE_integer("save_checkpoints_steps", 1000, "Steps from one checkpoint to the next.", lower_bound=1)
    flags.DEFINE_integer("keep_checkpoint_max", 5, "Older checkpoints are removed.", lower_bound=1)
    flags.DEFINE_integer("iterations_per_loop", 1000, "Most steps in one graph call; off TPUs a call also ends "
                         "after about ten seconds, to report.", lower_bound=1)
    flags.DEFINE_integer("eval_every_steps", 0, "Evaluate during training each so many steps; 0: at the end.",
                         lower_bound=0)
    flags.DEFINE_integer("stop_at_step", 0, "Stop here although the schedule goes on to the last step; 0: do not.",
                         lower_bound=0)
    flags.DEFINE_integer("random_seed", 12345, "Seed of initial weights, dropout and record order.")


def hardware(values):
    """HardwareSettings from parsed flag values."""
    return _pick(settings.HardwareSettings, values)


def optimization(values, num_train_steps, num_warmup_steps):
    """OptimizationSettings from parsed flag values; scripts count steps their own way."""
    return _pick(settings.OptimizationSettings, values,
                 num_train_steps=num_train_steps, num_warmup_steps=num_warmup_steps)


def loop(values):
    """LoopSettings from parsed flag values."""
    return _pick(settings.LoopSettings, values)


def pretraining(values):
    """PretrainingSettings from parsed flag values."""
    return _pick(
        settings.PretrainingSettings, values, hardware=hardware(values), loop=loop(values),
        optimization=optimization(values, values.num_train_steps, values.num_warmup_steps))


def _pick(kind, values, **given):
    """Fills a dataclass from the flags of its fields' names; fields without a flag keep their defaults."""
    names = [name for name in kind.__dataclass_fields__ if name not in given and name in values]
    return kind(**given, **{name: values[name].value for name in names})

"""The flags that training scripts share, each defined once, and their way into settings.

A script calls the `define_*` functions it needs and hands its parsed flag values to the functions without that prefix.
Names, kinds and defaults are the release's; what is new here only adds.
"""

from absl import flags

from modeling.checkpoints import load
from training import settings, strategy


def define_model():
    """Flags of every script that builds a model."""
    flags.DEFINE_string("bert_config_file", None,
                        "JSON file of the model's sizes; the one beside --init_checkpoint where not given.")
    flags.DEFINE_string("init_checkpoint", None,
                        "Weights to start from: a released bert_model.ckpt, a Hugging Face folder or .safetensors "
                        "file, or a folder of this project.")
    flags.DEFINE_string("vocab_file", None, "The vocabulary; the one beside --init_checkpoint where not given.")
    flags.DEFINE_bool("allow_missing_weights", False,
                      "Leave parts of the encoder that --init_checkpoint lacks at their initial values.")
    flags.DEFINE_enum("extend_positions", "no", load.EXTEND_POSITIONS,
                      "Positions beyond --init_checkpoint's: repeat its own from the first on (copy), or initialize.")
    flags.DEFINE_bool("extend_vocabulary", False,
                      "Leave words beyond --init_checkpoint's vocabulary at their initial values.")


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


def define_finetuning(max_seq_length=128):
    """Flags of every fine-tuning script, those of model, hardware, update rule and loop included."""
    define_model()
    define_hardware()
    define_optimization()
    define_loop()
    flags.DEFINE_bool("do_lower_case", None, "Whether the vocabulary is of lower-cased text; as --init_checkpoint "
                      "says, or true, where not given.")
    flags.DEFINE_bool("do_train", False, "Train.")
    flags.DEFINE_bool("do_eval", False, "Evaluate on the dev set, after training if both are given.")
    flags.DEFINE_bool("do_predict", False, "Predict the test set with the trained model.")
    flags.DEFINE_integer("max_seq_length", max_seq_length, "Most word pieces of a sequence, [CLS] and [SEP] counted.",
                         lower_bound=4)
    flags.DEFINE_integer("train_batch_size", 32, "Examples of one update, over all devices.", lower_bound=1)
    flags.DEFINE_integer("eval_batch_size", 8, "Examples of one evaluation batch, over all devices.", lower_bound=1)
    flags.DEFINE_integer("predict_batch_size", 8, "Examples of one prediction batch, over all devices.", lower_bound=1)
    flags.DEFINE_float("num_train_epochs", 3.0, "Times that training sees each example.", lower_bound=0.0)
    flags.DEFINE_float("warmup_proportion", 0.1, "Share of the updates over which the learning rate rises.",
                       lower_bound=0.0, upper_bound=1.0)
    flags.DEFINE_alias("eval_every", "eval_every_steps")
    flags.DEFINE_integer("early_stop", 0, "Stop after so many evaluations (--eval_every) without a better one; 0: "
                         "never.", lower_bound=0)
    flags.DEFINE_enum("static_shapes", "auto", ("auto", "true", "false"),
                      "Pad every batch to --max_seq_length. auto: on TPUs; elsewhere batches are of like lengths.")
    flags.DEFINE_list("ensemble", [], "Folders of finished runs of one task, separated by commas: --do_eval and "
                      "--do_predict average their scores.")
    flags.DEFINE_string("cache_dir", None, "Folder where features are kept; --output_dir/features where not given.")


def hardware(values):
    """HardwareSettings from parsed flag values."""
    return pick(settings.HardwareSettings, values)


def optimization(values, num_train_steps, num_warmup_steps):
    """OptimizationSettings from parsed flag values; scripts count steps their own way."""
    return pick(settings.OptimizationSettings, values,
                 num_train_steps=num_train_steps, num_warmup_steps=num_warmup_steps)


def loop(values):
    """LoopSettings from parsed flag values."""
    return pick(settings.LoopSettings, values)


def start(values):
    """StartSettings from parsed flag values."""
    return pick(settings.StartSettings, values)


def finetuning(values):
    """FineTuningSettings from parsed flag values; the driver fills in the number of steps."""
    return pick(
        settings.FineTuningSettings, values, start=start(values), hardware=hardware(values), loop=loop(values),
        optimization=optimization(values, 0, 0))


def recall(values, description):
    """Gives flags that the command line leaves out the values that a finished run was made with.

    Args:
        values: parsed flag values.
        description: dict that `tasks.finetuning.description` read; names that are no flags are passed over.
    """
    for name, value in description.items():
        if name in values and not values[name].present:
            values[name].value = value


def pretraining(values):
    """PretrainingSettings from parsed flag values."""
    return pick(
        settings.PretrainingSettings, values, start=start(values), hardware=hardware(values), loop=loop(values),
        optimization=optimization(values, values.num_train_steps, values.num_warmup_steps))


def pick(kind, values, **given):
    """Fills a dataclass from the flags of its fields' names; fields without a flag keep their defaults."""
    names = [name for name in kind.__dataclass_fields__ if name not in given and name in values]
    return kind(**given, **{name: values[name].value for name in names})

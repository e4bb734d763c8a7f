"""Where a run computes: one device, several devices, several machines or a TPU, and the defaults that follow."""

import dataclasses
import os
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from foundation import files
from foundation.errors import BertError
from training.settings import HardwareSettings

# Present where the driver of an NVIDIA GPU is loaded.
_NVIDIA_DRIVER = "/dev/nvidiactl"


@dataclasses.dataclass(frozen=True)
class Placement:
    """A `tf.distribute` strategy with what follows from its devices.

    Attributes:
        strategy: the tf.distribute.Strategy; model and optimizer are made in its scope.
        platform: "cpu", "gpu" or "tpu".
        dtype: Keras dtype policy: "float32", or "mixed_bfloat16" (bfloat16 compute, float32 master weights).
        xla: whether forward and backward pass are compiled by XLA.
    """

    strategy: tf.distribute.Strategy
    platform: str
    dtype: str
    xla: bool

    @property
    def num_replicas(self) -> int:
        """Devices that compute a part of each batch."""
        return self.strategy.num_replicas_in_sync

    @property
    def num_workers(self) -> int:
        """Machines."""
        resolver = self.strategy.cluster_resolver
        if self.platform == "tpu" or resolver is None:
            return 1
        return max(1, len(resolver.cluster_spec().as_dict().get("worker", ())) + self._has_chief_job())

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints and logs: the only one, or the first of several machines."""
        resolver = self.strategy.cluster_resolver
        if self.num_workers == 1:
            return True
        return resolver.task_type == "chief" or (not self._has_chief_job() and resolver.task_id == 0)

    @property
    def unpads(self) -> bool:
        """Whether models leave padding out of their dense layers: it saves most where shapes may depend on data."""
        return self.platform == "cpu" and not self.xla

    def distribute(self, make_batches: Callable[[tf.distribute.InputContext], tf.data.Dataset]) -> Any:
        """The distributed dataset of a function that makes each machine's."""
        # Without AutoGraph, which would write a temporary file for each function of a dataset: nothing here needs it,
        # and a process that is killed leaves the files behind.
        return self.strategy.distribute_datasets_from_function(
            tf.autograph.experimental.do_not_convert(make_batches))

    def check_batch(self, size: int, flag: str, parts: int = 1) -> None:
        """Raises BertError where a batch does not divide into every replica's micro-batches.

        Args:
            size: rows of a batch, over all devices.
            flag: the flag that sets the size.
            parts: micro-batches of a replica.
        """
        if size % (self.num_replicas * parts):
            raise BertError(f"--{flag}={size} does not divide into {self.num_replicas} replica"
                            f"{'s' if self.num_replicas > 1 else ''} of {parts} micro-batch{'es' if parts > 1 else ''} "
                            f"each{' (--gradient_accumulation_steps)' if parts > 1 else ''}.")

    def mean_over_machines(self, number: float) -> float:
        """The mean of a number of each machine, the same on all of them."""
        if self.num_workers == 1:
            return float(number)
        return float(_mean_over_replicas(self.strategy, tf.constant(float(number))))

    def gather_from_machines(self, number: int) -> list[int]:
        """A whole number of each machine, the same list on all of them."""
        if self.num_workers == 1:
            return [number]
        return _gather_from_replicas(self.strategy, tf.constant([number], tf.int64)).numpy().tolist()

    def _has_chief_job(self) -> bool:
        return "chief" in self.strategy.cluster_resolver.cluster_spec().as_dict()

    def describe(self) -> str:
        """One line for the console."""
        replicas = f"{self.num_replicas} {self.platform.upper()} replica{'s' if self.num_replicas > 1 else ''}"
        machines = f" on {self.num_workers} machines" if self.num_workers > 1 else ""
        precision = "bfloat16 compute, float32 weights" if self.dtype == "mixed_bfloat16" else "float32"
        return f"{replicas}{machines}, {precision}, XLA {'on' if self.xla else 'off'}"


@tf.function(autograph=False)
def _mean_over_replicas(strategy: tf.distribute.Strategy, number: tf.Tensor) -> tf.Tensor:
    def one(value):
        # A value made on the replica's device: an all-reduce asks its arguments where they are.
        return tf.distribute.get_replica_context().all_reduce("MEAN", tf.identity(value))

    return strategy.experimental_local_results(strategy.run(one, args=(number,)))[0]


@tf.function(autograph=False)
def _gather_from_replicas(strategy: tf.distribute.Strategy, values: tf.Tensor) -> tf.Tensor:
    def one(value):
        return tf.distribute.get_replica_context().all_gather(tf.identity(value), axis=0)

    return strategy.experimental_local_results(strategy.run(one, args=(values,)))[0]


def create(hardware: HardwareSettings) -> Placement:
    """Makes the strategy and settles precision and XLA.

    Several machines: nothing may run on TensorFlow before this, not even a tokenizer.

    Args:
        hardware: HardwareSettings.

    Returns:
        Placement.

    Raises:
        BertError: a TPU or cluster that cannot be reached.
    """
    if hardware.deterministic:
        tf.config.experimental.enable_op_determinism()
    name = _strategy_name(hardware)
    strategy = _tpu_strategy(hardware) if name == "tpu" else _local_strategy(name)
    platform = "tpu" if name == "tpu" else "gpu" if tf.config.list_logical_devices("GPU") else "cpu"
    if platform == "cpu":
        _report_unused_gpu()
    dtype = {"float32": "float32", "bfloat16": "mixed_bfloat16"}.get(hardware.precision) or _default_dtype(platform)
    # On a CPU, XLA halves the speed of bfloat16 and costs a tenth in float32; elsewhere it pays.
    xla = platform != "cpu" if hardware.xla == "auto" else hardware.xla == "true"
    return Placement(strategy, platform, dtype, xla)


def _strategy_name(hardware: HardwareSettings) -> str:
    if hardware.use_tpu or hardware.strategy == "tpu":
        return "tpu"
    if hardware.strategy != "auto":
        return hardware.strategy
    if sum(len(addresses) for job, addresses in _cluster().items() if job in ("chief", "worker")) > 1:
        return "multi_worker"
    return "mirrored" if len(tf.config.list_logical_devices("GPU")) > 1 else "one_device"


def _cluster() -> dict[str, list[str]]:
    """The machines of TF_CONFIG by job; {} without it. Raises BertError where it is not what TensorFlow expects."""
    text = os.environ.get("TF_CONFIG", "").strip()
    if not text:
        return {}
    config = files.parse_json(text, "TF_CONFIG")
    example = '{"cluster": {"worker": ["host1:12345", "host2:12345"]}, "task": {"type": "worker", "index": 0}}'
    cluster = config.get("cluster") if isinstance(config, dict) else None
    task = config.get("task") if isinstance(config, dict) else None
    if not isinstance(cluster, dict) or not isinstance(task, dict) or not all(
            isinstance(addresses, list) and all(isinstance(each, str) and each.isascii() for each in (job, *addresses))
            for job, addresses in cluster.items()):
        raise BertError(f"TF_CONFIG: does not describe a cluster. It has the form {example}.")
    kind, index = task.get("type"), task.get("index")
    machines = cluster.get(kind, ()) if isinstance(kind, str) else ()
    if type(index) is not int or not 0 <= index < len(machines):
        raise BertError(f"TF_CONFIG: its task, {kind!r} number {index!r}, is not in its cluster. It has the form "
                        f"{example}.")
    return cluster


def _local_strategy(name: str) -> tf.distribute.Strategy:
    if name == "multi_worker":
        if not _cluster():
            raise BertError("--strategy=multi_worker needs TF_CONFIG in the environment, listing every machine.")
        return tf.distribute.MultiWorkerMirroredStrategy()
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    if name == "mirrored":
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    return tf.distribute.OneDeviceStrategy(devices[0].name)


def _tpu_strategy(hardware: HardwareSettings) -> tf.distribute.Strategy:
    address = hardware.tpu_name or hardware.master or "local"
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=address, zone=hardware.tpu_zone, project=hardware.gcp_project
        )
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except Exception as error:  # the resolver raises whatever its HTTP client or the runtime raises
        # The first lines of a runtime error are about the graph; its last line is the reason.
        reason = next(filter(None, map(str.strip, reversed(str(error).splitlines()))), type(error).__name__)
        raise BertError(
            f"TPU {address!r} cannot be reached: {reason}. Check --tpu_name, --tpu_zone, --gcp_project."
        ) from None


def _report_unused_gpu() -> None:
    """Warns where the machine has an NVIDIA GPU that TensorFlow cannot use: training on its CPU would be a surprise."""
    if os.path.exists(_NVIDIA_DRIVER) and os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1"):
        print("warning: this machine has an NVIDIA GPU that TensorFlow cannot use; computing on the CPU. "
              "`pip install -r requirements-gpu.txt` installs the CUDA libraries (docs/cloud.md).",
              file=sys.stderr, flush=True)


def _default_dtype(platform: str) -> str:
    """bfloat16 where the chip multiplies it in hardware; float32 elsewhere."""
    if platform == "tpu":
        return "mixed_bfloat16"
    if platform == "gpu":
        details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
        return "mixed_bfloat16" if details.get("compute_capability", (0, 0)) >= (8, 0) else "float32"
    return "mixed_bfloat16" if cpu_multiplies_bfloat16() else "float32"


def cpu_multiplies_bfloat16() -> bool:
    """Whether this CPU has bfloat16 matrix instructions (AVX512_BF16 or AMX), according to Linux."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            features = next((line.split() for line in file if line.startswith("flags")), ())
    except OSError:
        return False
    return "avx512_bf16" in features or "amx_bf16" in features


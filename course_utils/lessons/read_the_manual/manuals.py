"""The pages of five frameworks' manuals that the dictionary, the lesson and the exercise cite."""

from dataclasses import dataclass

TORCH, HOROVOD, DEEPSPEED, TENSORFLOW, JAX = "torch.distributed", "Horovod", "DeepSpeed", "tf.distribute", "JAX"
FRAMEWORKS = (TORCH, HOROVOD, DEEPSPEED, TENSORFLOW, JAX)


@dataclass(frozen=True, slots=True)
class ManualPage:
    """Where something stands: a page's title, with the section where it is long, and its address."""

    title: str
    address: str


_TORCH = "https://docs.pytorch.org/docs/stable/"
_HOROVOD = "https://horovod.readthedocs.io/en/stable/"
_DEEPSPEED = "https://www.deepspeed.ai/"
_DEEPSPEED_API = "https://deepspeed.readthedocs.io/en/latest/"
_DEEPSPEED_CODE = "https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/"
_TENSORFLOW = "https://www.tensorflow.org/"
_TENSORFLOW_API = "https://www.tensorflow.org/api_docs/python/tf/"
_JAX = "https://docs.jax.dev/en/latest/"
_JAX_API = "https://docs.jax.dev/en/latest/_autosummary/jax."

PAGES = {
    "torch": ManualPage("torch.distributed", f"{_TORCH}distributed.html"),
    "torch DDP": ManualPage(
        "DistributedDataParallel", f"{_TORCH}generated/torch.nn.parallel.DistributedDataParallel.html"
    ),
    "torch DDP, inside": ManualPage("Distributed Data Parallel: Internal Design", f"{_TORCH}notes/ddp.html"),
    "torch data": ManualPage("torch.utils.data: DistributedSampler, DataLoader", f"{_TORCH}data.html"),
    "torch SyncBatchNorm": ManualPage("SyncBatchNorm", f"{_TORCH}generated/torch.nn.SyncBatchNorm.html"),
    "torch hooks": ManualPage("DDP Communication Hooks", f"{_TORCH}ddp_comm_hooks.html"),
    "torch rpc": ManualPage("Distributed RPC Framework", f"{_TORCH}rpc.html"),
    "torch optim": ManualPage("Distributed Optimizers", f"{_TORCH}distributed.optim.html"),
    "torch TP": ManualPage("Tensor Parallelism", f"{_TORCH}distributed.tensor.parallel.html"),
    "torch checkpoint": ManualPage("torch.utils.checkpoint", f"{_TORCH}checkpoint.html"),
    "torch PP": ManualPage("Pipeline Parallelism", f"{_TORCH}distributed.pipelining.html"),
    "torch FSDP": ManualPage("fully_shard", f"{_TORCH}distributed.fsdp.fully_shard.html"),
    "torchrun": ManualPage("torchrun (Elastic Launch)", f"{_TORCH}elastic/run.html"),
    "torch profiler": ManualPage("torch.profiler", f"{_TORCH}profiler.html"),
    "hvd concepts": ManualPage("Concepts", f"{_HOROVOD}concepts_include.html"),
    "hvd api": ManualPage("API: horovod.torch", f"{_HOROVOD}api.html"),
    "hvd torch": ManualPage("Horovod with PyTorch", f"{_HOROVOD}pytorch.html"),
    "hvd run": ManualPage("Run Horovod", f"{_HOROVOD}running_include.html"),
    "hvd fusion": ManualPage("Tensor Fusion", f"{_HOROVOD}tensor-fusion_include.html"),
    "hvd sets": ManualPage("Process Sets", f"{_HOROVOD}process_set_include.html"),
    "hvd elastic": ManualPage("Elastic Horovod", f"{_HOROVOD}elastic_include.html"),
    "hvd timeline": ManualPage("Analyze Performance: the timeline", f"{_HOROVOD}timeline_include.html"),
    "ds config": ManualPage("DeepSpeed Configuration JSON", f"{_DEEPSPEED}docs/config-json/"),
    "ds start": ManualPage("Getting Started", f"{_DEEPSPEED}getting-started/"),
    "ds training": ManualPage("Training Overview and Features", f"{_DEEPSPEED}training/"),
    "ds pipeline": ManualPage("Pipeline Parallelism", f"{_DEEPSPEED}tutorials/pipeline/"),
    "ds TP": ManualPage("Automatic Tensor Parallelism (Training)", f"{_DEEPSPEED}tutorials/autotp-training/"),
    "ds initialize": ManualPage("Training Setup: deepspeed.initialize", f"{_DEEPSPEED_API}initialize.html"),
    "ds activations": ManualPage("Activation Checkpointing", f"{_DEEPSPEED_API}activation-checkpointing.html"),
    "ds saving": ManualPage("Model Checkpointing", f"{_DEEPSPEED_API}model-checkpointing.html"),
    "ds comm": ManualPage("deepspeed/comm/comm.py", f"{_DEEPSPEED_CODE}comm/comm.py"),
    "ds engine": ManualPage("deepspeed/runtime/engine.py", f"{_DEEPSPEED_CODE}runtime/engine.py"),
    "ds topology": ManualPage("deepspeed/runtime/pipe/topology.py", f"{_DEEPSPEED_CODE}runtime/pipe/topology.py"),
    "tf guide": ManualPage("Distributed training with TensorFlow", f"{_TENSORFLOW}guide/distributed_training"),
    "tf loop": ManualPage(
        "Custom training with tf.distribute.Strategy", f"{_TENSORFLOW}tutorials/distribute/custom_training"
    ),
    "tf input": ManualPage("Distributed Input", f"{_TENSORFLOW}tutorials/distribute/input"),
    "tf server": ManualPage(
        "Parameter server training", f"{_TENSORFLOW}tutorials/distribute/parameter_server_training"
    ),
    "tf workers": ManualPage(
        "Multi-worker training with Keras", f"{_TENSORFLOW}tutorials/distribute/multi_worker_with_keras"
    ),
    "tf dtensor": ManualPage("DTensor concepts", f"{_TENSORFLOW}guide/dtensor_overview"),
    "tf replica": ManualPage("tf.distribute.ReplicaContext", f"{_TENSORFLOW_API}distribute/ReplicaContext"),
    "tf strategy": ManualPage("tf.distribute.Strategy", f"{_TENSORFLOW_API}distribute/Strategy"),
    "tf options": ManualPage(
        "tf.distribute.experimental.CommunicationOptions",
        f"{_TENSORFLOW_API}distribute/experimental/CommunicationOptions",
    ),
    "tf batch norm": ManualPage(
        "tf.keras.layers.BatchNormalization", f"{_TENSORFLOW_API}keras/layers/BatchNormalization"
    ),
    "tf recompute": ManualPage("tf.recompute_grad", f"{_TENSORFLOW_API}recompute_grad"),
    "tf profiler": ManualPage("tf.profiler.experimental.Profile", f"{_TENSORFLOW_API}profiler/experimental/Profile"),
    "keras optimizers": ManualPage("Keras 3: Optimizers", "https://keras.io/api/optimizers/"),
    "jax index": ManualPage("jax.process_index", f"{_JAX_API}process_index.html"),
    "jax count": ManualPage("jax.device_count", f"{_JAX_API}device_count.html"),
    "jax local": ManualPage("jax.local_devices", f"{_JAX_API}local_devices.html"),
    "jax initialize": ManualPage("jax.distributed.initialize", f"{_JAX_API}distributed.initialize.html"),
    "jax psum": ManualPage("jax.lax.psum", f"{_JAX_API}lax.psum.html"),
    "jax multihost": ManualPage("jax.experimental.multihost_utils", f"{_JAX}jax.experimental.multihost_utils.html"),
    "jax array": ManualPage(
        "jax.make_array_from_process_local_data", f"{_JAX_API}make_array_from_process_local_data.html"
    ),
    "jax lax": ManualPage("jax.lax: parallel operators", f"{_JAX}jax.lax.html"),
    "jax sharding": ManualPage("jax.sharding", f"{_JAX}jax.sharding.html"),
    "jax shard_map": ManualPage("Manual parallelism with shard_map", f"{_JAX}notebooks/shard_map.html"),
    "jax mesh": ManualPage("jax.make_mesh", f"{_JAX_API}make_mesh.html"),
    "jax checkpoint": ManualPage("jax.checkpoint", f"{_JAX_API}checkpoint.html"),
    "jax gpu": ManualPage("GPU performance tips", f"{_JAX}gpu_performance_tips.html"),
    "jax trace": ManualPage("jax.profiler.trace", f"{_JAX_API}profiler.trace.html"),
    "optax": ManualPage(
        "Optax: Gradient Accumulation",
        "https://optax.readthedocs.io/en/latest/_collections/examples/gradient_accumulation.html",
    ),
    "flax": ManualPage(
        "Flax: Normalization", "https://flax.readthedocs.io/en/latest/api_reference/flax.nnx/nn/normalization.html"
    ),
    "orbax": ManualPage("Orbax: Checkpointing", "https://orbax.readthedocs.io/en/latest/"),
}
"""By a short name: the framework, and what of it."""

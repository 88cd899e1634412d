"""The words of this course in five frameworks, each with the page where it stands.

Looked up in November 2026. torch's are those of torch 2.13, which the course uses, and a test finds them in it. The
others stand in the manuals or sources of Horovod 0.28 (its last release), of TensorFlow 2.21, and of DeepSpeed and JAX
as they were then; Optax, Flax, Orbax and Keras 3 are what JAX and TensorFlow leave such things to. None of these is
installed here: nothing of them was run, and addresses were not opened one by one: pages move. Where a framework has
none, the page is one that lists what there is.
"""

from dataclasses import dataclass

from course_utils.lessons.read_the_manual.manuals import DEEPSPEED, HOROVOD, JAX, PAGES, TENSORFLOW, TORCH


@dataclass(frozen=True, slots=True)
class Cell:
    """What a framework calls something, or what one types for it, and where that stands.

    Attributes:
        says: in Markdown; it begins with "none" where there is no such thing.
        source: the title of the page.
        address: of the page.
    """

    says: str
    source: str
    address: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A term of the course.

    Attributes:
        term: as the lessons call it.
        lesson: the number of the one that teaches it.
        meaning: in a few words.
        cells: for each of `course_utils.lessons.read_the_manual.manuals.FRAMEWORKS`.
    """

    term: str
    lesson: int
    meaning: str
    cells: dict[str, Cell]


_TERMS = {
    "rank": (0, "a process, by its number"),
    "world size": (0, "how many there are"),
    "all-reduce": (5, "everybody gets the sum, or the mean"),
    "broadcast": (6, "all ranks begin with the same weights"),
    "sum or mean": (6, "who divides the sum of the gradients, and by what"),
    "global batch": (6, "the images of all ranks in a step"),
    "shard": (6, "the images of each rank in an epoch"),
    "batch norm": (6, "one mean and variance for all ranks"),
    "bucket": (7, "gradients sent together, while the backward pass goes on"),
    "gradient accumulation": (7, "several backward passes, one update"),
    "compress": (7, "fewer bytes for a gradient"),
    "parameter server": (8, "asynchronous: nobody waits"),
    "local SGD": (8, "average the weights, and seldom"),
    "tensor parallel": (9, "a layer cut by column or row"),
    "activation checkpointing": (9, "compute again rather than keep"),
    "micro-batch": (10, "what the stages of a pipeline hand on"),
    "mesh": (11, "the ranks by data, tensor, pipeline"),
    "ZeRO": (11, "optimizer state, gradients, parameters: each rank a piece"),
    "launch": (13, "how the processes start"),
    "local rank": (13, "which GPU of its node"),
    "checkpoint": (13, "saved, and resumed when a rank has died"),
    "trace": (14, "where the time went"),
}
"""Term → the lesson that teaches it, and what it means."""

_SAID: dict[str, dict[str, tuple[str, str]]] = {
    TORCH: {
        "rank": ("`dist.get_rank()`", "torch"),
        "world size": ("`dist.get_world_size()`", "torch"),
        "all-reduce": ("`dist.all_reduce(tensor)`: a sum", "torch"),
        "broadcast": ("`DDP(model)` sends the weights of rank 0", "torch DDP, inside"),
        "sum or mean": ("DDP: the mean over the ranks", "torch DDP"),
        "global batch": ("`DataLoader(batch_size=…)`: of one rank", "torch data"),
        "shard": ("`DistributedSampler`, `set_epoch(epoch)`", "torch data"),
        "batch norm": ("`SyncBatchNorm.convert_sync_batchnorm(model)`", "torch SyncBatchNorm"),
        "bucket": ("`DDP(model, bucket_cap_mb=25)`", "torch DDP"),
        "gradient accumulation": ("`with model.no_sync():` around all but the last", "torch DDP"),
        "compress": ("`register_comm_hook`: fp16, PowerSGD, your own", "torch hooks"),
        "parameter server": ("parts only: `torch.distributed.rpc`", "torch rpc"),
        "local SGD": ("`PostLocalSGDOptimizer`", "torch optim"),
        "tensor parallel": ("`ColwiseParallel`, `RowwiseParallel`", "torch TP"),
        "activation checkpointing": ("`torch.utils.checkpoint.checkpoint`", "torch checkpoint"),
        "micro-batch": ("`Schedule1F1B(stage, n_microbatches=…)`", "torch PP"),
        "mesh": ("`init_device_mesh`; a group: `dist.new_group`", "torch"),
        "ZeRO": ("`fully_shard`; stage 1: `ZeroRedundancyOptimizer`", "torch FSDP"),
        "launch": ("`torchrun --nproc-per-node 4 train.py`", "torchrun"),
        "local rank": ("`LOCAL_RANK`, in the environment", "torchrun"),
        "checkpoint": ("`torchrun --max-restarts=3`; you save", "torchrun"),
        "trace": ("`torch.profiler.profile`", "torch profiler"),
    },
    HOROVOD: {
        "rank": ("`hvd.rank()`", "hvd concepts"),
        "world size": ("`hvd.size()`", "hvd concepts"),
        "all-reduce": ("`hvd.allreduce(tensor)`: a mean", "hvd api"),
        "broadcast": ("`hvd.broadcast_parameters(…)`: you call it", "hvd torch"),
        "sum or mean": ("you choose: `op=hvd.Average`, or `hvd.Sum`", "hvd api"),
        "global batch": ("`DataLoader(batch_size=…)`: of one rank", "hvd torch"),
        "shard": ("torch's sampler; you tell it rank and size", "hvd torch"),
        "batch norm": ("`hvd.SyncBatchNorm`", "hvd api"),
        "bucket": ("tensor fusion: `HOROVOD_FUSION_THRESHOLD`", "hvd fusion"),
        "gradient accumulation": ("`backward_passes_per_step`", "hvd api"),
        "compress": ("`compression=hvd.Compression.fp16`", "hvd api"),
        "parameter server": ("none", "hvd concepts"),
        "local SGD": ("none", "hvd api"),
        "tensor parallel": ("none", "hvd concepts"),
        "activation checkpointing": ("none: that of the framework below", "hvd concepts"),
        "micro-batch": ("none", "hvd concepts"),
        "mesh": ("groups: `hvd.ProcessSet`", "hvd sets"),
        "ZeRO": ("none", "hvd concepts"),
        "launch": ("`horovodrun -np 4 python train.py`", "hvd run"),
        "local rank": ("`hvd.local_rank()`", "hvd concepts"),
        "checkpoint": ("rank 0 saves; `@hvd.elastic.run`", "hvd elastic"),
        "trace": ("`horovodrun --timeline-filename …`", "hvd timeline"),
    },
    DEEPSPEED: {
        "rank": ("`deepspeed.comm.get_rank()`", "ds comm"),
        "world size": ("`deepspeed.comm.get_world_size()`", "ds comm"),
        "all-reduce": ("`deepspeed.comm.all_reduce(tensor)`: a sum", "ds comm"),
        "broadcast": ("`deepspeed.initialize(…)` sends them", "ds engine"),
        "sum or mean": ("the mean over ranks and accumulation steps", "ds config"),
        "global batch": ("`train_batch_size`: of all ranks", "ds config"),
        "shard": ("`deepspeed.initialize(training_data=…)`", "ds initialize"),
        "batch norm": ("none: torch's", "ds training"),
        "bucket": ("`reduce_bucket_size`, `overlap_comm`", "ds config"),
        "gradient accumulation": ("`gradient_accumulation_steps`", "ds config"),
        "compress": ("`OneBitAdam`; `communication_data_type`", "ds config"),
        "parameter server": ("none", "ds training"),
        "local SGD": ("`ZeroOneAdam`: `local_step_scaler`", "ds config"),
        "tensor parallel": ('`"tensor_parallel": {"autotp_size": 4}`', "ds TP"),
        "activation checkpointing": ("`deepspeed.checkpointing.checkpoint`", "ds activations"),
        "micro-batch": ("`PipelineModule(layers, num_stages=2)`", "ds pipeline"),
        "mesh": ("`PipeModelDataParallelTopology`", "ds topology"),
        "ZeRO": ('`"zero_optimization": {"stage": 0 … 3}`', "ds config"),
        "launch": ("`deepspeed --num_gpus 4 train.py`, `--hostfile`", "ds start"),
        "local rank": ("`--local_rank`, and `LOCAL_RANK`", "ds start"),
        "checkpoint": ("`save_checkpoint`: every rank must call it", "ds saving"),
        "trace": ("`flops_profiler`, `comms_logger`", "ds config"),
    },
    TENSORFLOW: {
        "rank": ("`replica_id_in_sync_group`: of one GPU", "tf replica"),
        "world size": ("`strategy.num_replicas_in_sync`", "tf strategy"),
        "all-reduce": ('`replica_context.all_reduce("sum", value)`', "tf replica"),
        "broadcast": ("variables of `strategy.scope()` are mirrored", "tf guide"),
        "sum or mean": ("custom loop: a sum; you divide: `compute_average_loss`", "tf loop"),
        "global batch": ("`dataset.batch(…)`: of all replicas", "tf input"),
        "shard": ("`strategy.experimental_distribute_dataset`", "tf input"),
        "batch norm": ("`BatchNormalization(synchronized=True)`", "tf batch norm"),
        "bucket": ("a pack: `CommunicationOptions(bytes_per_pack=…)`", "tf options"),
        "gradient accumulation": ("Keras 3: `gradient_accumulation_steps`", "keras optimizers"),
        "compress": ("none", "tf options"),
        "parameter server": ("`ParameterServerStrategy`", "tf server"),
        "local SGD": ("none", "tf guide"),
        "tensor parallel": ("none; elsewhere: `tf.experimental.dtensor`", "tf dtensor"),
        "activation checkpointing": ("`tf.recompute_grad`", "tf recompute"),
        "micro-batch": ("none", "tf guide"),
        "mesh": ("none; elsewhere: `tf.experimental.dtensor`", "tf dtensor"),
        "ZeRO": ("none", "tf guide"),
        "launch": ("you start them, each with its `TF_CONFIG`", "tf workers"),
        "local rank": ("none: a process has all GPUs of its node", "tf guide"),
        "checkpoint": ("`tf.keras.callbacks.BackupAndRestore`", "tf workers"),
        "trace": ("`tf.profiler.experimental.Profile`", "tf profiler"),
    },
    JAX: {
        "rank": ("`jax.process_index()`, of a process", "jax index"),
        "world size": ("`jax.device_count()`, `jax.process_count()`", "jax count"),
        "all-reduce": ("`jax.lax.psum(x, name)`, `jax.lax.pmean(x, name)`", "jax psum"),
        "broadcast": ("the same seed, or `broadcast_one_to_all`", "jax multihost"),
        "sum or mean": ("`jit`: the loss decides; `shard_map`: a sum by default", "jax shard_map"),
        "global batch": ("the rows of the sharded array: of all", "jax array"),
        "shard": ("`make_array_from_process_local_data`", "jax array"),
        "batch norm": ("Flax: `BatchNorm(…, axis_name=…)`", "flax"),
        "bucket": ("the compiler's latency hiding scheduler", "jax gpu"),
        "gradient accumulation": ("Optax: `MultiSteps(…, every_k_schedule=…)`", "optax"),
        "compress": ("none", "jax lax"),
        "parameter server": ("none", "jax lax"),
        "local SGD": ("none", "jax lax"),
        "tensor parallel": ('`NamedSharding(mesh, P(None, "model"))`', "jax sharding"),
        "activation checkpointing": ("`jax.checkpoint`, also called `jax.remat`", "jax checkpoint"),
        "micro-batch": ("by hand: `shard_map` and `ppermute`", "jax shard_map"),
        "mesh": ("`jax.make_mesh(shape, names)`", "jax mesh"),
        "ZeRO": ('`NamedSharding(mesh, P("data"))`: `jit` gathers', "jax sharding"),
        "launch": ("you start them: `jax.distributed.initialize()`", "jax initialize"),
        "local rank": ("none: a process has its `jax.local_devices()`", "jax local"),
        "checkpoint": ("Orbax: `CheckpointManager`", "orbax"),
        "trace": ("`jax.profiler.trace`", "jax trace"),
    },
}
"""Framework → term → its words, and the short name of a page in `PAGES`."""


def _cell(says: str, page: str) -> Cell:
    return Cell(says, PAGES[page].title, PAGES[page].address)


DICTIONARY: tuple[Entry, ...] = tuple(
    Entry(term, lesson, meaning, {framework: _cell(*cells[term]) for framework, cells in _SAID.items()})
    for term, (lesson, meaning) in _TERMS.items()
)
"""In the order of the lessons."""

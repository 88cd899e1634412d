"""One way to train a model on a cluster: how many ranks along each axis, and what is kept or computed again."""

from dataclasses import dataclass

from course_utils.errors import CourseError

NOTHING, SELECTIVE, EVERY_OTHER, FULL = "nothing", "attention", "every other product", "everything"
"""What the backward pass computes again: nothing; softmax and what stands around it; every second matrix product of a
block, and all that is no product (torchtitan's "selective op"); every block from its input."""


@dataclass(frozen=True)
class TrainingProgram:
    """What a training program does, whatever the layout.

    Attributes:
        fused: attention never writes its weights to memory (FlashAttention).
        hopper: attention's kernel is written for the H100's generation (FlashAttention-3, or cuDNN's). Torch 2.11's
            `scaled_dot_product_attention` was as fast as that on an H200.
        compiled: operations that are not matrix products are fused with their neighbours.
        float8: matrix products of the blocks take numbers of 8 bits.
        hidden: messages of tensor and pipeline parallelism hide behind products, too.
        prefetch: with ZeRO's stage 3, the next layer's parameters are gathered while this one computes.
        fused_loss: the loss is one kernel forward and one backward: of the logits there are only they and their
            gradient, in 16 bits.
        dtensor: tensor parallelism and stages are torch's own. Products keep their gathered inputs; the loss of cut
            logits is computed operation by operation; stages have buffers for all micro-batches, the last keeps all
            logits.
        kept: bytes of each parameter that ZeRO divides: the parameter, its gradient, the optimizer's state. (2, 2, 12)
            where a second copy of the parameters is in float32, (4, 4, 8) where there is only that one, as in FSDP,
            (2, 2, 4) where everything is in bfloat16.

    Source: Dao et al. 2022, "FlashAttention", §3; `hopper` Shah et al. 2024, "FlashAttention-3", §1; `kept` Rajbhandari
    et al. 2020, §3.1; `hidden` Wang et al. 2023, "Overlap communication with dependent computation via decomposition",
    §4; `dtensor` torch, distributed/tensor/parallel/loss.py and distributed/pipelining/stage.py.
    """

    fused: bool = False
    hopper: bool = False
    compiled: bool = False
    float8: bool = False
    hidden: bool = False
    prefetch: bool = True
    fused_loss: bool = False
    dtensor: bool = False
    kept: tuple[float, float, float] = (2, 2, 12)


PLAIN = TrainingProgram()
"""As in 2021: nothing of all that."""
MODERN = TrainingProgram(fused=True, compiled=True)
"""As in 2024: attention's kernel is still one for all GPUs."""


@dataclass(frozen=True)
class Layout:
    """How a training run is cut over data × context × pipeline × tensor GPUs.

    GPUs of one tensor-parallel group lie side by side, then those that share a text, then those of a data-parallel
    group; the stages of the pipeline are farthest apart. With tensor parallelism the sequence is cut too.

    Experts need no GPUs of their own: they are dealt out among `expert` of the data × context GPUs that would otherwise
    all keep the same ones.

    Attributes:
        data, tensor, pipeline: GPUs along each axis.
        zero: the stage of ZeRO.
        again: what the backward pass computes again: `NOTHING`, `SELECTIVE` or `FULL`.
        micro_batch: texts of one micro-batch, b.
        micro_batches: of one replica in a step, m.
        chunks: stages on each GPU; above 1 with the interleaved schedule.
        context: GPUs that share each text, with keys and values going round a ring.
        expert: GPUs among which a layer's experts are dealt out.
        program: what the training program does.
        gathered: with ZeRO's stage 3, parameters stay gathered from the first micro-batch to the last, and gradients
            whole: FSDP's `reshard_after_forward=False`, which spares messages for each micro-batch.
        copies: groups of GPUs of which each holds, together, everything that ZeRO divides, and adds up its gradients
            with the others: HSDP. 1 where ZeRO divides over all data × context GPUs.
        zero_bubble: two stages on each GPU in a V, and a backward pass in two halves (ZB-V).
        offload: the optimizer's state lies in host memory, and its processors step.

    Raises:
        CourseError: an axis with no GPU; experts or copies of a number that does not divide data × context; experts
            and copies; a V without two chunks.

    Source: the order of the axes Narayanan et al. 2021, §3.1 and §3.2; `context` Liu et al. 2023, "Ring Attention", §3;
    `expert` Rajbhandari et al. 2022, "DeepSpeed-MoE" (expert and data parallelism on the same GPUs); `copies` Zhao et
    al. 2023, "PyTorch FSDP", §3.2.2 (hybrid sharding); `zero_bubble` Qi et al. 2024, "Pipeline Parallelism with
    Controllable Memory", §3; `offload` Ren et al. 2021, "ZeRO-Offload", §4.
    """

    data: int
    tensor: int
    pipeline: int
    zero: int
    again: str
    micro_batch: int
    micro_batches: int
    chunks: int = 1
    context: int = 1
    expert: int = 1
    program: TrainingProgram = PLAIN
    gathered: bool = False
    copies: int = 1
    zero_bubble: bool = False
    offload: bool = False

    def __post_init__(self) -> None:
        if self.again not in (NOTHING, SELECTIVE, EVERY_OTHER, FULL):
            known = f"{NOTHING!r}, {SELECTIVE!r}, {EVERY_OTHER!r} or {FULL!r}"
            raise CourseError(f"{self.again!r} cannot be computed again: {known} can.")
        axes = {name: getattr(self, name) for name in ("data", "tensor", "pipeline", "context", "expert", "copies")}
        for name, size in axes.items():
            if not isinstance(size, int) or size < 1:
                raise CourseError(f"Layout: {name} is {size!r}. Along each axis there is at least one GPU.")
        if self.replicas % self.expert:
            raise CourseError(
                f"Layout: experts cannot be dealt out among {self.expert} of {self.replicas} GPUs (data × context)."
                " Take a divisor."
            )
        if self.replicas % self.copies or (self.copies > 1 and self.expert > 1):
            raise CourseError(
                f"Layout: {self.replicas} GPUs (data × context) cannot keep {self.copies} copies of what ZeRO divides."
                " Take a divisor, and no experts."
            )
        if self.zero_bubble and (self.chunks != 2 or self.pipeline == 1):
            raise CourseError("Layout: ZB-V has two chunks on each of several stages' GPUs.")

    @property
    def gpus(self) -> int:
        """All of them."""
        return self.data * self.context * self.tensor * self.pipeline

    @property
    def replicas(self) -> int:
        """GPUs that keep the same part of the model, and add up its gradients: data × context.

        Each has tokens of its own: another text, or another part of one.
        """
        return self.data * self.context

    @property
    def batch(self) -> int:
        """Texts of all replicas in one step."""
        return self.data * self.micro_batch * self.micro_batches

"""Every way to train a model on a cluster, on paper only: what each needs of memory and time, the quickest first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.planner.collective_times import buffer_bytes
from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import Cluster
from course_utils.lessons.hybrid_and_sharded.planner.gpu_memory import gpu_memory
from course_utils.lessons.hybrid_and_sharded.planner.language_models import LanguageModel, model_named
from course_utils.lessons.hybrid_and_sharded.planner.step_estimate import step_seconds
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import (
    EVERY_OTHER,
    FULL,
    MODERN,
    NOTHING,
    PLAIN,
    SELECTIVE,
    Layout,
    TrainingProgram,
)
from course_utils.lessons.model_parallel.memory_parts import Memory

TOKENS = 1 << 22
"""In one step, where no batch is given: four million, as for the models of table 2.1 in Brown et al. 2020."""
TIE = 0.02
"""Shares of a step that the formulas cannot tell apart."""
AGAIN_ORDER = (NOTHING, SELECTIVE, EVERY_OTHER, FULL)
TRIED_AGAIN = (NOTHING, SELECTIVE, FULL)
LONG = 16384
"""Tokens of a text from which on it may be shared by several GPUs; shorter ones need not be."""
CHUNKS = (1, 2, 4)
"""Stages on each GPU that are tried; Megatron's interleaved schedule wants m to be a multiple of P."""
MICRO_BATCHES = (1, 2, 4, 8)
"""Texts of one micro-batch that are tried."""
SHARDING_NODES = (1, 8)
"""Nodes over which ZeRO's stage 3 divides where not over all: HSDP, with as many copies as that leaves."""
TESTED_STAGES = (1, 3)
"""The stages of ZeRO in the published runs that test the planner's formulas, `published_h100`."""


@dataclass(frozen=True)
class Choice:
    """One way, predicted and not measured.

    Attributes:
        layout: ranks along each axis, ZeRO's stage, what is computed again, micro-batches.
        memory: bytes of each part on the fullest GPU.
        seconds: of each part of a step.
        room: bytes of a GPU that may be used for it.
        buffers: bytes that NCCL takes of this room.
        host: bytes of host memory that are used for each GPU, and
        host_room: how many there are.
        peak_share: of what the GPUs could compute at most in this time, the share that the model needs: without what is
            computed again ("model FLOPs utilization").
    """

    layout: Layout
    memory: Memory
    seconds: dict[str, float]
    room: float
    peak_share: float
    buffers: float = 0.0
    host: float = 0.0
    host_room: float = float("inf")

    @property
    def needed(self) -> float:
        """Bytes of the room: what is counted by part, and NCCL's buffers."""
        return self.memory.total + self.buffers

    @property
    def fits(self) -> bool:
        """Whether a GPU has as much memory, and its node."""
        return self.needed <= self.room and self.host <= self.host_room

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return sum(self.seconds.values())

    def __str__(self) -> str:
        layout = self.layout
        axes = f"DP {layout.data} × TP {layout.tensor} × PP {layout.pipeline}"
        axes += f" × CP {layout.context}" if layout.context > 1 else ""
        axes += f", EP {layout.expert}" if layout.expert > 1 else ""
        chunks = f", {layout.chunks} chunks" if layout.chunks > 1 else ""
        axes += ", ZB-V" if layout.zero_bubble else chunks
        zero = f", ZeRO {layout.zero}" if layout.replicas > 1 else ""
        zero += f" in {layout.copies} copies" if layout.copies > 1 else ""
        zero += ", optimizer offloaded" if layout.offload else ""
        again = f", {layout.again} again" if layout.again != NOTHING else ""
        return f"{axes}{zero}{again}"


def plan(
    model: str | LanguageModel,
    cluster: Cluster,
    batch: int | None = None,
    length: int | None = None,
    program: TrainingProgram | None = None,
    tested_only: bool = False,
) -> list[Choice]:
    """Every choice of DP × TP × PP × ZeRO × computing again that uses all GPUs: those that fit first, quickest first.

    On paper only: formulas, with assumed rates. Real steps are slower where matrices are small or a link is shared, and
    which of two near choices is quicker only a run can say.

    Tensor-parallel groups stay inside a node. Texts of more than `LONG` tokens may be shared by several GPUs; experts,
    if the model has any, are dealt out. Of several sizes of the micro-batch the one is taken that fits and is quickest.
    Unless the program is `PLAIN`, so it is with the numbers of chunks, ZB-V, and HSDP; and where a layout does not fit,
    the optimizer's state may go to host memory.

    Args:
        model: a `LanguageModel`, or a name from `MODELS`.
        batch: texts in one step; None for about `TOKENS` tokens.
        length: tokens of a text; None for the model's context.
        program: what the training program does; None for `MODERN` where the cluster's rates are fitted to such ones,
            otherwise `PLAIN`.
        tested_only: leave out all layouts with a feature that no published run tests, see `is_tested`.

    Raises:
        CourseError: no such model, or no way at all to deal out the batch.

    Source: `gpu_memory` and `step_estimate`, formula by formula.
    """
    model = model_named(model)
    length = length or model.context
    batch = batch or max(1, TOKENS // length)
    choices: dict[Layout, Choice] = {}
    program = program or (MODERN if cluster.rates else PLAIN)
    for layout in layouts(model, cluster, batch, length, program):
        if tested_only and not is_tested(layout):
            continue
        choice = judge(model, cluster, layout, length)
        if not choice.fits and program != PLAIN and not tested_only:
            choice = min(choice, judge(model, cluster, replace(layout, offload=True), length), key=_order)
        same = replace(layout, micro_batch=1, micro_batches=1, chunks=1, zero_bubble=False, copies=1)
        if same not in choices or _order(choice) < _order(choices[same]):
            choices[same] = choice
    if not choices:
        raise CourseError(f"{batch} texts cannot be dealt out evenly to {cluster.gpus} GPUs. Take a power of two.")
    return sorted(choices.values(), key=_order)


def is_tested(layout: Layout) -> bool:
    """Return whether published runs have tested the planner's formulas for each feature of this layout, taken alone.

    The combination may be new. The runs use ZeRO's stage 1 or 3. Not one of them has ZB-V, offloads the optimizer's
    state, or keeps several copies of what ZeRO divides (HSDP).
    """
    stages = TESTED_STAGES if layout.replicas > 1 else (0,)
    return layout.zero in stages and layout.copies == 1 and not layout.zero_bubble and not layout.offload


def best(choices: Sequence[Choice]) -> Choice | None:
    """The quickest choice that fits; None where none does.

    Formulas cannot tell choices apart that are within `TIE` of it. Of those it is the simplest: the one that computes
    least again, cuts the model into the fewest pieces, offloads nothing, and has the lowest stage of ZeRO.
    """
    fitting = [choice for choice in choices if choice.fits]
    near = [choice for choice in fitting if choice.step <= (1 + TIE) * min(other.step for other in fitting)]
    return min(near, key=_effort, default=None)


def _effort(choice: Choice) -> tuple[int, int, bool, int, float]:
    layout = choice.layout
    pieces = layout.pipeline * layout.tensor * layout.context * layout.expert
    return AGAIN_ORDER.index(layout.again), pieces, layout.offload, layout.zero, choice.step


def judge(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> Choice:
    """Memory and time of one layout.

    Raises:
        CourseError: the model or the text cannot be cut so.
    """
    if layout.expert > 1 and (not model.experts or model.experts % layout.expert):
        has = f"{model.experts} experts" if model.experts else "no experts"
        raise CourseError(f"The model has {has} in a layer: they cannot be dealt out among {layout.expert} GPUs.")
    if length % layout.context:
        raise CourseError(f"A text of {length} tokens cannot be shared by {layout.context} GPUs. Take a divisor.")
    memory = gpu_memory(model, layout, length, cluster.rates)
    seconds = step_seconds(model, cluster, layout, length)
    flops = model.flops(layout.batch * length, length)
    share = flops / (sum(seconds.values()) * layout.gpus * cluster.flops)
    kept_elsewhere = 0.0
    if layout.offload:
        here = gpu_memory(model, replace(layout, offload=False), length, cluster.rates)
        kept_elsewhere = here.optimizer_state
    room, buffers = cluster.usable * cluster.memory, buffer_bytes(layout)
    return Choice(layout, memory, seconds, room, share, buffers, kept_elsewhere, cluster.host_memory)


def layouts(
    model: LanguageModel, cluster: Cluster, batch: int, length: int, program: TrainingProgram = PLAIN
) -> Iterator[Layout]:
    """Every layout that uses all GPUs and deals the batch out evenly."""
    for tensor in _divisors(min(cluster.node, cluster.gpus)):
        if model.heads % tensor or cluster.gpus % tensor:
            continue
        for pipeline in _divisors(cluster.gpus // tensor):
            if pipeline > model.layers:
                continue
            replicas = cluster.gpus // tensor // pipeline
            for context in _divisors(replicas) if length > LONG else [1]:
                if length % (context * tensor) == 0 and batch % (replicas // context) == 0:
                    for layout in _with_axes(model, batch, replicas // context, tensor, pipeline, context, program):
                        yield from _with_copies(layout, cluster)


def _with_axes(
    model: LanguageModel, batch: int, data: int, tensor: int, pipeline: int, context: int, program: TrainingProgram
) -> Iterator[Layout]:
    dealt = [divisor for divisor in _divisors(data * context) if model.experts % divisor == 0] if model.experts else [1]
    stages = range(4) if data * context > 1 else (0,)
    again_tried = TRIED_AGAIN if not program.fused else (NOTHING, EVERY_OTHER, FULL)
    chunked = CHUNKS if pipeline > 1 and program != PLAIN else (1,)
    for expert, zero, again, texts, chunks in product(dealt, stages, again_tried, MICRO_BATCHES, chunked):
        whole = chunks == 1 or (model.layers % (pipeline * chunks) == 0 and batch // data // texts % pipeline == 0)
        if batch // data % texts == 0 and whole:
            micro_batches = batch // data // texts
            more = {"context": context, "expert": expert, "program": program}
            layout = Layout(data, tensor, pipeline, zero, again, texts, micro_batches, chunks, **more)
            yield layout
            if chunks == 2 and micro_batches >= 2 * pipeline - 1:
                yield replace(layout, zero_bubble=True)


def _with_copies(layout: Layout, cluster: Cluster) -> Iterator[Layout]:
    """This layout; with ZeRO's stage 3 also those that divide over fewer nodes than there are."""
    yield layout
    if layout.zero == 3 and layout.expert == 1 and layout.program != PLAIN:
        for nodes in SHARDING_NODES:
            parts = nodes * cluster.node // layout.tensor
            if layout.replicas % parts == 0 and layout.replicas > parts:
                yield replace(layout, copies=layout.replicas // parts)


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _order(choice: Choice) -> tuple[bool, float, float]:
    """What fits comes first; of what does not, what nearly does."""
    return not choice.fits, choice.step if choice.fits else choice.memory.total, choice.memory.total

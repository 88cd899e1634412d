"""What `course plan` prints: the best layouts, why each of the others loses, and what breaks first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import CLUSTERS, Cluster
from course_utils.lessons.hybrid_and_sharded.planner.language_models import LanguageModel, model_named
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import TIE, Choice, judge, plan
from course_utils.lessons.hybrid_and_sharded.planner.step_estimate import (
    DATA,
    again_seconds,
    compute_seconds,
    data_seconds,
    hidden_seconds,
    tensor_seconds,
)
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import Layout
from course_utils.words import bytes_text, percent, seconds_text

SHOWN = 10


def cluster_named(name: str) -> Callable[[int], Cluster]:
    """The function that makes clusters of such GPUs.

    Raises:
        CourseError: no such GPU.
    """
    if name.lower() not in CLUSTERS:
        raise CourseError(f"There are no numbers for {name!r}. Take one of {', '.join(CLUSTERS)}.")
    return CLUSTERS[name.lower()]


@dataclass(frozen=True)
class PlanReport:
    """What `plan` found, in words.

    Attributes:
        head: what was asked, and that nothing was run.
        rows: of the best `SHOWN` layouts: its name, a step's time, memory, why it loses; none where none fits.
        notes: what breaks first, what decides, how far the best one scales, or that nothing fits.
    """

    head: str
    rows: list[tuple[str, str, str, str]]
    notes: list[str]

    def __str__(self) -> str:
        lines = [
            f"{number:2}  {layout}: {step}, {memory}; {why}"
            for number, (layout, step, memory, why) in enumerate(self.rows, start=1)
        ]
        return "\n".join([self.head, "", *lines, "", *self.notes] if lines else [self.head, *self.notes])


def report(
    model: str,
    gpus: int,
    of: str,
    batch: int | None = None,
    length: int | None = None,
    tested_only: bool = False,
) -> PlanReport:
    """The best `SHOWN` layouts in a line each, what breaks first, and how far the best one scales.

    Args:
        tested_only: as for `plan`.

    Raises:
        CourseError: no such model or GPU, or a batch that cannot be dealt out.
    """
    described, make = model_named(model), cluster_named(of)
    found = plan(described, make(gpus), batch, length, tested_only=tested_only)
    length = length or described.context
    texts = found[0].layout.batch
    head = (
        f"{model} on {gpus} {of.upper()} GPUs, {texts} texts of {length} tokens in a step. On paper: nothing was run."
    )
    fitting = [choice for choice in found if choice.fits]
    if not fitting:
        return PlanReport(head, [], [f"Nothing fits. Nearest: {found[0]}, {overfull(found[0])}."])
    first = fitting[0]
    rows = [
        (
            f"{choice}, micro-batch {choice.layout.micro_batch}",
            seconds_text(choice.step),
            bytes_text(choice.memory.total),
            "the quickest" if choice is first else loses(choice, first),
        )
        for choice in fitting[:SHOWN]
    ]
    notes = [breaks_first(described, make, first, length), *decides(described, make, found, length)]
    out = [choice for choice in found if not choice.fits and choice.step < first.step]
    if out:
        quickest = min(out, key=lambda choice: choice.step)
        notes.append(f"Quicker, but too large: {quickest}, {seconds_text(quickest.step)}; {overfull(quickest)}.")
    return PlanReport(head, rows, [*notes, binding_text(described, make, first.layout, length)])


def loses(choice: Choice, first: Choice) -> str:
    """Which part of its step costs most beyond the best one's."""
    parts = choice.seconds.keys() | first.seconds.keys()
    more = {name: choice.seconds.get(name, 0.0) - first.seconds.get(name, 0.0) for name in sorted(parts)}
    name = max(more, key=more.__getitem__)
    slower = percent(choice.step / first.step - 1)
    return f"{slower} slower: {name} +{seconds_text(more[name])}" if more[name] > 0 else "as quick"


def overfull(choice: Choice) -> str:
    """What does not fit, and which part takes most."""
    if choice.host > choice.host_room:
        state, room = bytes_text(choice.host), bytes_text(choice.host_room)
        return f"{state} of optimizer state for {room} of host memory"
    part = max(choice.memory.parts().items(), key=lambda item: item[1])
    return f"{bytes_text(choice.needed)} of {bytes_text(choice.room)}, most of it {part[0]} ({bytes_text(part[1])})"


def breaks_first(model: LanguageModel, make: Callable[[int], Cluster], choice: Choice, length: int) -> str:
    """How near the best choice is to its limits: the share of memory that is used, and of messages that is seen."""
    name, amount = max(choice.memory.parts().items(), key=lambda item: item[1])
    memory = choice.needed / choice.room
    layout, cluster = choice.layout, make(choice.layout.gpus)
    hiding = hidden_seconds(compute_seconds(model, cluster, layout, length), layout)
    messages = data_seconds(model, cluster, layout) / hiding
    memory_text = f"memory is {percent(memory)} full, most of it {name} ({bytes_text(amount)})"
    data_text = f"messages of data parallelism take {percent(messages)} of the arithmetic that hides them"
    order = [memory_text, data_text] if memory >= messages else [data_text, memory_text]
    return f"Breaks first: {order[0]}; then {order[1]}."


def decides(model: LanguageModel, make: Callable[[int], Cluster], found: Sequence[Choice], length: int) -> list[str]:
    """A sentence for each thing without which the best choice would not be the best, or not as quick.

    Args:
        found: of `plan`, the best choice first.
    """
    first, cluster = found[0], make(found[0].layout.gpus)

    def without(**changes) -> Choice:
        return judge(model, cluster, replace(first.layout, **changes), length)

    lines = []
    if first.layout.zero_bubble:
        step = seconds_text(without(zero_bubble=False, chunks=1).step)
        lines.append(f"ZB-V decides: as 1F1B the quickest takes {step}.")
    if first.layout.copies > 1:
        lines.append(
            f"HSDP decides: with ZeRO over all GPUs the quickest takes {seconds_text(without(copies=1).step)}."
        )
    if first.layout.offload:
        here = without(offload=False)
        saved = here.memory.optimizer_state
        lines.append(
            f"Offload decides: {bytes_text(saved)} of optimizer state lie in host memory. On the GPU the"
            f" quickest needs {overfull(here)}."
        )
    no_prefetch = without(program=replace(first.layout.program, prefetch=False))
    if first.layout.zero == 3 and no_prefetch.step > (1 + TIE) * first.step:
        lines.append(f"Prefetch decides: without it the quickest takes {seconds_text(no_prefetch.step)}.")
    near = [
        choice
        for choice in found
        if not choice.fits and choice.memory.total <= choice.room and choice.step < first.step
    ]
    if near:
        quicker = min(near, key=lambda choice: choice.step)
        step, buffers = seconds_text(quicker.step), bytes_text(quicker.buffers)
        lines.append(f"NCCL's buffers decide: {quicker} takes {step}, but with {buffers} of buffers it does not fit.")
    direct = judge(model, replace(cluster, latency=0.0, hop=0.0), first.layout, length)
    if first.step > (1 + TIE) * direct.step:
        lines.append(
            f"Latency decides: if empty messages cost nothing the quickest would take {seconds_text(direct.step)}; of"
            f" that, {DATA} {seconds_text(direct.seconds[DATA])} in place of {seconds_text(first.seconds[DATA])}."
        )
    return lines


def largest_hidden(model: LanguageModel, make: Callable[[int], Cluster], layout: Layout, length: int) -> int | None:
    """The largest number of GPUs on which messages of data parallelism still hide behind arithmetic, for one batch.

    The data axis is doubled, and each replica's share of the batch halved: what a GPU computes gets less, what it sends
    stays the same. Tensor and pipeline stay as they are.

    Returns:
        None where even `layout` itself waits for its messages.

    Source: Austin et al. 2025, "How to Scale Your Model", chapter 5 (compute-bound and communication-bound).
    """
    last = None
    while True:
        cluster = make(layout.gpus)
        working = compute_seconds(model, cluster, layout, length) + again_seconds(model, cluster, layout, length)
        if data_seconds(model, cluster, layout) > hidden_seconds(working, layout):
            return last
        last = layout.gpus
        halved = _with_twice_the_data(layout)
        if halved is None:
            return last
        layout = halved


def _with_twice_the_data(layout: Layout) -> Layout | None:
    """The same batch on twice as many replicas; None where no replica could be given half."""
    if layout.micro_batches % 2 == 0:
        return replace(layout, data=2 * layout.data, micro_batches=layout.micro_batches // 2)
    if layout.micro_batch % 2 == 0:
        return replace(layout, data=2 * layout.data, micro_batch=layout.micro_batch // 2)
    return None


def binding_text(model: LanguageModel, make: Callable[[int], Cluster], layout: Layout, length: int) -> str:
    """How far this layout scales with this batch."""
    cluster = make(layout.gpus)
    if tensor_seconds(model, cluster, layout, length) > compute_seconds(model, cluster, layout, length):
        return "Communication binds already: messages of tensor parallelism take longer than the arithmetic."
    most = largest_hidden(model, make, layout, length)
    if most is None:
        return "Communication binds already: messages of data parallelism take longer than what hides them."
    return f"The same batch on more GPUs, by the data axis: up to N = {most} communication does not bind."

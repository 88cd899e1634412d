"""What a trace has recorded of its ranks' GPUs, and what it lacks, so that the report claims no more than it can know.

A trace may lack a GPU's work altogether: nobody asked for it, a different profiler had taken the GPU's counters, or the
file was cut. Or it may have so little of it that its shares tell nothing about the steps.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_utils.lessons.profiling import event_kinds
from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.event_kinds import kind_of, name_of
from course_utils.lessons.profiling.lanes import Lanes

ENOUGH = 0.5
"""If the GPU's work spans a smaller share of the program's time than this, its shares don't describe the program."""
_OF_PROGRAM = ("cpu_op", "user_annotation")


@dataclass(frozen=True)
class GpuRecord:
    """What a trace has recorded of its ranks' GPUs.

    Attributes:
        unseen: ranks that asked a GPU for work, or NCCL for messages, and of whose kernels none is recorded.
        spans: rank → from the first to the last of its GPU's work, in seconds, as far as it counts.
        program: rank → how long the same steps took in the program, or all that is recorded of it without steps.
    """

    unseen: tuple[int, ...]
    spans: Mapping[int, float]
    program: Mapping[int, float]

    @property
    def is_enough(self) -> bool:
        """Whether it shows what the ranks' time went into."""
        return not self.unseen and self.sparsest is None

    @property
    def sparsest(self) -> int | None:
        """The rank of whose time the GPU's work spans the smallest share; None if it spans enough on every rank."""
        covered = {rank: seconds / (self.program[rank] or seconds or 1.0) for rank, seconds in self.spans.items()}
        rank = min(covered, key=covered.__getitem__, default=None)
        return rank if rank is not None and covered[rank] < ENOUGH else None


def gpu_record_of(trace: Trace, lanes: Sequence[Lanes]) -> GpuRecord:
    """Return what a merged trace has recorded of its ranks' GPUs."""
    with_kernels, asked = set(), set()
    steps: dict[int, list[tuple[float, float]]] = defaultdict(list)
    others: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] != "X":
            continue
        rank, kind = event["pid"], kind_of(event)
        when = 1e-6 * event["ts"], 1e-6 * (event["ts"] + event["dur"])
        if event_kinds.is_kernel(event):
            with_kernels.add(rank)
        elif event_kinds.is_step(event):
            steps[rank].append(when)
        elif event_kinds.is_call(event) or kind in _OF_PROGRAM:
            others[rank].append(when)
            if name_of(event).startswith("nccl:") or event_kinds.is_call(event) and "Launch" in name_of(event):
                asked.add(rank)
    on_gpu = [own for own in lanes if own.rank in with_kernels]
    return GpuRecord(
        unseen=tuple(sorted(asked - with_kernels)),
        spans={own.rank: own.seconds for own in on_gpu},
        program={own.rank: _span(steps[own.rank] or others[own.rank]) for own in on_gpu},
    )


def _span(times: Sequence[tuple[float, float]]) -> float:
    return max(end for _, end in times) - min(begin for begin, _ in times) if times else 0.0

"""Profiles training steps with torch.profiler on every rank, and keeps with each trace what its clock has to do with
rank 0's.

A rank's trace is the one that torch.profiler writes, a Chrome trace, with one thing more: "course", with its rank, its
machine, and the microseconds to add to its times to have them on rank 0's `time.perf_counter`.
"""

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.lessons.data_parallel.training import Sgd, train_step
from course_utils.lessons.overlap.played_names import ON_LINK
from course_utils.lessons.overlap.step_times import small_vgg
from course_utils.lessons.profiling.chrome_trace import Trace, read_trace
from course_utils.lessons.profiling.merged_trace import CLOCK, STEP
from course_utils.lessons.profiling.profiled_ranks import Profile
from course_utils.lessons.profiling.rank_clocks import offset_to_rank_0
from course_utils.trace.nvtx_ranges import nvtx_range
from course_utils.vgg import random_images

if TYPE_CHECKING:
    from torch import nn
    from torch.profiler import profile

    from course_utils.lessons.overlap.step_times import Way
    from course_utils.ranks.ranks import Ranks

Step = Callable[[], Any]
"""One training step."""
_MARKS = 5


def profile_ranks(
    ranks: "Ranks",
    make_step: Callable[..., Step],
    *args: Any,
    warm_up: int = 2,
    steps: int = 3,
    world_size: int | None = None,
    **kwargs: Any,
) -> Profile:
    """Profile steps on the first `world_size` ranks.

    Args:
        make_step: called with the other arguments on every rank, where torch.distributed has its default group; gives
            back what makes one step.
        warm_up: steps before the profiler begins.
        steps: that are profiled.
    """
    run = ranks.run(
        profile_steps, make_step, *args, warm_up=warm_up, steps=steps, backend="gloo", ranks=world_size, **kwargs
    )
    return Profile([trace for trace, _ in run.results], [results for _, results in run.results])


def profile_steps(
    make_step: Callable[..., Step], *args: Any, warm_up: int = 2, steps: int = 3, **kwargs: Any
) -> tuple[Trace, list[Any]]:
    """On every rank, however it was started: profile steps; all ranks begin together.

    Returns:
        This rank's trace, and what its steps returned.
    """
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile

    from course_utils.trace.recorder import recorder

    step = make_step(*args, **kwargs)
    for _ in range(warm_up):
        step()
    offset = offset_to_rank_0()
    on_gpu = torch.cuda.is_initialized()  # by the steps above; asking the profiler for a GPU would take memory on it
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_gpu
    with profile(activities=activities) as profiler:
        marks = [_mark() for _ in range(_MARKS)]
        dist.barrier()
        seen, results = len(recorder.events), []
        for number in range(steps):
            with _named(f"{STEP}{number}"):
                results.append(step())
        if on_gpu:
            torch.cuda.synchronize()
    trace, shift = _with_phases(exported(profiler), marks, recorder.events[seen:])
    own = {"rank": dist.get_rank(), "shift": shift + 1e6 * offset.seconds, "error": 1e6 * offset.error}
    return trace | {"course": own | {"machine": trace.get("host_name", "")}}, results


def profile_memory(make_step: Callable[..., Step], *args: Any, **kwargs: Any) -> Trace:
    """On a rank: make a step, take it twice, and profile the second with all that is allocated and freed.

    The profiler sees what is allocated while it runs, so the network is made under its eyes as well. What earlier calls
    have left in this process is given back first.

    Returns:
        This rank's trace, on a clock of its own.
    """
    from torch.profiler import ProfilerActivity, profile

    from course_utils.trace.recorder import recorder

    _give_back()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:  # a GPU's allocator is seen, too
        step = make_step(*args, **kwargs)
        step()  # from now on gradients and the optimizer's numbers have their places
        marks, seen = [_mark() for _ in range(_MARKS)], len(recorder.events)
        with _named(f"{STEP}0"):
            step()
    return _with_phases(exported(profiler), marks, recorder.events[seen:])[0]


def _give_back() -> None:
    """Free the tensors that nothing refers to any more, and on a GPU the workspaces that cuBLAS keeps for good.

    The step then takes its own workspaces, as in a fresh process. (Source: docs.pytorch.org, "CUDA semantics", "cuBLAS
    workspaces".)
    """
    import torch

    gc.collect()
    if torch.cuda.is_initialized():
        torch._C._cuda_clearCublasWorkspaces()


def training_step(
    wrap: "Way", batch: int = 32, build: "Callable[[int], nn.Module] | None" = None, device: str = "cpu"
) -> Step:
    """For `profile_ranks`: the step that lesson 7 times, with one of its ways to keep replicas equal.

    Args:
        wrap: one of `course_utils.lessons.data_parallel.replicas`, or a function like them.
        batch: random images on this rank.
        build: makes the network from a seed; VGG-11 with a quarter of its channels unless told otherwise.
        device: where the network and its images lie.
    """
    import torch.distributed as dist

    x, y = (tensor.to(device) for tensor in random_images(batch, seed=dist.get_rank()))
    replica = wrap((build or small_vgg)(0).to(device).train())
    optimizer = Sgd(replica.module.parameters(), rate=0.01)
    return lambda: train_step(replica.module, optimizer, x, y, replica.finish)


def exported(profiler: "profile") -> Trace:
    """What a profiler saw, as the Chrome trace that it writes."""
    with tempfile.TemporaryDirectory(prefix="course-profile-") as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return read_trace(path)


def clock_shift(trace: Trace, marks: Sequence[float]) -> float:
    """Microseconds to add to a trace's times to have them on this rank's `time.perf_counter`.

    Args:
        marks: readings of `time.perf_counter`, each taken inside of an event of the trace with the name `CLOCK`: the
            shortest of these events says best when that was.
    """
    around = sorted(
        (event for event in trace["traceEvents"] if event.get("name") == CLOCK), key=lambda event: event["ts"]
    )
    event, mark = min(zip(around, marks, strict=True), key=lambda pair: pair[0]["dur"])
    return 1e6 * mark - (event["ts"] + event["dur"] / 2)


@contextmanager
def _named(step: str) -> Iterator[None]:
    """What happens inside is a step of this name, for torch's profiler and for NVIDIA's."""
    from torch.profiler import record_function

    with record_function(step), nvtx_range(step):
        yield


def _with_phases(trace: Trace, marks: Sequence[float], recorded: Sequence[Any]) -> tuple[Trace, float]:
    """The trace with the phases among what the course has recorded itself, and its `clock_shift`."""
    shift = clock_shift(trace, marks)
    return trace | {
        "traceEvents": trace["traceEvents"] + [_event(event, shift) for event in recorded if _is_kept(event)]
    }, shift


def _mark() -> float:
    """The clock's reading, inside of an event."""
    from torch.profiler import record_function

    with record_function(CLOCK):
        return time.perf_counter()


def _is_kept(event: Any) -> bool:
    """Of what the course records itself: phases, among them what is on a played link."""
    return event.kind == "phase"


def _event(event: Any, shift: float) -> dict[str, Any]:
    """A phase of the course's own recorder as the profiler would write it, on the profiler's clock."""
    row = "link" if event.name == ON_LINK else "phases"
    begin, end = 1e6 * event.start - shift, 1e6 * event.end - shift
    return {"ph": "X", "cat": row, "name": event.name, "pid": "course", "tid": row, "ts": begin, "dur": end - begin}

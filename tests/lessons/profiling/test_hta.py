"""Holistic Trace Analysis, Meta's tool, on traces of the course: it reads them and counts what the lesson counts.

HTA knows kernels alone, so what ranks without a GPU did is handed to it as kernels. It rounds times down to whole
microseconds and leaves out the last step unless asked; the traces are stretched a thousandfold, so rounding is nothing.

Traces that others wrote have much that ours don't: kernels of a step before the first, waits that have the number of a
stream, AMD's names, no steps at all. Such traces are made here by chance.
"""

import json
import math
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import course_utils as course
from course_utils.lessons.overlap.buckets import overlapped
from course_utils.lessons.profiling.chrome_trace import Trace, read_trace, write_trace
from course_utils.lessons.profiling.gpu_steps import RECORDED
from course_utils.lessons.profiling.hta_window import lanes_as_hta
from course_utils.lessons.profiling.lanes import Lanes, lanes_of
from course_utils.lessons.profiling.record_profiles import profile_ranks, training_step
from course_utils.syllabus import ROOT

BESIDE = ROOT / ".venv" / "hta" / "bin" / "python"
SLOWER = 1000
ASK = """
import json, sys
from hta.trace_analysis import TraceAnalysis
last_step = sys.argv[2] == "with the last step"
files = dict(enumerate(sys.argv[3:]))
found = TraceAnalysis(trace_files=files, trace_dir="/", include_last_profiler_step=last_step)
busy, overlap = found.get_temporal_breakdown(visualize=False), found.get_comm_comp_overlap(visualize=False)
idle = busy["idle_time_pctg"].tolist()
json.dump({"idle": idle, "overlap": overlap["comp_comm_overlap_pctg"].tolist()}, open(sys.argv[1], "w"))
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def asked(folder: Path, *traces: Trace, last_step: bool = True) -> dict[str, list[float]]:
    """What HTA says of each rank, in percent: its idle time, and the share of communication that is hidden."""
    if not BESIDE.exists():
        line = "HTA is not installed: tools/set-up-beside hta puts it beside the course"
        assert os.environ.get("CI") != "true", line
        pytest.skip(line)
    files = [write_trace(trace, folder / f"rank{rank}.json.gz") for rank, trace in enumerate(traces)]
    which = "with the last step" if last_step else "without"
    command = [BESIDE, "-c", ASK, folder / "found.json", which, *files]
    exact = os.environ | {"HTA_DISABLE_NS_ROUNDING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=exact)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "found.json").read_text())


def stretched(trace: Trace) -> Trace:
    """The same, where everything takes a thousand times as long."""
    events = [
        event | {field: SLOWER * event[field] for field in ("ts", "dur") if field in event}
        for event in trace["traceEvents"]
    ]
    return trace | {"traceEvents": events, "distributedInfo": {"rank": 0}}


def as_kernels(lanes: Lanes) -> Trace:
    """A rank's lanes as a GPU's: computing in one stream, communication in another one."""
    kinds = (("gemm", 7, lanes.computing), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, lanes.communication))
    events: list[dict] = []
    for name, stream, times in kinds:
        for begin, end in times:
            number = len(events) // 2 + 1
            at = {"ts": 1e6 * SLOWER * begin, "ph": "X", "args": {"correlation": number, "stream": stream, "device": 0}}
            events.append(at | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "dur": 1})
            long = 1e6 * SLOWER * (end - begin)
            events.append(at | {"cat": "kernel", "name": name, "pid": 0, "tid": stream, "dur": long})
    return {"schemaVersion": 1, "distributedInfo": {"rank": lanes.rank}, "traceEvents": events}


@pytest.mark.parametrize("file", ["channels-last", "CUDA-graph"])
def test_hta_finds_the_same_idle_time_on_a_gpu(file: str, tmp_path) -> None:
    trace = read_trace(RECORDED / f"{file}.json.gz")
    (lanes,) = lanes_of(trace)
    assert asked(tmp_path, stretched(trace))["idle"] == [pytest.approx(100 * lanes.idle_share, abs=1)]


def test_hta_finds_the_same_overlap_and_idle_time(tmp_path) -> None:
    ranks = course.start(2)
    found = profile_ranks(ranks, training_step, lambda one: overlapped(one, bucket_bytes=1 << 19), batch=8, steps=2)
    ranks.stop()
    traces = [as_kernels(lanes) for lanes in found.lanes]
    counted = asked(tmp_path, *traces)
    same_time = [lanes_as_hta(trace, last_step=True) for trace in traces]  # without the idle time at the steps' ends
    assert counted["overlap"] == pytest.approx([100 * lanes.overlap_share for lanes in found.lanes], abs=0.1)
    assert counted["idle"] == pytest.approx([100 * lanes.idle_share for lanes in same_time], abs=0.1)


def foreign_trace(
    seed: int, rank: int, steps: int, amd: bool = False, waits: bool = True, behind: int = 2, uncalled: bool = True
) -> Trace:
    """A trace as torch.profiler writes it, of a program that runs ahead of its GPU, of kernels on four streams.

    Args:
        steps: that are marked; the program does as many without marks.
        amd: with the names of ROCm and RCCL.
        waits: with events that have the number of a stream, and are no work.
        behind: how many steps the GPU is behind; so many are asked for before the first step.
        uncalled: with kernels whose calls are not in the file.
    """
    chance = random.Random(1000 * seed + rank)
    launch, gemm = ("hipLaunchKernel", "Cijk_Alik_Bljk_SB") if amd else ("cudaLaunchKernel", "ampere_sgemm_128x64_nn")
    nccl = (
        "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)" if amd else "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    )
    kinds = [(gemm, "kernel"), ("triton_poi_fused_add_0", "kernel"), (nccl, "kernel")]
    kinds += [("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy"), ("Memset (Device)", "gpu_memset")]
    kinds += [("Stream Wait Event", "cuda_sync")] * waits
    events: list[dict] = []
    free = dict.fromkeys(range(4), 5e8 + 700 * behind)  # when each stream is free again
    program, number = 5e8, 0
    for step in range(-behind, max(steps, 3)):
        begin = program
        for _ in range(12):
            number += 1
            name, cat = chance.choice(kinds)
            stream = 3 if name == nccl else chance.randrange(3)
            program += chance.uniform(5, 60)
            at = {"device": rank, "stream": stream, "correlation": number}
            if not (uncalled and chance.random() < 0.1):
                call = {
                    "ph": "X",
                    "cat": "cuda_runtime",
                    "name": launch,
                    "pid": 77,
                    "tid": 77,
                    "ts": program,
                    "dur": 3.2,
                }
                events.append(call | {"args": {"correlation": number, "External id": number}})
            since, long = max(program + 4, free[stream]) + chance.uniform(0, 50), chance.uniform(1, 180)
            free[stream] = since + long
            work = {"ph": "X", "cat": cat, "name": name, "pid": rank, "tid": stream, "ts": since, "dur": long}
            events.append(work | {"args": at})
        if 0 <= step < steps:
            mark = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 77, "tid": 77}
            events.append(mark | {"ts": begin, "dur": program - begin, "args": {}})
    span = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler"}
    events.append(span | {"ts": 5e8 - 100, "dur": 9000.0, "args": {"Op count": 0}})
    return {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}


TRAITS: dict[str, Callable[[int, int], Trace]] = {
    "NVIDIA, three steps": lambda seed, rank: foreign_trace(seed, rank, 3),
    "AMD, no steps": lambda seed, rank: foreign_trace(seed, rank, 0, amd=True),
    "AMD, two steps": lambda seed, rank: foreign_trace(seed, rank, 2, amd=True, waits=False),
    "one step": lambda seed, rank: foreign_trace(seed, rank, 1),
}


@pytest.mark.parametrize("last_step", [False, True])
@pytest.mark.parametrize("traits", TRAITS)
def test_hta_finds_the_same_in_traces_of_others_over_the_same_time(traits, last_step, seed, tmp_path) -> None:
    traces = [TRAITS[traits](seed, rank) for rank in (0, 1)]
    found = asked(tmp_path, *traces, last_step=last_step)
    own = [lanes_as_hta(trace, last_step) for trace in traces]
    assert found["idle"] == pytest.approx([100 * lanes.idle_share for lanes in own], abs=0.1)
    assert found["overlap"] == pytest.approx([100 * lanes.overlap_share for lanes in own], abs=0.1)


def test_hta_finds_the_same_as_our_lanes_if_nothing_but_steps_was_recorded(seed, tmp_path) -> None:
    """No kernel of an earlier step, no wait, and every call in the file: nothing is left to count differently."""
    traces = [foreign_trace(seed, rank, 3, waits=False, behind=0, uncalled=False) for rank in (0, 1)]
    found = asked(tmp_path, *traces)
    own = [lanes_of(trace)[0] for trace in traces]
    assert found["idle"] == pytest.approx([100 * lanes.idle_share for lanes in own], abs=1)
    assert found["overlap"] == pytest.approx([100 * lanes.overlap_share for lanes in own], abs=1)


def test_a_gpu_behind_its_program_is_where_hta_and_our_lanes_differ(tmp_path) -> None:
    """Communication of the step before the first takes 99 of 150 µs: HTA counts it, our lanes begin behind it."""

    def event(name: str, cat: str, ts: float, dur: float, **args: int) -> dict:
        late = 1_000_000.0  # HTA keeps small whole numbers in a byte, in which their sums overflow
        return {"ph": "X", "name": name, "cat": cat, "ts": late + ts, "dur": dur, "pid": 7, "tid": 1, "args": args}

    events = [event(f"ProfilerStep#{step}", "user_annotation", 50 * step, 50) for step in (0, 1)]
    events += [event("cudaLaunchKernel", "cuda_runtime", 10, 1, correlation=5)]
    events += [event("cudaLaunchKernel", "cuda_runtime", -40, 1, correlation=1)]
    events += [event("ncclDevKernel_AllReduce", "kernel", 1, 99, stream=20, device=0, correlation=1)]
    events += [event("gemm", "kernel", 100, 50, stream=7, device=0, correlation=5)]
    trace = {"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": events}
    (lanes,) = lanes_of(trace)
    as_hta = lanes_as_hta(trace, last_step=True)
    assert lanes.exposed_seconds == 0 and lanes.seconds == pytest.approx(50e-6)
    assert as_hta.exposed_seconds == pytest.approx(99e-6) and as_hta.seconds == pytest.approx(149e-6)
    found = asked(tmp_path, trace)
    assert found["overlap"] == [0] and found["idle"] == [pytest.approx(100 * as_hta.idle_share, abs=0.1)]
    assert math.isclose(as_hta.idle_share, 0, abs_tol=1e-9)

"""Holistic Trace Analysis, Meta's tool, on traces of the course: it reads them and counts what the lesson counts.

HTA knows kernels alone, so what ranks without a GPU did is handed to it as kernels. It rounds times down to whole
microseconds and leaves out the last step unless asked; the traces are stretched a thousandfold, so rounding is nothing.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

import course_utils as course
from course_utils.lessons.overlap.buckets import overlapped
from course_utils.lessons.profiling.chrome_trace import Trace, read_trace, write_trace
from course_utils.lessons.profiling.gpu_steps import RECORDED
from course_utils.lessons.profiling.lanes import Lanes, lanes_of
from course_utils.lessons.profiling.record_profiles import profile_ranks, training_step
from course_utils.syllabus import ROOT

BESIDE = ROOT / ".venv" / "hta" / "bin" / "python"
SLOWER = 1000
ASK = """
import json, sys
from hta.trace_analysis import TraceAnalysis
files = dict(enumerate(sys.argv[2:]))
found = TraceAnalysis(trace_files=files, trace_dir="/", include_last_profiler_step=True)
busy, overlap = found.get_temporal_breakdown(visualize=False), found.get_comm_comp_overlap(visualize=False)
idle = busy["idle_time_pctg"].tolist()
json.dump({"idle": idle, "overlap": overlap["comp_comm_overlap_pctg"].tolist()}, open(sys.argv[1], "w"))
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def asked(folder: Path, *traces: Trace) -> dict[str, list[float]]:
    """What HTA says of each rank, in percent: its idle time, and the share of communication that is hidden."""
    if not BESIDE.exists():
        line = "HTA is not installed: tools/set-up-beside hta puts it beside the course"
        assert os.environ.get("CI") != "true", line
        pytest.skip(line)
    files = [write_trace(trace, folder / f"rank{rank}.json.gz") for rank, trace in enumerate(traces)]
    done = subprocess.run(
        [BESIDE, "-c", ASK, folder / "found.json", *files], capture_output=True, text=True, timeout=200
    )
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
    told = asked(tmp_path, *(as_kernels(one) for one in found.lanes))
    assert told["overlap"] == pytest.approx([100 * one.overlap_share for one in found.lanes], abs=1)
    assert told["idle"] == pytest.approx([100 * one.idle_share for one in found.lanes], abs=1)

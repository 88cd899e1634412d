"""Traces that lack something: what is said first, and what isn't said because the trace can't show it."""

import json
from pathlib import Path

import pytest

import course_utils as course
from course_utils.errors import CourseError
from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.foreign import lenient_json
from course_utils.lessons.profiling.foreign.profile_notes import NoteKind
from course_utils.lessons.profiling.profile_findings import NoPath, SlowReason
from course_utils.lessons.profiling.profiled_ranks import Profile
from course_utils.lessons.profiling.sentences import profile_report
from tests.lessons.profiling.test_profile_findings import RankWriter, event, two_ranks

VERDICTS = ("lesson 14", "Little is lost", "Most of the time", "single reason")


def text(profile: Profile) -> str:
    """The report in one line."""
    return " ".join(profile_report(profile).split())


def written(trace: Trace | str, path: Path) -> Path:
    """A file with a trace, or with a text."""
    path.write_text(trace if isinstance(trace, str) else json.dumps(trace), encoding="utf-8")
    return path


def eager(steps: int = 50) -> RankWriter:
    """Kernels of a millisecond, one after the other, each asked for by an operator."""
    writer = RankWriter(0, 1, error=0.0)
    for number in range(steps):
        begin = 1000 * number
        writer.add(event("aten::mm", "cpu_op", begin, begin + 40))
        writer.kernel("gemm", begin + 50, begin + 990, begin + 10)
    return writer


def test_one_long_call_is_not_many_small_operations() -> None:
    writer = eager()
    writer.add(event("aten::embedding", "cpu_op", 50_000, 450_000))
    writer.number += 1
    writer.add(event("cudaLaunchKernel", "cuda_runtime", 50_100, 449_000, correlation=writer.number))
    writer.add(event("gather", "kernel", 449_100, 449_200, pid=0, tid=7, correlation=writer.number, stream=7))
    profile = Profile([writer.trace])
    assert profile.findings.reason is SlowReason.ONE_CALL
    assert profile.findings.program.gap_call == "cudaLaunchKernel"
    assert profile.findings.program.gap_seconds == pytest.approx(0.399, abs=0.001)
    assert "single gap" in text(profile) and "`cudaLaunchKernel`" in text(profile)


def test_a_few_long_operators_are_not_many_small_operations() -> None:
    writer = RankWriter(0, 1, error=0.0)
    for number in range(6):
        begin = 100_000 * number
        writer.add(event("aten::nonzero", "cpu_op", begin, begin + 90_000))
        writer.kernel("gemm", begin + 90_000, begin + 91_000, begin + 89_000)
    assert Profile([writer.trace]).findings.reason is None


def test_one_rank_needs_no_messages() -> None:
    writer = eager()
    writer.add(event("nccl:all_reduce", "user_annotation", 500, 510))
    report = text(Profile([writer.trace]))
    assert "NCCL" not in report and "message" not in report and "ProfilerActivity" not in report


@pytest.mark.parametrize("asked", [("nccl:all_to_all", "user_annotation"), ("cudaLaunchKernel", "cuda_runtime")])
def test_a_gpu_that_was_not_recorded_is_not_judged(asked) -> None:
    writer = RankWriter(0, 8, error=0.0)
    writer.step(1, 0, 100_000)
    for number in range(10):
        writer.add(event("aten::mm", "cpu_op", 10_000 * number, 10_000 * number + 2000))
        writer.add(event(*asked, 10_000 * number + 100, 10_000 * number + 110))
    profile = Profile([writer.trace])
    assert profile.findings.record.unseen == (0,) and profile.findings.reason is None
    report = text(profile)
    assert "no kernels of a GPU are in the file" in report
    assert "computing" not in report and not any(verdict in report for verdict in VERDICTS)


@pytest.mark.parametrize("is_marked", [True, False])
def test_little_work_in_a_long_step_is_said_first(is_marked) -> None:
    writer = RankWriter(0, 1, error=0.0)
    if is_marked:
        writer.step(7, 0, 500_000)
    else:
        writer.add(event("aten::item", "cpu_op", 0, 500_000))
    writer.kernel("add", 250_050, 250_090, 250_010)
    profile = Profile([writer.trace])
    assert profile.findings.record.sparsest == 0
    report = text(profile)
    assert report.index("lies within 40 µs of the 500 ms") < report.index("100%")
    assert "step in" not in report and not any(verdict in report for verdict in VERDICTS)


def test_work_that_lags_behind_the_program_is_not_sparse() -> None:
    assert Profile(two_ranks()).findings.record.is_enough


def test_work_without_calls_goes_by_when_it_ran(tmp_path) -> None:
    writer = RankWriter(0, 1)
    writer.step(1, 0, 100_000)
    writer.step(2, 100_000, 220_000)
    writer.kernel("a", 150_020, 150_024, 150_000)
    for number in range(12):
        begin = 10_000 + 15_000 * number
        writer.add(event("gemm", "kernel", begin, begin + 9000, pid=0, tid=7, correlation=5000 + number))
    del writer.trace["course"]
    found = course.read_profile(written(writer.trace, tmp_path / "rank0.json"))
    [lanes] = found.lanes
    assert (lanes.steps, lanes.seconds) == (2, pytest.approx(0.174))
    assert found.findings.shares[0].computing == pytest.approx(108 / 174, abs=1e-3)
    assert NoteKind.CALLS_MISSING in {note.kind for note in found.notes}
    assert found.findings.reason is None, "what the program did is missing, too"


def test_ranks_of_different_runs_are_not_compared(tmp_path) -> None:
    first, second = two_ranks()
    second["distributedInfo"]["world_size"] = 8
    for rank, trace in enumerate((first, second)):
        del trace["course"]
        written(trace, tmp_path / f"rank{rank}.json")
    found = course.read_profile(tmp_path)
    assert not found.is_one_run and found.findings.path_problem is NoPath.SEVERAL_RUNS
    assert found.findings.slowest is None and found.findings.matching.collectives == []
    assert {own.waiting for own in found.findings.shares} == {None}
    report = text(found)
    assert report.index("different runs") < report.index("computing")
    words = ("slowest", "wait for each other", "critical path", "clock", *VERDICTS)
    assert not any(word in report for word in words)


@pytest.mark.parametrize("hours", [0, 2])
def test_files_that_are_hours_apart_are_not_compared(tmp_path, hours) -> None:
    for rank, trace in enumerate(two_ranks()):
        del trace["course"]
        trace["baseTimeNanoseconds"] = 1_767_189_312_000_000_000 + rank * hours * 3_600_000_000_000
        written(trace, tmp_path / f"rank{rank}.json")
    found = course.read_profile(tmp_path)
    assert found.is_one_run == (not hours) and (found.findings.slowest is None) == bool(hours)
    assert ("recorded hours apart" in text(found)) == bool(hours)


@pytest.mark.parametrize("share", [0.4, 0.8])
def test_a_cut_file_has_no_verdict(tmp_path, share) -> None:
    whole = RankWriter(0, 2)
    whole.step(1, 0, 10_000)
    for number in range(10):
        whole.add(event("aten::mm", "cpu_op", 1000 * number, 1000 * number + 950))
        whole.add(event("cudaLaunchKernel", "cuda_runtime", 1000 * number + 5, 1000 * number + 10, correlation=number))
    for number in range(10):
        whole.add(event("gemm", "kernel", 1000 * number, 1000 * number + 900, pid=0, tid=7, correlation=number))
    del whole.trace["course"]
    full = json.dumps(whole.trace)
    report = text(course.read_profile(written(full[: int(share * len(full))], tmp_path / "rank0.json")))
    assert "The end is missing: rank0.json." in report.split("computing")[0]
    assert "ProfilerActivity" not in report and not any(verdict in report for verdict in VERDICTS)
    assert ("computing" in report) == (share > 0.5), "without a kernel there is nothing to count"


def test_idle_and_exposed_are_both_named() -> None:
    writer = RankWriter(0, 2, error=0.0)
    for number in range(20):
        begin = 1000 * number
        writer.kernel("gemm", begin, begin + 100, begin - 20)
        writer.reduce(begin + 100, begin + 500, begin - 10)
    report = text(Profile([writer.trace]))
    assert "the rank is idle. For 41% of the time, communication is exposed" in report


def test_a_program_on_a_processor_is_not_idle() -> None:
    writer = RankWriter(0, 1, error=0.0)
    for number in range(50):
        writer.add(event("aten::mm", "cpu_op", 1000 * number, 1000 * number + 880))
    report = text(Profile([writer.trace]))
    assert "No work of a GPU is recorded" in report and "none of torch's operators runs" in report
    assert "rank is idle" not in report


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('{"traceEvents": [{"ph": "X", "name": "aten::mm", "cat": "cpu_op", "ts": 1, "dur": nan}]}', "has a list"),
        ('{"traceEvents": [{"ph": "X", "name": "aten::mm", "cat": "cpu_op", "ts": 1, "dur": null}]}', "has a list"),
        ("[1, 2, 3]", "has a list"),
        ("null", "is JSON, but not a trace"),
        ("42\n", "is JSON, but not a trace"),
        ('{"rocprofiler-sdk-tool": [{"metadata": {}}]}', "was written by rocprofv3"),
    ],
)
def test_what_is_no_trace_is_called_what_it_is(tmp_path, content, what) -> None:
    with pytest.raises(CourseError, match=f"trace.json {what}"):
        course.read_profile(written(content, tmp_path / "trace.json"))


@pytest.mark.parametrize(("key", "what"), [("rocprofiler-sdk-tool", "was written by"), ("results", "is JSON, but")])
def test_long_json_of_other_tools_is_json(tmp_path, monkeypatch, key, what) -> None:
    monkeypatch.setattr(lenient_json, "_MOST", 1 << 21)
    path = written(json.dumps({key: [{"name": "x" * 50}] * 80_000}), tmp_path / "trace.json")
    with pytest.raises(CourseError, match=f"trace.json {what}"):
        course.read_profile(path)

"""Files as torch.profiler, and those who handle its files, leave them: what is read, and what is known about it."""

import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler
from typer.testing import CliRunner

import course_utils as course
from course_utils.cli import app, main
from course_utils.errors import CourseError
from course_utils.lessons.profiling.chrome_trace import Trace, problems, read_trace, write_trace
from course_utils.lessons.profiling.foreign.lenient_json import TraceText
from course_utils.lessons.profiling.foreign.note_sentences import files_text, note_text
from course_utils.lessons.profiling.foreign.profile_notes import Note, NoteKind
from course_utils.lessons.profiling.intervals import length
from course_utils.lessons.profiling.profiled_ranks import Profile
from course_utils.words import rank_ranges
from tests.lessons.profiling.test_profiling import two_ranks

BASE = 1_767_189_312_000_000_000
"""Nanoseconds from 1970, as Kineto writes them into its files."""


def event(name: str, ts: float, dur: float, cat: str = "cpu_op", tid: int | str = 4242, **fields) -> dict:
    """A complete event as Kineto writes it."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 4242, "tid": tid, "ts": ts, "dur": dur} | fields


def torchs(rank: int | None = 0, world_size: int = 2, at: float = 10.0, step: int = 2, **head) -> Trace:
    """A healthy file of torch.profiler: one step of 50 µs, of which 20 are computing and 10 communication."""
    info = {"distributedInfo": {"backend": "gloo", "rank": rank, "world_size": world_size}} if rank is not None else {}
    events = [
        event(f"ProfilerStep#{step}", at, 50, "user_annotation"),
        event("aten::addmm", at + 2, 20, args={"Input Dims": [[64, 8]], "External id": 1}),
        event("gloo:all_reduce", at + 30, 10, "user_annotation", tid=4243),
        event("torch/nn/modules/module.py(1): forward", at, 45, "python_function"),
        {"ph": "M", "name": "process_name", "pid": 4242, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 4242, "tid": 4242, "ts": 0, "args": {"name": "thread 4242"}},
        event("PyTorch Profiler (0)", at - 1, 60, "Trace", "PyTorch Profiler", pid="Spans", args={"Op count": 0}),
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": at + 60},
    ]
    return (
        {"schemaVersion": 1, "deviceProperties": []}
        | info
        | {"baseTimeNanoseconds": BASE}
        | head
        | {"traceEvents": events}
    )


def written(trace: Trace | str, path: Path) -> Path:
    """A file with a trace, or with a text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(trace if isinstance(trace, str) else json.dumps(trace), encoding="utf-8")
    return path


def kinds(found: Profile) -> set[NoteKind]:
    return {note.kind for note in found.notes}


def note(found: Profile, kind: NoteKind) -> Note:
    [own] = [note for note in found.notes if note.kind is kind]
    return own


def shares(found: Profile) -> list[tuple[float, float, float]]:
    """Of each rank: microseconds of its steps, of computing and of communication."""
    return [
        tuple(round(1e6 * number, 1) for number in (own.seconds, length(own.computing), length(own.communication)))
        for own in found.lanes
    ]


def names(found: Profile, rank: int = 0) -> list[str]:
    return [one["name"] for one in found.rank_traces[rank]["traceEvents"] if one["ph"] == "X"]


# --- as torch writes them -------------------------------------------------------------------------------------------


def test_a_file_as_torch_writes_it(tmp_path) -> None:
    """Its own process is called "Spans", its rank is in `distributedInfo`; the other rank's file is not there."""
    found = course.read_profile(written(torchs(), tmp_path / "trace.json"))
    assert found.ranks == [0] and shares(found) == [(50, 20, 10)]
    assert kinds(found) == {NoteKind.RANKS_MISSING}
    missing = note(found, NoteKind.RANKS_MISSING)
    assert missing.ranks == (1,) and missing.number == 2
    assert found.rank_traces[0]["course"] == {"rank": 0, "shift": 0.0, "error": 0.0, "machine": ""}
    assert isinstance(found, Profile) and "aten::addmm" in names(found)


def test_this_torchs_own_files_are_read_and_healthy(tmp_path) -> None:
    def steps(**options) -> profile:
        layer, x = torch.nn.Linear(8, 8), torch.ones(4, 8)
        with profile(activities=[ProfilerActivity.CPU], **options) as profiler:
            for _ in range(4):
                layer(x).sum().backward()
                profiler.step()
        return profiler

    plan = schedule(wait=0, warmup=1, active=1, repeat=2)
    steps(with_stack=True, record_shapes=True, profile_memory=True).export_chrome_trace(str(tmp_path / "trace.json"))
    for is_packed in (False, True):
        folder = tmp_path / str(is_packed)
        steps(schedule=plan, on_trace_ready=tensorboard_trace_handler(str(folder), use_gzip=is_packed))
        found = course.read_profile(folder)
        assert found.ranks == [0] and kinds(found) == {NoteKind.SEVERAL_FILES}
        assert found.lanes[0].steps == 1 and found.lanes[0].computing
        assert "ProfilerStep#3" in names(found) and found.rank_traces[0]["course"]["machine"]
        assert all(problems(read_trace(file)) == [] for file in folder.iterdir())
    found = course.read_profile(tmp_path / "trace.json")
    assert kinds(found) == {NoteKind.NO_STEPS} and found.lanes[0].computing
    assert problems(read_trace(tmp_path / "trace.json")) == []
    assert problems(found.trace) == []


def test_what_nobody_asks_for_is_not_kept(tmp_path) -> None:
    kernel = event("gemm", 20, 5, "kernel", 7, pid=0, args={"correlation": 3, "grid": [1, 2, 3], "stream": 7})
    trace = torchs()
    trace["traceEvents"] += [kernel, {"ph": "C", "name": "GPU 0", "pid": 0, "tid": 0, "ts": 1, "args": {"x": 1}}]
    events = course.read_profile(written(trace, tmp_path / "trace.json")).rank_traces[0]["traceEvents"]
    assert {one["ph"] for one in events} == {"X", "M"}
    assert not any(one.get("cat") == "python_function" for one in events)
    [kept] = [one for one in events if one["name"] == "gemm"]
    assert kept == kernel | {"args": {"correlation": 3, "stream": 7}}
    assert "args" not in next(one for one in events if one["name"] == "aten::addmm")


def test_a_gpu_that_is_still_at_what_came_before_the_step(tmp_path) -> None:
    """Of the 99 µs of an all-reduce that was asked for before the step, none is within the step's own 50 µs."""
    events = [
        event("ProfilerStep#0", 0, 100, "user_annotation"),
        event("cudaLaunchKernel", 10, 1, "cuda_runtime", args={"correlation": 5}),
        event("ncclDevKernel_AllReduce", 1, 99, "kernel", 20, pid=0, args={"correlation": 1}),
        event("gemm", 100, 50, "kernel", 20, pid=0, args={"correlation": 5}),
    ]
    [lanes] = course.read_profile(written({"traceEvents": events}, tmp_path / "trace.json")).lanes
    assert (round(1e6 * lanes.seconds), round(1e6 * lanes.exposed_seconds)) == (50, 0)


# --- how they are packed and written --------------------------------------------------------------------------------


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("traces/rank0.json", data)
        archive.writestr("__MACOSX/._rank0.json", b"\x00\x05")
        archive.writestr("README.md", b"of a run")
    return buffer.getvalue()


def tarred(data: bytes, mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        member = tarfile.TarInfo("traces/rank0.json")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("trace.json", lambda data: data),
        ("trace.json.gz", gzip.compress),
        ("trace.json", gzip.compress),  # packed, and its name doesn't say so
        ("trace.json.gz", lambda data: data),  # the other way round
        ("trace.json.gz", lambda data: gzip.compress(gzip.compress(data))),
        ("trace.json.gz", lambda data: gzip.compress(data) + b"\x00" * 512),
        ("trace.json.gz", lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:])),
        ("trace.json.bz2", bz2.compress),
        ("trace.json.xz", lzma.compress),
        ("traces.zip", zipped),
        ("traces.zip", lambda data: zipped(gzip.compress(data))),
        ("traces.tar.gz", tarred),
        ("traces.tgz", tarred),
        ("traces.tar", lambda data: tarred(data, "w")),
        ("trace.json", lambda data: b"\xef\xbb\xbf" + data),
        ("trace.json", lambda data: data.decode().encode("utf-16")),
        ("trace.json", lambda data: data.decode().encode("utf-16-le")),
        ("trace.json", lambda data: b"\n\n " + data + b"\n"),
    ],
)
def test_a_file_is_read_however_it_is_packed(name, pack, tmp_path) -> None:
    (tmp_path / name).write_bytes(pack(json.dumps(torchs(), indent=1).encode()))
    for path in (tmp_path / name, tmp_path):
        found = course.read_profile(path)
        assert found.ranks == [0] and shares(found) == [(50, 20, 10)]
        assert kinds(found) == {NoteKind.RANKS_MISSING}


def test_paths_of_every_kind(tmp_path, monkeypatch) -> None:
    files = [written(torchs(rank), tmp_path / f"{rank}.json") for rank in (0, 1)]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in (files, map(str, files), [tmp_path], str(tmp_path), "*.json", "~", [*files, tmp_path, files[0]]):
        assert course.read_profile(given).ranks == [0, 1]


def test_a_packed_twin_counts_once(tmp_path) -> None:
    written(torchs(None), tmp_path / "trace.json")
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress((tmp_path / "trace.json").read_bytes()))
    assert kinds(course.read_profile(tmp_path)) == set()


GOOD = event("aten::mul", 5.5, 2, pid=1, tid=1)
LINE = json.dumps(GOOD)


def but(old: str, new: str) -> str:
    """The event's text with something in it changed."""
    assert old in LINE
    return LINE.replace(old, new)


def listed(*events: str) -> str:
    """A trace of events that are given as text."""
    return '{"traceEvents": [' + ", ".join(events) + "]}"


BACKSLASH = chr(92)
ODD = {
    "a list alone": f"[{LINE}]",
    "a list without an end": f"[\n{LINE},\n{LINE},\n",
    "Chrome's empty event at the end": listed(LINE, "{}"),
    "a comma at the end": listed(LINE, ""),
    "no commas": listed(f"{LINE} {LINE}").replace("]}", '] "baseTimeNanoseconds": 5}'),
    "nan before the events": listed(LINE).replace("{", '{"deviceProperties": [{"clock": nan, }], ', 1),
    "NaN as a duration": listed(but('"dur": 2', '"dur": NaN'), LINE),
    "nan as a duration": listed(but('"dur": 2', '"dur": -nan'), LINE),
    "inf, and no value": listed(but('"dur": 2', '"dur": 2, "args": {"a": inf, "b": , "c": [1,]}')),
    "a backslash": listed(LINE, but("aten::mul", f"C:{BACKSLASH}Users")),
    "times as text": listed(LINE, but("5.5", '"5.5"')),
    "control characters": listed(LINE, but("aten::mul", "a\1\nb")),
    "quotes in a name": listed(LINE, but("aten::mul", 'say "hi"'), LINE),
    "a number of 5000 digits": listed(LINE, but("5.5", "9" * 5000)),
    "brackets without end": listed(LINE, "[" * 100_000),
    "no events before the events": listed(LINE).replace("{", '{"traceEvents": null, "x": [[]], ', 1),
    "a head that cannot be read": listed(LINE).replace("{", '{"nodes": nothing, ', 1),
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_what_is_not_quite_json_is_read(text, size, tmp_path) -> None:
    events: list = []
    TraceText(iter([text[at : at + size] for at in range(0, len(text), size)]), events.append).read()
    assert GOOD in [one if isinstance(one, dict) else {} for one in events] or '"a": inf' in text
    found = course.read_profile(written(text, tmp_path / "trace.json"))
    kept = [one for one in found.rank_traces[0]["traceEvents"] if one["name"] == "aten::mul"]
    assert kept and all(one == GOOD for one in kept)
    assert str(found)


def test_what_could_not_be_read_is_counted(tmp_path) -> None:
    text = ODD["quotes in a name"]
    found = course.read_profile(written(text, tmp_path / "trace.json"))
    assert note(found, NoteKind.MENDED) == Note(NoteKind.MENDED, files=("trace.json",), number=1)
    assert note_text(note(found, NoteKind.MENDED)) == "1 event could not be read and was left out: trace.json."


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        ([{"ph": "B", "ts": 5.5}, {"ph": "E", "ts": 7.5}], [("aten::mul", 5.5, 2)]),
        ([{"ph": "B", "ts": "1"}, {"ph": "B", "ts": 2}, {"ph": "E", "ts": 3}, {"ph": "E", "ts": 9}], [(1, 8), (2, 1)]),
        ([{"ph": "E", "ts": 5}, {"ph": "B", "ts": 6}], []),
        ([{"ts": None}, {"dur": None}, {"ts": []}, {"ph": None}, {"ts": 1e300}, {"ts": True}], []),
        ([{"dur": -7}, {"dur": 1.8e16}], [(5.5, 0), (5.5, 0)]),
        ([{"pid": 2.0, "tid": None}, {"pid": "Spans", "tid": [1]}, {"pid": 2**70, "tid": -(2**70)}], [(5.5, 2)] * 3),
        ([{"name": None}, {"name": 5}, {"cat": ["a"]}, {"args": [1]}, {"args": {"rank": [0]}}], [(5.5, 2)] * 5),
        ([{"ts": 5.5 + 1e12}], []),  # eleven days after all others
    ],
)
def test_events_that_are_odd(events, kept, tmp_path) -> None:
    others = [GOOD | {"name": "aten::add"} for _ in range(3)]
    trace = {"traceEvents": [*others, *(GOOD | each for each in events)]}
    found = course.read_profile(written(trace, tmp_path / "trace.json"))
    own = [one for one in found.rank_traces[0]["traceEvents"] if one["name"] != "aten::add"]
    assert sorted((one["ts"], one["dur"]) for one in own) == [times[-2:] for times in kept]
    assert all(isinstance(one["pid"], (int, str)) and isinstance(one["tid"], (int, str)) for one in own)
    assert str(found) and found.write(tmp_path / "merged.json")


def test_the_first_versions_of_kineto_had_other_words(tmp_path) -> None:
    events = [
        event("ProfilerStep#1", 0, 100, "Operator"),
        event("aten::mm", 1, 10, "Operator"),
        event("cudaLaunchKernel", 5, 2, "Runtime", args={"correlation": 1}),
        event("gemm", 20, 30, "Kernel", 7, pid=0, args={"correlation": 1}),
    ]
    found = course.read_profile(written({"traceEvents": events}, tmp_path / "trace.json"))
    assert [one["cat"] for one in found.rank_traces[0]["traceEvents"]] == [
        *("user_annotation", "cpu_op", "cuda_runtime", "kernel")
    ]
    assert found.lanes[0].steps == 1 and shares(found)[0][1] == 30


def test_the_profiler_before_kineto_named_processes_after_what_they_do(tmp_path) -> None:
    events = [{"ph": "X", "name": "aten::mm", "ts": 1, "dur": 10, "tid": 1, "pid": "CPU functions", "args": {}}]
    events.append(events[0] | {"ts": 5, "pid": "CUDA functions"})
    found = course.read_profile(written(json.dumps(events), tmp_path / "trace.json"))
    assert [one["cat"] for one in found.rank_traces[0]["traceEvents"]] == ["cpu_op", "kernel"]
    assert shares(found)[0][1] == 10 and kinds(found) == {NoteKind.NO_STEPS}


# --- which rank a file is from --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "ranks", "kind"),
    [
        ({"b.json": 0, "a.json": 1}, [0, 1], None),  # the files say it
        ({"b.json": "1", "a.json": 0}, [0, 1], None),
        ({"b.json": 3, "a.json": 1}, [1, 3], None),
        ({"profile_3.json": None, "profile_10.json": None}, [3, 10], NoteKind.RANKS_FROM_NAMES),
        ({"p3_77.1700000000001.pt.trace.json": None, "p4_78.1700000000000.pt.trace.json": None}, [0, 1], "count"),
        ({"worker1.1700000000001.pt.trace.json": None, "worker0.1700000000000.pt.trace.json": None}, [0, 1], None),
        ({"rank0.json": None, "rank1.json": None}, [0, 1], NoteKind.RANKS_FROM_NAMES),
        ({"x_rank_10.json": None, "x_rank_2.json": None}, [2, 10], NoteKind.RANKS_FROM_NAMES),
        ({"rank-34.Jul_15_10_52_41.1074.pt.trace.json": None}, [34], NoteKind.RANKS_FROM_NAMES),
        ({"Rank=0.json": None, "RANK 1.json": None}, [0, 1], NoteKind.RANKS_FROM_NAMES),
        ({"global_rank5.json": None, "global_rank6.json": None}, [5, 6], NoteKind.RANKS_FROM_NAMES),
        ({"r0.json": None, "r1.json": None}, [0, 1], NoteKind.RANKS_FROM_NAMES),
        ({"trace_0.json": None, "trace_1.json": None}, [0, 1], NoteKind.RANKS_FROM_NAMES),
        ({"rank0/trace.json": None, "rank1/trace.json": None}, [0, 1], NoteKind.RANKS_FROM_NAMES),
        ({"rank0.json": 0, "rank1.json": 0, "rank2.json": 0}, [0, 1, 2], NoteKind.RANKS_FROM_NAMES),
        ({"rank5.json": 0, "rank6.json": 1}, [0, 1], None),  # the file knows better
        ({"10.json": None, "9.json": None}, [0, 1], NoteKind.RANKS_COUNTED),
        ({"node1_77.1700000000001.pt.trace.json": None, "node1_78.1700000000000.pt.trace.json": None}, [0, 1], "count"),
        ({"worker_48231.json": None, "worker_48232.json": None}, [0, 1], NoteKind.RANKS_COUNTED),
        ({"a.json": 1, "b.json": None}, [0, 1], NoteKind.RANKS_COUNTED),
        ({"trace_20.json": None}, [0], None),  # a single process: a step's number, perhaps
    ],
    ids=str,
)
def test_which_rank_a_file_is_from(files, ranks, kind, tmp_path) -> None:
    for name, rank in files.items():
        written(torchs(rank) if rank is not None else torchs(None), tmp_path / name)
    found = course.read_profile(tmp_path)
    kind = NoteKind.RANKS_COUNTED if kind == "count" else kind
    own = {each for each in kinds(found) if each.name.startswith("RANKS")}
    assert found.ranks == ranks and (kind is None or kind in own)
    assert kind is not None or NoteKind.RANKS_COUNTED not in own
    assert str(found)


def test_files_of_one_process_are_of_one_rank(tmp_path) -> None:
    """TensorBoard's handler writes a file each time the profiler's schedule repeats."""
    for process in (77, 78):
        for turn in (1, 2):
            name = f"node1_{process}.170000000000{turn}.pt.trace.json"
            written(torchs(None, at=1000.0 * turn, step=turn), tmp_path / name)
            written(torchs(None, at=1000.0 * turn, step=turn), tmp_path / name.replace("node1_", "named/me-"))
    assert course.read_profile(tmp_path / "named").ranks == [0, 1]
    found = course.read_profile(list(tmp_path.glob("*.json")))
    several = note(found, NoteKind.SEVERAL_FILES)
    assert found.ranks == [0, 1] and several.number == 2
    assert several.files == ("node1_77.1700000000002.pt.trace.json", "node1_78.1700000000002.pt.trace.json")
    assert found.rank_traces[0]["course"]["machine"] == "node1"


def test_of_several_files_the_same_steps_are_taken_everywhere(tmp_path) -> None:
    for rank, turns in ((0, (1, 2, 3)), (1, (1, 2))):  # rank 1 was killed before its third
        for turn in turns:
            written(torchs(rank, at=1000.0 * turn, step=turn), tmp_path / f"iteration_{turn}" / f"rank{rank}.json")
    found = course.read_profile(tmp_path)
    assert [[name for name in names(found, rank) if "Step" in name] for rank in (0, 1)] == [["ProfilerStep#2"]] * 2
    assert note(found, NoteKind.SEVERAL_FILES).files == ("iteration_2/rank0.json", "iteration_2/rank1.json")


@pytest.mark.parametrize(
    ("last", "taken"),
    [
        ([(7, 50), (8, 50)], 2),  # as many steps as before
        ([(7, 50), (8, 0.1)], 1),  # the program ended in the middle of the schedule; step 8 had only just begun
        ([(7, 0.1)], 1),
    ],
)
def test_a_last_file_with_fewer_complete_steps_is_not_taken(last, taken, tmp_path) -> None:
    for rank in (0, 1):
        for turn, steps in ((1, [(2, 50), (3, 50)]), (2, last)):
            trace = torchs(rank, at=1000.0 * turn)
            del trace["traceEvents"][0]
            for number, (step, long) in enumerate(steps):
                mark = event(f"ProfilerStep#{step}", 1000.0 * turn + 60 * number, long, "user_annotation")
                trace["traceEvents"].append(mark)
            written(trace, tmp_path / f"node1_{rank}.170000000000{turn}.pt.trace.json")
    found = course.read_profile(tmp_path)
    several = note(found, NoteKind.SEVERAL_FILES)
    assert several.files == tuple(f"node1_{rank}.170000000000{taken}.pt.trace.json" for rank in (0, 1))


def test_runs_without_ranks_that_came_one_after_the_other_are_not_ranks(tmp_path) -> None:
    for name, seconds in (("before.json", 0), ("after.json", 3600)):
        written(torchs(None, baseTimeNanoseconds=BASE + seconds * 10**9), tmp_path / name)
    found = course.read_profile(tmp_path)
    assert found.ranks == [0] and note(found, NoteKind.SEVERAL_FILES).files == ("after.json",)


def test_ranks_that_are_missing_are_named(tmp_path) -> None:
    files = [written(torchs(rank, world_size=8), tmp_path / f"{rank}.json") for rank in (1, 2, 5)]
    missing = note(course.read_profile(files), NoteKind.RANKS_MISSING)
    assert missing.ranks == (0, 3, 4, 6, 7)
    assert note_text(missing) == "The run had 8 ranks, of which ranks 0, 3, 4, 6 and 7 have no file here."


def test_files_of_different_runs_are_told_apart(tmp_path) -> None:
    for worlds in ((2, 8), (2, 2)):
        files = [written(torchs(2 * rank, worlds[rank]), tmp_path / f"{rank}.json") for rank in (0, 1)]
        found = course.read_profile(files)
        assert note(found, NoteKind.SEVERAL_RUNS).ranks == (0, 2) and NoteKind.RANKS_MISSING not in kinds(found)


# --- several ranks in one file --------------------------------------------------------------------------------------


def test_the_courses_own_merged_trace_is_taken_apart(tmp_path) -> None:
    own = Profile(two_ranks())
    found = course.read_profile(own.write(tmp_path / "merged.json.gz"))
    assert found.ranks == [0, 1] and found.notes == ()
    assert found.lanes == own.lanes
    assert [trace["course"]["error"] for trace in found.rank_traces] == [0.0, 0.0]
    again = course.read_profile(found.write(tmp_path / "again.json"))
    assert again.lanes == own.lanes


def test_the_courses_own_files_for_tensorboard_keep_their_clocks(tmp_path) -> None:
    own = Profile(two_ranks())
    own.write_for_tensorboard(tmp_path)
    found = course.read_profile(tmp_path)
    assert found.lanes == own.lanes and found.notes == ()
    assert [trace["course"]["shift"] for trace in found.rank_traces] == [0.0, -990.0]


@pytest.mark.parametrize("by", ["name", "label", "pid", "argument"])
def test_ranks_that_somebody_merged_are_taken_apart(by, tmp_path) -> None:
    events = []
    for rank, number in ((0, 100), (3, 200)):
        pid = f"rank {rank}" if by == "pid" else number
        args = {"args": {"rank": rank}} if by == "argument" else {}
        events += [event("ProfilerStep#1", rank, 50, "user_annotation", pid=pid, **args)]
        events += [event("aten::mm", rank + 1, 20 + rank, pid=pid, **args)]
        text = f"Rank_{rank} python" if by == "name" else "python"
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": text}})
        if by == "label":
            events.append({"ph": "M", "name": "process_labels", "pid": pid, "args": {"labels": f"rank: {rank}"}})
    found = course.read_profile(written({"traceEvents": events}, tmp_path / "all.json"))
    assert found.ranks == [0, 3] and [own[1] for own in shares(found)] == [20, 23]


def test_a_rank_of_which_nothing_is_shown_is_left_out(tmp_path) -> None:
    trace = torchs(None)
    trace["traceEvents"].append(event("overhead", 1, 2, "overhead", pid="rank 7"))
    trace["traceEvents"] += [one | {"pid": "rank 3"} for one in trace["traceEvents"][:3]]
    assert course.read_profile(written(trace, tmp_path / "trace.json")).ranks == [3]


# --- clocks ---------------------------------------------------------------------------------------------------------


def test_a_machines_ranks_have_one_clock(tmp_path) -> None:
    for rank in (0, 1):
        head = {"host_name": "node7", "baseTimeNanoseconds": BASE + 5000 * rank}
        written(torchs(rank, **head), tmp_path / f"{rank}.json")
    found = course.read_profile(tmp_path)
    assert found.notes == ()
    assert [trace["course"] for trace in found.rank_traces] == [
        {"rank": rank, "shift": 5.0 * rank, "error": 0.0, "machine": "node7"} for rank in (0, 1)
    ]


def test_several_machines_have_several_clocks(tmp_path) -> None:
    for rank in (0, 1):
        written(torchs(rank, host_name=f"node{rank}"), tmp_path / f"{rank}.json")
    found = course.read_profile(tmp_path)
    assert note(found, NoteKind.CLOCKS_NOT_ALIGNED).ranks == (0, 1)
    assert [trace["course"]["error"] for trace in found.rank_traces] == [None, None]
    assert kinds(course.read_profile(found.write(tmp_path / "out" / "merged.json"))) == {NoteKind.CLOCKS_NOT_ALIGNED}


def test_ranks_that_have_no_moment_in_common_begin_together(tmp_path) -> None:
    for rank, seconds in ((0, 0), (1, 0), (2, 1800)):
        head = {"host_name": f"node{rank}", "baseTimeNanoseconds": BASE + seconds * 10**9}
        written(torchs(rank, 3, **head), tmp_path / f"{rank}.json")
    found = course.read_profile(tmp_path)
    assert note(found, NoteKind.CLOCKS_UNKNOWN).ranks == (2,)
    assert {own.begin for own in found.lanes} == {0.0} and note(found, NoteKind.CLOCKS_NOT_ALIGNED).ranks == (0, 1)


def test_files_recorded_hours_apart_are_not_compared(tmp_path) -> None:
    for rank, seconds in ((0, 0), (1, 7200)):
        head = {"host_name": f"node{rank}", "baseTimeNanoseconds": BASE + seconds * 10**9}
        written(torchs(rank, 2, **head), tmp_path / f"{rank}.json")
    found = course.read_profile(tmp_path)
    assert note(found, NoteKind.HOURS_APART).ranks == (0, 1)
    assert {own.begin for own in found.lanes} == {0.0} and found.findings.slowest is None


def test_old_files_count_from_1970_themselves(tmp_path) -> None:
    for rank in (0, 1):
        trace = torchs(rank, at=1.67e15 + 10 * rank, host_name="node7")
        del trace["baseTimeNanoseconds"]
        written(trace, tmp_path / f"{rank}.json")
    found = course.read_profile(tmp_path)
    assert found.notes == () and [round(1e6 * own.begin) for own in found.lanes] == [0, 10]
    assert problems(read_trace(tmp_path / "0.json")) == []


# --- what is missing, broken, or something else ---------------------------------------------------------------------


def test_no_marks_of_steps(tmp_path) -> None:
    trace = torchs(None)
    del trace["traceEvents"][0]
    found = course.read_profile(written(trace, tmp_path / "trace.json"))
    assert kinds(found) == {NoteKind.NO_STEPS} and shares(found) == [(38, 20, 10)]


def test_a_file_that_was_cut(tmp_path) -> None:
    text = json.dumps(torchs(None) | {"traceEvents": torchs()["traceEvents"] + [GOOD] * 1000})
    for name, data in (("t.json", text[:-50].encode()), ("t.json.gz", gzip.compress(text.encode())[:-30])):
        (tmp_path / name).write_bytes(data)
        found = course.read_profile(tmp_path / name)
        assert note(found, NoteKind.CUT_SHORT).files == (name,) and shares(found)[0][2] == 10


CUT = '{"schemaVersion": 1, "deviceProperties": ['


@pytest.mark.parametrize(
    ("name", "data", "pattern"),
    [
        ("trace.json", b"", "is empty"),
        ("trace.json", b" \n", "is empty"),
        ("trace.json", b"\x80\x05\x95\x10\x00", "is a pickle"),
        ("model.pt", zipped(b"{}").replace(b"traces/rank0.json", b"archive///data.pkl"), "is a checkpoint"),
        ("x.sqlite", b"SQLite format 3\x00 ", "SQLite"),
        ("x.nsys-rep", b"abc\x00\x01", "Nsight"),
        ("x.pftrace", b"\n\x10\x08\x01", "Perfetto"),
        ("trace", b"\n\x10\x08\x01\x02\x03", "Perfetto"),
        ("trace.json", b"<!DOCTYPE html><html>", "web page"),
        ("trace.json", b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"),
        ("trace.json.zst", b"\x28\xb5\x2f\xfd\x00", "zstd"),
        ("x.png", b"\x89PNG\r\n", "picture"),
        ("trace.json", bytes(range(256)), "binary"),
        ("train.log", b"epoch 1 loss 2.3\n", "is text, but not JSON"),
        ("rank0.log", b"[rank0] epoch 1\n[rank0] epoch 2\n", "is text, but not JSON"),
        ("rank0.log", b"[2026-01-31 10:00:00] INFO [epoch 1]\n", "is text, but not JSON"),
        ("notes.json", b'{"a": what, "b": 1} and more of this text', "is text, but not JSON"),
        ("trace.json", b'[{"ph": "X", "na', "ends before its first event"),
        ("trace.json", b'{"traceEvents": [{"ph": "X", "na', "ends before its first event"),
        ("trace.json.gz", gzip.compress(b"x" * 9999)[:12], "cannot be unpacked"),
        ("trace.json.gz", b"\x1f\x8b\x08nothing", "cannot be unpacked"),
        ("trace.zip", b"PK\x03\x04nothing", "checkpoint .*or another archive"),
        ("trace.json", CUT.encode(), "ends before its first event"),
        ("trace.json", b'{"traceEvents": []}', "has no events"),
        ("trace.json", b"[]", "has no events"),
        ("trace.json", b"[1, 2, [3]]", "has a list, but nothing in it"),
        ("trace.json", b'{"a": 1}', "is JSON, but not a trace"),
        ("et.json", b'{"schema": "1.1", "nodes": [{"id": 1}], "pid": 3}', "execution trace"),
        ("dump.json", b'{"version": "2.9", "pg_config": {}, "entries": []}', "Flight Recorder"),
        ("memory.json", b"[[1, 0, [2, 3], 4]]", "memory alone"),
        ("page.ipynb", b'{"cells": [], "nbformat": 4}', "notebook"),
        ("trace.json", b'[{"ph":"X","cat":"v8","name":"V8","pid":1,"tid":1,"ts":1,"dur":2}]', "browser"),
        ("trace.json", b'[{"ph":"X","cat":"FEE","name":"f","pid":1,"tid":1,"ts":1,"dur":2}]', "VizTracer"),
        (
            "trace.json",
            b'{"metadata": {"highres-ticks": true}, "traceEvents": [{"ph":"X","name":"f","pid":1,"ts":1,"dur":2}]}',
            "TensorFlow or JAX",
        ),
        ("trace.json", b'[{"ph":"X","name":"f","pid":1,"tid":1,"ts":1,"dur":2}]', "none of its events"),
    ],
    ids=lambda value: "data" if isinstance(value, bytes) else None,  # packed data holds the time at which it was packed
)
def test_what_is_no_trace_of_torch_is_called_what_it_is(name, data, pattern, tmp_path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(CourseError, match=pattern) as caught:
        course.read_profile(tmp_path / name)
    text = str(caught.value)
    assert text.startswith(f"{name} ") and "\n" not in text and len(text) < 250
    written(torchs(), tmp_path / "rank0.json")
    found = course.read_profile([tmp_path / name, tmp_path / "rank0.json"])
    assert note(found, NoteKind.LEFT_OUT).files == (name,)
    assert str(found)


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("rank1.json", r"There is no file .*rank1.json. Did you mean 'rank0.json'\?"),
        ("nothing/at/all.json", "There is no file"),
        ("x" * 5000, "There is no file"),
        ("a\x00b", "There is no file"),
        ("empty", "has no files that are named like traces"),
        ("/dev/null", "neither a file nor a folder"),
    ],
)
def test_paths_that_lead_to_no_file(path, pattern, tmp_path) -> None:
    written(torchs(), tmp_path / "rank0.json")
    (tmp_path / "empty" / ".hidden").mkdir(parents=True)
    written("no trace", tmp_path / "empty" / "readme.txt")
    with pytest.raises(CourseError, match=pattern):
        course.read_profile(tmp_path / path)


@pytest.mark.parametrize("nothing", [[], 5, None, [None], {"traceEvents": []}])
def test_what_is_no_path(nothing) -> None:
    with pytest.raises(CourseError, match="read_profile|There is no file"):
        course.read_profile(nothing)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_that_one_may_not_read(tmp_path) -> None:
    file = written(torchs(), tmp_path / "folder" / "trace.json")
    file.chmod(0)
    with pytest.raises(CourseError, match="cannot be opened"):
        course.read_profile(file)
    file.parent.chmod(0)
    with pytest.raises(CourseError, match="may not read"):
        course.read_profile(file.parent)
    file.parent.chmod(0o700)


def test_a_file_with_a_password_is_locked(tmp_path) -> None:
    data = bytearray(zipped(b"{}"))
    for at in [match.start() for match in re.finditer(b"PK\x03\x04|PK\x01\x02", bytes(data))]:
        data[at + (6 if data[at + 2] == 3 else 8)] |= 1
    (tmp_path / "t.zip").write_bytes(data)
    with pytest.raises(CourseError, match="password"):
        course.read_profile(tmp_path / "t.zip")


def mangled(data: bytes, draw: random.Random) -> bytes:
    """A file that was cut, that has lost something, or in which something was changed or put in between."""
    at = draw.randrange(len(data))
    piece = draw.choice(
        [b"", b'"', b"{", b"}", b"[", b"]", b",", b"\\", b"null", b"-nan", b"1e999", b"\x00", b"\xff", b'"ts": [],']
        + [b'"pid": [1],', b'"name": null,', b'"args": 7,', b'"ph": "B",', bytes([draw.randrange(256)])]
    )
    return data[:at] + piece + data[at + draw.choice([0, 1, 5, 100, len(data)]) :]


def test_a_file_that_was_mangled_gives_a_profile_or_an_error_of_one_line(seed, tmp_path) -> None:
    draw, file = random.Random(seed), tmp_path / "trace.json"
    plain = json.dumps(torchs(), indent=1).encode()
    for _ in range(150):
        data = draw.choice([plain, plain, gzip.compress(plain), json.dumps(Profile(two_ranks()).trace).encode()])
        for _ in range(draw.choice([1, 1, 2, 8])):
            data = mangled(data, draw) or b"\n"
        file.write_bytes(data)
        try:
            found = course.read_profile(file)
        except CourseError as error:
            assert "\n" not in str(error), data
        else:
            assert str(found) and problems(found.trace) == [] or found.trace["traceEvents"], data


def test_every_beginning_of_a_file_gives_a_profile_or_an_error(tmp_path) -> None:
    text, file = json.dumps(torchs()), tmp_path / "trace.json"
    results = []
    for end in range(0, len(text), 3):
        file.write_text(text[:end])
        try:
            results.append(kinds(course.read_profile(file)))
        except CourseError:
            results.append(set())
    assert results[-1] >= {NoteKind.CUT_SHORT} and sum(map(bool, results)) > len(results) / 2


# --- sentences ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "text"),
    [((3,), "rank 3"), ((1, 0), "ranks 0 and 1"), ((0, 2, 3, 4, 7), "ranks 0, 2 to 4 and 7")],
)
def test_ranks_in_a_few_words(ranks, text) -> None:
    assert rank_ranges(tuple(ranks)) == text


def test_few_names_of_many_files() -> None:
    assert files_text(("a", "b", "c", "d")) == "a, b, c and d"
    assert files_text(tuple(map(str, range(9)))) == "0, 1, 2 and 6 more"


@pytest.mark.parametrize("kind", NoteKind)
def test_every_note_is_a_sentence(kind) -> None:
    for ranks, files in (((1,), ("a.json",)), ((1, 2), ("a.json", "b.json"))):
        text = note_text(Note(kind, ranks, files, 8))
        assert text[0].isupper() | text[0].isdigit() and text.endswith(".") and "\n" not in text


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_prints_the_report_and_writes_the_timeline(tmp_path) -> None:
    for rank in (0, 1):
        written(torchs(rank), tmp_path / "in" / f"{rank}.json")
    out = tmp_path / "new" / "merged.json.gz"
    done = CliRunner().invoke(app, ["profile", str(tmp_path / "in"), "--out", str(out)])
    assert done.exit_code == 0 and done.output.startswith(str(course.read_profile(tmp_path / "in")))
    assert problems(read_trace(out)) == [] and str(out) in done.output


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (["nothing.json"], "There is no file nothing.json"),
        (["trace.json", "--out", "trace.json/merged.json"], "could not be written"),
    ],
)
def test_the_command_says_in_a_line_what_is_wrong(arguments, pattern, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    written(torchs(), tmp_path / "trace.json")
    monkeypatch.setattr(sys, "argv", ["course", "profile", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    lines = capsys.readouterr().err.splitlines()
    assert caught.value.code == 2 and len(lines) == 1 and pattern in lines[0]


def test_a_trace_that_was_written_is_read_by_the_door(tmp_path) -> None:
    assert course.read_profile(write_trace(torchs(), tmp_path / "a" / "trace.json.gz")).ranks == [0]

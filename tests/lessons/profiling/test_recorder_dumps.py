"""Dumps of torch's Flight Recorder from elsewhere: recorded here over gloo, or made by hand as torch makes NCCL's."""

import gc
import json
import os
import pickle
import random
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import torch.distributed as dist
from torch.distributed.flight_recorder.components.builder import build_db
from torch.distributed.flight_recorder.components.config_manager import JobConfig
from torch.distributed.flight_recorder.components.loader import read_dir

import course_utils as course
from course_utils.cli import app
from course_utils.errors import CourseError
from course_utils.lessons.profiling.dumps import flight_recorder
from course_utils.lessons.profiling.dumps.recorder_comparison import (
    DumpComparison,
    Feature,
    GroupKind,
    GroupState,
    compare_dumps,
    recorded_groups,
)
from course_utils.lessons.profiling.dumps.recorder_dumps import (
    Dumps,
    NoDump,
    dump_of,
    plain_data,
    program_line,
    read_dumps,
)
from course_utils.lessons.profiling.dumps.recorder_sentences import (
    call_text,
    dumps_report,
    lateness,
    line_text,
    ranks_text,
)
from course_utils.lessons.profiling.dumps.recorder_waits import example_groups, first_ranks

DEFAULT = ("0", "default_pg")
MILLION = 1_000_000


@pytest.fixture(scope="module")
def ranks():
    started = course.start(4)
    yield started
    started.stop()


# Recorded here: the same work over gloo, which hangs, on four ranks.


def grid() -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    """The row and the column of this rank in a grid of two by two."""
    rank = dist.get_rank()
    rows = [dist.new_group(members, group_desc="row") for members in ([0, 1], [2, 3])]
    columns = [dist.new_group(members, group_desc="column") for members in ([0, 2], [1, 3])]
    return rows[rank // 2], columns[rank % 2]


def leaves_one_out_of_its_column() -> None:
    row, column = grid()
    for step in range(2):
        dist.all_reduce(torch.ones(4), group=row)
        if dist.get_rank() != 3 or step == 0:
            dist.all_reduce(torch.ones(7), group=column)
    dist.barrier()


def never_uses_its_column() -> None:
    row, column = grid()
    dist.all_reduce(torch.ones(4), group=row)
    if dist.get_rank() != 3:
        dist.all_reduce(torch.ones(7), group=column)
    dist.barrier()


def has_another_size() -> None:
    dist.all_reduce(torch.ones(3))
    dist.all_reduce(torch.ones(5 if dist.get_rank() == 1 else 4))


def has_another_type() -> None:
    dist.all_reduce(torch.ones(4, dtype=torch.int64 if dist.get_rank() == 1 else torch.float64))


def calls_another_operation() -> None:
    dist.all_reduce(torch.ones(1000))
    if dist.get_rank() != 2:
        dist.all_reduce(torch.ones(5, 3))
    dist.barrier()


def waits_for_a_message() -> None:
    dist.all_reduce(torch.ones(3))
    if dist.get_rank() == 1:
        dist.recv(torch.ones(3), 0)
    dist.barrier()


def uses_groups_in_different_orders() -> None:
    row, column = grid()
    for group in (column, row) if dist.get_rank() in (1, 2) else (row, column):
        dist.all_reduce(torch.ones(2), group=group)


def ends_well() -> None:
    for group in (*grid(), None):
        dist.all_gather([torch.ones(2) for _ in range(dist.get_world_size(group))], torch.ones(2), group=group)


def recorded(ranks, work, folder: Path) -> DumpComparison:
    """What is found in the dumps of this work; its files are in the folder, as torch writes them."""
    _, dumps = flight_recorder.stuck(ranks, work)
    write(folder, dict(enumerate(dumps)))
    return compare_dumps(read_dumps(folder))


def write(folder: Path, dumps: dict[int, object], prefix: str = "nccl_trace_rank_") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for rank, dump in dumps.items():
        (folder / f"{prefix}{rank}").write_bytes(pickle.dumps(dump, protocol=2))
    return folder


def state_of(found: DumpComparison, name: str) -> GroupState:
    (state,) = [state for state in found.groups if name in (state.group.name, state.group.description)]
    return state


class TorchFinds(NamedTuple):
    """Who is odd or missing in the first collective that is not the same on all ranks, according to torchfrtrace."""

    odd: set[int]
    missing: set[int]


def torch_finds(folder: Path) -> TorchFinds:
    """What torchfrtrace finds, in dumps to which the names and ranks of all groups are added."""
    files = sorted(folder.glob("nccl_trace_rank_*"))
    named = flight_recorder.with_groups([pickle.loads(file.read_bytes()) for file in files])
    beside = folder.with_name(f"{folder.name}_named")
    for rank, each in enumerate(named):
        flight_recorder.write_dump(each, beside, rank)
    arguments = JobConfig().parse_args([str(beside), "--prefix", flight_recorder.PREFIX])
    try:
        database = build_db(*read_dir(arguments)[:1], arguments, str(named[0]["version"]))
    finally:
        gc.enable()  # which read_dir has switched off
    for collective in database.collectives:
        if collective.mismatch_collectives or collective.missing_ranks:
            return TorchFinds(set(collective.mismatch_collectives or ()), set(collective.missing_ranks or ()))
    return TorchFinds(set(), set())


def report_of(folder: Path) -> str:
    """The report, in one line."""
    return " ".join((dumps_report(folder) or "").split())


@pytest.mark.parametrize("work", [leaves_one_out_of_its_column, never_uses_its_column])
def test_a_rank_leaves_out_a_collective_of_its_column(ranks, tmp_path, work) -> None:
    found = recorded(ranks, work, tmp_path)
    column, everyone = state_of(found, "4"), state_of(found, "0")
    assert column.group.members == (1, 3) and not column.group.is_known
    assert (column.kind, column.absent, column.waiting) == (GroupKind.BEHIND, (3,), (1,))
    assert column.sequence == (2 if work is leaves_one_out_of_its_column else 1)
    assert (everyone.kind, everyone.absent, everyone.waiting) == (GroupKind.BEHIND, (1,), (0, 2, 3))
    assert found.is_circle and set(map(id, found.causes)) == {id(column), id(everyone)}
    assert {state_of(found, name).kind for name in "123"} == {GroupKind.OVER}
    first = first_ranks(found)
    assert (first.ranks, first.circle, first.waiting) == ({1, 3}, {1, 3}, {0, 2})
    assert column.calls[1][-1].line.function == work.__name__
    assert torch_finds(tmp_path).missing == {1}, "the first one that torch finds; it stops comparing there"
    report = report_of(tmp_path)
    assert "look at ranks 1 and 3 first, because they wait for each other, and ranks 0 and 2 wait for them" in report
    assert "rank 3 hasn't called collective" in report and "These groups wait for each other." in report


@pytest.mark.parametrize(
    ("work", "odd", "feature", "sequence"),
    [
        (has_another_size, 1, Feature.SIZE, 2),
        (has_another_type, 1, Feature.TYPE, 1),
        (calls_another_operation, 2, Feature.OPERATION, 2),
    ],
)
def test_the_odd_rank_is_the_one_that_torch_calls_the_culprit(ranks, tmp_path, work, odd, feature, sequence) -> None:
    found = recorded(ranks, work, tmp_path)
    state = state_of(found, "default_pg")
    assert (state.kind, state.feature, state.sequence) == (GroupKind.DIFFERENT, feature, sequence)
    assert state.odd == (odd,) and len(state.parties[0]) == 3
    assert first_ranks(found).ranks == {odd} and len(first_ranks(found).waiting) == 3
    assert torch_finds(tmp_path).odd == {odd}


def test_a_message_over_gloo_is_not_recorded_but_its_rank_is_behind(ranks, tmp_path) -> None:
    state = state_of(recorded(ranks, waits_for_a_message, tmp_path), "0")
    assert (state.kind, state.absent, state.agreed, state.sequence) == (GroupKind.BEHIND, (1,), (1, 1), 2)
    assert state.last[1].line.function == "waits_for_a_message"
    assert torch_finds(tmp_path).missing == {1}
    assert "such as data or a message" in report_of(tmp_path)


def test_groups_that_only_one_rank_has_used_are_named_without_guessing(ranks, tmp_path) -> None:
    found = recorded(ranks, uses_groups_in_different_orders, tmp_path)
    assert {state.kind for state in found.groups} == {GroupKind.ALONE} and len(found.groups) == 4
    row = state_of(found, "1")
    assert row.group.members == (0,) and row.group.candidates == (1, 2)
    assert found.is_circle and not first_ranks(found).is_certain
    assert "Torch hasn't recorded who else is in this group; ranks 1 and 2 may be." in report_of(tmp_path)


def test_nothing_waits_after_a_run_that_ended(ranks, tmp_path) -> None:
    found = recorded(ranks, ends_well, tmp_path)
    assert [state.kind for state in found.groups] == [GroupKind.OVER] * 5
    assert {state.group.members for state in found.groups} == {(0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3)}
    assert not found.causes and "No collective waits." in report_of(tmp_path)


def test_of_a_rank_that_died_there_is_no_dump(ranks, tmp_path) -> None:
    recorded(ranks, calls_another_operation, tmp_path)
    (tmp_path / "nccl_trace_rank_2").unlink()
    found = compare_dumps(read_dumps(tmp_path))
    state = state_of(found, "0")
    assert found.missing == state.missing == (2,)
    assert (state.kind, state.agreed, state.sequence) == (GroupKind.UNKNOWN, (1, 1), 2)
    first = first_ranks(found)
    assert (first.ranks, first.missing, first.waiting) == (set(), {2}, {0, 1, 3})
    report = report_of(tmp_path)
    assert "look at rank 2 first. There is no dump of it, and ranks 0, 1 and 3 may be waiting for it." in report
    assert "There is no dump of rank 2." in report and "look into the log of rank 2" in report


def test_the_json_that_torch_makes_of_it_reads_the_same(ranks, tmp_path) -> None:
    def as_json(comm) -> bytes:
        from torch._C._distributed_c10d import _dump_fr_trace_json

        return _dump_fr_trace_json()

    ranks.run(ends_well, backend="gloo")
    for rank, content in enumerate(ranks.run(as_json).results):
        (tmp_path / f"rank_{rank}.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    found = compare_dumps(read_dumps(tmp_path))
    assert {state.group.name for state in found.groups} >= {"0", "1", "2"}
    assert found.last[0].created > 1e9 and found.last[0].line is None


# Made by hand, as torch writes them for NCCL.


def entry(number: int, operation: str = "all_reduce", size: int = 10, **changes) -> dict:
    """A collective of the default group that has ended, with this number."""
    message = operation.startswith(("send", "recv"))
    return {
        "record_id": number - 1,
        "pg_id": 0,
        "process_group": DEFAULT,
        "collective_seq_id": 0 if message else number,
        "p2p_seq_id": number if message else 0,
        "op_id": number,
        "profiling_name": f"nccl:{operation}",
        "time_created_ns": 1_700_000_000_000 * MILLION + number * MILLION,
        "input_sizes": [[size]],
        "output_sizes": [[size]],
        "input_dtypes": ["Float"],
        "output_dtypes": ["Float"],
        "state": "completed",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": True,
        "timeout_ms": 600_000,
        "is_p2p": message,
        "frames": [
            {"name": operation, "filename": "/env/lib/python3.12/site-packages/torch/distributed/x.py", "line": 1},
            {"name": "sync", "filename": "/env/lib/python3.12/site-packages/lightning/y.py", "line": 2},
            {"name": "train", "filename": "/home/me/train.py", "line": 100 + number},
        ],
    } | changes


def waiting(number: int, operation: str = "all_reduce", size: int = 10, **changes) -> dict:
    return entry(number, operation, size, **({"state": "started", "retired": False} | changes))


def dump(*entries: dict, groups: dict[tuple[str, str], list[int]] | None = None, version: str = "2.7") -> dict:
    groups = groups or {DEFAULT: [0, 1, 2, 3]}
    config = {name: {"name": name, "desc": desc, "ranks": str(members)} for (name, desc), members in groups.items()}
    return {
        "version": version,
        "nccl_version": "2.26.2",
        "pg_config": config,
        "pg_status": {},
        "entries": list(entries),
    }


def compared(dumps: dict[int, dict]) -> DumpComparison:
    return compare_dumps(Dumps({rank: dump_of(each, rank) for rank, each in dumps.items()}))


def only(found: DumpComparison) -> GroupState:
    (state,) = found.groups
    return state


def test_all_wait_in_the_same_collective(tmp_path) -> None:
    late = 1_700_000_000_000 * MILLION + 12_002 * MILLION
    dumps = {rank: dump(entry(1), waiting(2)) for rank in range(4)}
    dumps[3] = dump(entry(1), waiting(2, time_created_ns=late, state="scheduled"))
    state = only(compared(dumps))
    assert (state.kind, state.agreed, state.sequence) == (GroupKind.TOGETHER, (1, 1), 2)
    assert lateness(state) == (3, pytest.approx(12.0))
    report = report_of(write(tmp_path, dumps))
    assert "rank 3 came last, 12 s after the first" in report
    assert "on the GPUs of rank 3 it has not begun, on those of ranks 0 to 2 it has" in report
    assert "look outside of your program" in report
    assert "ranks 0 to 3: all_reduce of 10 float32, line 102 of train.py" in report


def test_the_rank_with_the_lowest_number_is_behind(tmp_path) -> None:
    dumps = {rank: dump(entry(1), entry(2), waiting(3)) for rank in (0, 2, 3)} | {1: dump(entry(1), entry(2))}
    state = only(compared(dumps))
    assert (state.kind, state.agreed, state.sequence, state.absent) == (GroupKind.BEHIND, (1, 2), 3, (1,))
    assert torch_finds(write(tmp_path, dumps)).missing == {1}
    assert "find out what rank 1 does after line 102 of train.py" in report_of(tmp_path)


def test_ranks_may_run_ahead_of_the_collective_that_hangs() -> None:
    """Over NCCL a program goes on while its collectives wait: the first that hangs counts, not how far each has got."""
    ahead = {rank: dump(entry(1), waiting(2), *(waiting(3 + n) for n in range(rank))) for rank in range(4)}
    state = only(compared(ahead))
    assert (state.kind, state.sequence) == (GroupKind.TOGETHER, 2)


@pytest.mark.parametrize("operation", ["all_reduce", "broadcast", "_all_gather_base", "reduce_scatter"])
def test_sizes_that_have_to_be_equal(tmp_path, operation: str) -> None:
    dumps = {rank: dump(waiting(1, operation, 12 if rank == 2 else 8)) for rank in range(4)}
    state = only(compared(dumps))
    assert (state.kind, state.feature, state.odd) == (GroupKind.DIFFERENT, Feature.SIZE, (2,))
    assert 2 in torch_finds(write(tmp_path, dumps)).odd
    assert "a shorter last batch" in report_of(tmp_path)


def test_sizes_that_may_differ() -> None:
    shapes = {rank: dump(entry(1, input_sizes=[[5, 2]] if rank else [[10]])) for rank in range(4)}
    root = {"input_sizes": [[3]] * 4, "input_dtypes": ["Float"] * 4, "output_sizes": [[3]]}
    rest = {"input_sizes": [], "input_dtypes": [], "output_sizes": [[3]]}
    scatter = {rank: dump(entry(1, "scatter", **(rest if rank else root))) for rank in range(4)}
    parts = {
        rank: dump(entry(1, "all_gather", input_sizes=[[rank + 1]], output_sizes=[[1], [2], [3], [4]]))
        for rank in range(4)
    }
    for dumps in (shapes, scatter, parts):
        assert only(compared(dumps)).kind is GroupKind.OVER


def test_an_all_to_all_has_to_add_up() -> None:
    right = {
        rank: dump(entry(1, "all_to_all", input_sizes=[[10]], output_sizes=[[4 * (rank + 1)]])) for rank in range(4)
    }
    assert only(compared(right)).kind is GroupKind.OVER
    wrong = right | {3: dump(waiting(1, "all_to_all", input_sizes=[[11]], output_sizes=[[16]]))}
    assert only(compared(wrong)).kind is GroupKind.DIFFERENT


TENSOR, DATA = {0: ("1", "tensor"), 1: ("2", "tensor")}, {0: ("3", "data"), 1: ("4", "data")}
"""Two tensor-parallel groups, [0, 1] and [2, 3], and two data-parallel ones, [0, 2] and [1, 3]."""


def grid_dump(rank: int, *entries: dict) -> dict:
    tensor, data = rank // 2, rank % 2
    groups = {
        DEFAULT: [0, 1, 2, 3],
        TENSOR[tensor]: [2 * tensor, 2 * tensor + 1],
        DATA[data]: [data, data + 2],
    }
    numbered = [each | {"record_id": number} for number, each in enumerate(entries)]
    return dump(*numbered, groups=groups)


def test_groups_that_wait_for_a_rank_which_waits_elsewhere_are_consequences(tmp_path) -> None:
    """Rank 3 leaves out tensor-parallel collective 2 and computes. Rank 2 waits for it, and rank 0 for rank 2."""
    dumps = {}
    for rank in range(4):
        tensor, data = {"process_group": TENSOR[rank // 2]}, {"process_group": DATA[rank % 2]}
        own = [entry(1, **tensor), entry(1, "all_reduce", **data)]
        dumps[rank] = grid_dump(
            rank,
            *own,
            *{
                0: [entry(2, **tensor), waiting(2, "all_reduce", **data)],
                1: [entry(2, **tensor)],
                2: [waiting(2, **tensor)],
                3: [],
            }[rank],
        )
    found = compared(dumps)
    (cause,) = found.causes
    assert (cause.group.name, cause.kind, cause.absent, cause.waiting) == ("2", GroupKind.BEHIND, (3,), (2,))
    assert [state.group.name for state in found.followers] == ["3"]
    report = report_of(write(tmp_path, dumps))
    assert "In group 2 (tensor) of ranks 2 and 3, the ranks agree in collective 1, but rank 3 hasn't called" in report
    assert "waits for rank 2, which is waiting in group 2 (tensor) of ranks 2 and 3. So this follows" in report
    assert torch_finds(tmp_path).missing in ({2}, {3})


def test_groups_of_one_name_are_told_apart_by_their_ranks() -> None:
    """After `split_group`, both halves of the ranks call their group "1"."""
    name = ("1", "half")
    dumps = {
        rank: dump(
            waiting(1, process_group=name, size=4 + rank // 2), groups={name: [rank // 2 * 2, rank // 2 * 2 + 1]}
        )
        for rank in range(4)
    }
    found = compared(dumps)
    assert [(state.group.members, state.kind) for state in found.groups] == [
        ((0, 1), GroupKind.TOGETHER),
        ((2, 3), GroupKind.TOGETHER),
    ]


def test_without_the_dump_of_a_rank_nobody_knows_whether_it_came(tmp_path) -> None:
    dumps = {rank: dump(entry(1), waiting(2)) for rank in range(3)}
    state = only(compared(dumps))
    assert (state.kind, state.missing, state.sequence) == (GroupKind.UNKNOWN, (3,), 2)
    report = report_of(write(tmp_path, dumps))
    assert "There is no dump of rank 3." in report and "look into the log of rank 3" in report
    with pytest.raises(AssertionError, match="Missing dump files"):
        torch_finds(tmp_path)


def test_a_single_dump_says_what_its_rank_waits_in(tmp_path) -> None:
    report = report_of(write(tmp_path, {5: dump(entry(1), waiting(2), groups={DEFAULT: list(range(64))})}))
    assert "rank 5 waits, and which of the 63 ranks without a dump is to blame can't be known" in report
    assert "dump of rank 5. There is no dump of ranks 0 to 4 and 6 to 63." in report
    assert "rank 5: all_reduce of 10 float32, line 102 of train.py" in report


def test_calls_that_fell_out_of_the_buffer_are_not_missed() -> None:
    """Each rank has kept its last three calls; rank 1 is one behind, so its list begins earlier."""
    calls = [entry(number) for number in range(1, 9)] + [waiting(9)]
    dumps = {rank: dump(*calls[-3:]) for rank in (0, 2, 3)} | {1: dump(*calls[-4:-1])}
    state = only(compared(dumps))
    assert (state.kind, state.agreed, state.sequence, state.absent) == (GroupKind.BEHIND, (7, 8), 9, (1,))


def test_dumps_of_active_calls_alone() -> None:
    """With TORCH_INCLUDE_ONLY_ACTIVE, calls that have ended are left out, so a rank that is behind has none."""
    dumps = {rank: dump(waiting(9)) for rank in (0, 2, 3)} | {1: dump()}
    state = only(compared(dumps))
    assert (state.kind, state.absent, state.last.get(1)) == (GroupKind.BEHIND, (1,), None)


def test_a_receive_waits_for_a_send_that_is_not_called(tmp_path) -> None:
    groups = {("7", "pipeline"): [4, 6]}
    first = dump(entry(1, "send 0->1", process_group=("7", "pipeline")), groups=groups)
    second = dump(
        entry(1, "recv 1<-0", process_group=("7", "pipeline")),
        waiting(2, "recv 1<-0", process_group=("7", "pipeline")),
        groups=groups,
    )
    (lone,) = compared({4: first, 6: second}).messages
    assert (lone.call.rank, lone.peer, lone.call.operation, lone.other, lone.has_dump) == (6, 4, "recv", None, True)
    report = report_of(write(tmp_path, {4: first, 6: second}))
    assert "Rank 6 waits in recv of 10 float32, line 102 of train.py, from rank 4" in report
    assert "but rank 4 has not called the matching send" in report
    assert "Its last call is send of 10 float32, line 101 of train.py, in group 7." in report
    (lone,) = compared({6: second}).messages
    assert not lone.has_dump


def test_a_message_has_another_size() -> None:
    dumps = {0: dump(waiting(1, "send 0->1", 10)), 1: dump(waiting(1, "recv 1<-0", 12))}
    (lone,) = compared(dumps).messages
    assert (lone.call.rank, lone.other.rank) == (1, 0) and not compared(dumps).groups[0].waiting


def test_two_ranks_that_both_receive_first() -> None:
    dumps = {0: dump(waiting(1, "recv 0<-1")), 1: dump(waiting(1, "recv 1<-0"))}
    assert [(lone.call.rank, lone.peer) for lone in compared(dumps).messages] == [(1, 0), (0, 1)]


def coalesced(number: int, *messages: str, over: bool) -> list[dict]:
    """`batch_isend_irecv` over NCCL: torch notes how it ends in the last entry alone."""
    calls = [
        entry(number, message, state="scheduled", retired=False, p2p_seq_id=number, is_p2p=True) for message in messages
    ]
    end = (entry if over else waiting)(
        number, "coalesced", p2p_seq_id=number, is_p2p=True, input_sizes=[], output_sizes=[]
    )
    return [*calls, end]


def test_coalesced_messages_have_the_state_of_their_end() -> None:
    well = {
        0: dump(*coalesced(1, "send 0->1", "recv 0<-1", over=True)),
        1: dump(*coalesced(1, "send 1->0", "recv 1<-0", over=True)),
    }
    assert not compared(well).messages
    stuck = well | {1: dump(*coalesced(1, "recv 1<-0", over=True))}
    stuck[0] = dump(*coalesced(1, "send 0->1", "recv 0<-1", over=False))
    (lone,) = compared(stuck).messages
    assert (lone.call.rank, lone.peer, lone.call.operation) == (0, 1, "recv")


def test_coalesced_collectives_are_compared_together() -> None:
    def three(sizes: list[int]) -> dict:
        return dump(*(entry(1, "allreduce_coalesced", size) for size in sizes))

    assert only(compared({rank: three([1, 2, 3]) for rank in range(4)})).kind is GroupKind.OVER
    odd = only(compared({rank: three([1, 2] if rank == 1 else [1, 2, 3]) for rank in range(4)}))
    assert (odd.kind, odd.odd) == (GroupKind.DIFFERENT, (1,))
    assert call_text(odd.calls[0]).startswith("allreduce_coalesced of 1 float32 and 2 more, coalesced")


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.3", "2.5", "2.10"])
def test_older_versions_lack_keys(version: str) -> None:
    lacking = {
        "2.0": ("collective_seq_id", "p2p_seq_id", "process_group", "is_p2p", "input_dtypes", "output_dtypes"),
        "2.1": ("is_p2p", "input_dtypes", "output_dtypes", "frames"),
        "2.3": ("input_dtypes", "output_dtypes", "timeout_ms"),
    }.get(version, ())

    def aged(each: dict) -> dict:
        kept = {key: value for key, value in each.items() if key not in lacking}
        return kept | ({"seq_id": each["collective_seq_id"]} if version == "2.0" else {})

    dumps = {rank: dump(aged(entry(1)), aged(waiting(2))) | {"version": version} for rank in (0, 2, 3)}
    dumps[1] = dump(aged(entry(1))) | {"version": version}
    state = only(compared(dumps))
    assert (state.kind, state.absent, state.sequence) == (GroupKind.BEHIND, (1,), 2)


def test_json_has_lists_for_tuples_and_no_stacks(tmp_path) -> None:
    for rank in range(4):
        calls = [entry(1), waiting(2)][: 1 if rank == 1 else 2]
        for each in calls:
            del each["frames"]
        (tmp_path / f"dump_{rank}.json").write_text(json.dumps(dump(*calls)))
    report = report_of(tmp_path)
    assert "rank 1 hasn't called collective 2" in report and "The dumps have no stacks" in report


# Torch's own count of what each rank has called, in dumps that hold open calls alone.

ROW, COLUMN = ("5", "row"), ("12", "column")


def counted(dump: dict, *counts: tuple[int, int], kind: type = int) -> dict:
    """The dump with the last collective that was called and the last that has ended, for each of its groups."""
    keys = ("last_enqueued_collective", "last_completed_collective")
    status = {str(group): dict(zip(keys, map(kind, each), strict=True)) for group, each in enumerate(counts)}
    return dump | {"pg_status": status}


@pytest.mark.parametrize("kind", [int, str], ids=["pickle", "JSON, with texts for numbers"])
def test_a_rank_without_open_calls_has_called_what_torch_has_counted(tmp_path, kind) -> None:
    groups = {COLUMN: [0, 2], ROW: [0, 1, 2]}
    dumps = {
        rank: counted(dump(waiting(71, process_group=ROW, pg_id=0), groups=groups), (71, 70), (9, 9), kind=kind)
        for rank in (0, 1)
    }
    dumps[2] = counted(dump(groups=groups), (70, 70), (9, 9), kind=kind)
    state = only(compared(dumps))
    assert (state.kind, state.absent, state.called) == (GroupKind.BEHIND, (2,), {0: 71, 1: 71, 2: 70})
    report = report_of(write(tmp_path, dumps))
    assert "rank 2: the last collective here is number 70, which has ended" in report
    assert "All that it has called here has ended, so it is or hangs in its own program." in report
    assert "These dumps hold only calls that have not ended." in report and "buffer" not in report
    for each in dumps.values():
        each["pg_status"] = {}
    assert "rank 2: no open call here" in report_of(write(tmp_path, dumps))


def test_a_rank_that_has_ended_a_collective_has_not_left_it_out(tmp_path) -> None:
    """Only rank 0 has an open call, which the others have ended: its GPU or its process is to blame."""
    dumps = {0: counted(dump(waiting(6)), (6, 5))} | {rank: counted(dump(), (6, 6)) for rank in (1, 2, 3)}
    state = only(compared(dumps))
    assert (state.kind, state.absent, state.lagging) == (GroupKind.TOGETHER, (), {0: 6})
    report = report_of(write(tmp_path, dumps))
    assert "it has ended on ranks 1 to 3" in report and "look into the log of rank 0, whose GPU is behind" in report


def test_a_late_rank_that_has_open_what_others_have_ended(tmp_path) -> None:
    dumps = {rank: counted(dump(waiting(24)), (24, 23)) for rank in (0, 2, 3)}
    dumps[1] = counted(dump(waiting(21), waiting(22), waiting(23)), (23, 20))
    state = only(compared(dumps))
    assert (state.kind, state.absent, state.lagging) == (GroupKind.BEHIND, (1,), {1: 21})
    report = report_of(write(tmp_path, dumps))
    assert "rank 1: collectives 21 to 23 have not ended here, though they have elsewhere" in report
    assert "The GPU may have failed or hang, or its process may hang." in report and "different branch" not in report


def test_counts_of_groups_with_messages_are_not_taken_for_collectives() -> None:
    dumps = {0: counted(dump(waiting(9, "send 0->1"), waiting(3)), (9, 8)), 1: counted(dump(), (8, 8))}
    assert not only(compared(dumps)).progress and 1 in only(compared(dumps)).absent


@pytest.mark.parametrize("is_older", [True, False])
def test_a_group_in_which_all_have_come_follows_from_an_older_call_of_one_of_them(tmp_path, is_older) -> None:
    """Rank 1 waits for a message of rank 2. Ranks 0 and 1 are in a collective, which rank 1 called before or after."""
    groups = {("1", "tensor"): [0, 1], ("2", "pipeline"): [1, 2]}
    tensor, pipeline = ({"process_group": name} for name in groups)
    dumps = {
        0: dump(waiting(8, **tensor), groups=groups),
        1: dump(waiting(8, **tensor, record_id=5), waiting(8, "recv 0<-1", **pipeline, record_id=4 if is_older else 6),
                groups=groups),
        2: dump(groups=groups),
    }  # fmt: skip
    found = compared(dumps)
    assert state_of(found, "tensor").is_held_up == is_older
    assert (state_of(found, "tensor") in found.followers) == is_older
    report = report_of(write(tmp_path, dumps))
    assert ("still waits in an older call. So this follows from the above." in report) == is_older


def test_one_dump_alone_agrees_with_nothing(capsys, tmp_path) -> None:
    found = compared({0: dump(entry(1))})
    assert not found.is_compared and not found.is_wrong and not found.has_ended_well
    report = report_of(write(tmp_path, {0: dump(entry(1))}))
    assert "there is no dump to compare this with" in report and "agree" not in report
    assert "Next: look for the dumps or the logs of ranks 1 to 3." in report
    assert compared({0: dump(entry(1), groups={DEFAULT: [0]})}).has_ended_well
    assert doctor(capsys, tmp_path)[0] == 1


# Which ranks to look at first.


def test_all_wait_for_one_directly_or_through_others(tmp_path) -> None:
    """Rank 3 hangs. Rank 2 waits for it, rank 1 for its message, and rank 0 with rank 1, whose GPU is busy waiting."""
    groups = {("1", "tensor"): [0, 1], ("2", "tensor"): [2, 3], ("3", "pipeline"): [1, 3]}
    tensor = [{"process_group": name} for name in groups]
    dumps = {
        0: dump(waiting(1, **tensor[0]), groups=groups),
        1: dump(waiting(1, "recv 0<-1", **tensor[2]), waiting(1, **tensor[0]), groups=groups),
        2: dump(waiting(1, **tensor[1]), groups=groups),
        3: dump(groups=groups),
    }
    found = compared(dumps)
    first = first_ranks(found)
    assert (first.ranks, first.waiting, first.circle, first.missing) == ({3}, {0, 1, 2}, set(), set())
    assert first.is_certain and not first.is_direct and first.shows_where
    assert [state.group.name for state in example_groups(first, 2)] == ["2"]
    report = report_of(write(tmp_path, dumps))
    assert report.startswith(
        "Flight Recorder: look at rank 3 first, because ranks 0 to 2 wait for it, directly or through others."
    )
    assert "In 1 more group, all ranks have come to a collective that has not ended" in report


def test_a_rank_whose_gpu_is_behind_is_waited_for_and_does_not_wait(tmp_path) -> None:
    """Rank 2 has called as much as the others, but its GPU has not ended what theirs have."""
    numbered = {rank: [waiting(number) for number in (5, 6)] for rank in range(4)} | {
        2: [waiting(number) for number in (3, 4, 5, 6)]
    }
    dumps = {rank: dump(*calls) for rank, calls in numbered.items()}
    first = first_ranks(compared(dumps))
    assert (first.ranks, first.waiting) == ({2}, {0, 1, 3})
    assert only(compared(dumps)).lagging == {2: 3}
    report = report_of(write(tmp_path, dumps))
    assert "rank 2: collectives 3 and 4 have not ended here, though they have elsewhere" in report
    assert "look into the log of rank 2, whose GPU is behind" in report


def test_a_rank_does_not_wait_for_others_that_are_further() -> None:
    """The last call of rank 1 has not ended, but the others are already in the next, so they wait for rank 1."""
    dumps = {rank: dump(waiting(7)) for rank in (0, 2, 3)} | {1: dump(waiting(6))}
    first = first_ranks(compared(dumps))
    assert (first.ranks, first.circle, first.waiting) == ({1}, set(), {0, 2, 3})


def test_a_rank_without_a_dump_may_be_waited_for_as_well(tmp_path) -> None:
    dumps = {rank: dump(entry(1), waiting(2)) for rank in (0, 2)} | {1: dump(entry(1))}
    first = first_ranks(compared(dumps))
    assert (first.ranks, first.missing, first.waiting) == ({1}, {3}, {0, 2})
    report = report_of(write(tmp_path, dumps))
    assert "look at rank 1 first, because ranks 0 and 2 wait for it. The same may hold for rank 3, of which" in report


def test_what_has_ended_elsewhere_does_not_wait_for_a_rank_without_a_dump(tmp_path) -> None:
    """Rank 1 is still in collective 21, which ranks 0 and 2 have ended. So rank 3 had come to it."""
    dumps = {rank: counted(dump(waiting(24)), (24, 23)) for rank in (0, 2)}
    dumps[1] = counted(dump(waiting(21), waiting(22), waiting(23)), (23, 20))
    first = first_ranks(compared(dumps))
    assert (first.ranks, first.missing, first.waiting) == ({1}, {3}, {0, 2})
    assert "look at rank 1 first, because ranks 0 and 2 wait for it. The same" in report_of(write(tmp_path, dumps))


def test_ranks_that_wait_for_each_other_do_so_whatever_a_rank_without_a_dump_does() -> None:
    """Ranks 0 and 1 have called the collectives of two groups in different orders; rank 2 is in both groups."""
    groups = {("1", "row"): [0, 1, 2], ("2", "column"): [0, 1, 2]}
    row, column = ({"process_group": name} for name in groups)
    dumps = {0: dump(waiting(1, **row), groups=groups), 1: dump(waiting(1, **column), groups=groups)}
    first = first_ranks(compared(dumps))
    assert (first.ranks, first.circle, first.missing) == ({0, 1}, {0, 1}, {2})


def test_a_rank_without_a_dump_may_have_called_something_else_as_well(tmp_path) -> None:
    dumps = {rank: dump(waiting(1, size=12 if rank == 2 else 8)) for rank in range(3)}
    first = first_ranks(compared(dumps))
    assert (first.ranks, first.missing, first.waiting) == ({2}, {3}, {0, 1})
    assert "The same may hold for rank 3, of which there is no dump." in report_of(write(tmp_path, dumps))


def test_a_dump_that_cannot_be_read_is_there(tmp_path) -> None:
    write(tmp_path, {rank: dump(entry(1), waiting(2)) for rank in (0, 1)})
    (tmp_path / "nccl_trace_rank_3").write_bytes(b"{")
    report = report_of(tmp_path)
    assert "Read: dumps of ranks 0 and 1. There is no dump of rank 2. nccl_trace_rank_3 can't be read: it" in report
    assert "look at ranks 2 and 3 first. There is no readable dump of them" in report
    (tmp_path / "nccl_trace_rank_2").write_bytes(b"")
    assert "There is no dump of" not in report_of(tmp_path)


def test_a_rank_that_waits_for_a_missing_rank_is_not_the_first() -> None:
    groups = {("1", "row"): [0, 1], ("2", "column"): [1, 3]}
    row, column = ({"process_group": name} for name in groups)
    first = first_ranks(
        compared({0: dump(waiting(1, **row), groups=groups), 1: dump(waiting(1, **column), groups=groups)})
    )
    assert (first.ranks, first.missing, first.waiting) == (set(), {3}, {0, 1})


def test_where_all_are_in_the_same_collective_no_rank_is_the_first(tmp_path) -> None:
    dumps = {rank: dump(entry(1), waiting(2)) for rank in range(4)}
    first = first_ranks(compared(dumps))
    assert not first.suspects and not first.waiting and not first.shows_where
    assert "no rank waits for a different one in particular" in report_of(write(tmp_path, dumps))


def test_two_examples_show_two_ranks_and_the_rest_is_counted(tmp_path) -> None:
    """In four groups of two, one rank each has not come. In a fifth, of all, none of these four has."""
    dumps = {}
    names = [(str(number), "pair") for number in range(1, 5)]
    for rank in range(8):
        pair = names[rank // 2]
        groups = {DEFAULT: list(range(8)), pair: [rank // 2 * 2, rank // 2 * 2 + 1]}
        calls = [] if rank % 2 else [waiting(1, process_group=pair), waiting(1)]
        dumps[rank] = dump(*calls, groups=groups)
    found = compared(dumps)
    first = first_ranks(found)
    assert (first.ranks, first.waiting) == ({1, 3, 5, 7}, {0, 2, 4, 6})
    assert [state.group.name for state in example_groups(first, 2)] == ["0"]
    assert "The same or similar holds for 4 other groups." in report_of(write(tmp_path, dumps))
    for rank in range(8):
        dumps[rank]["entries"] = dumps[rank]["entries"][:1]
    assert len(example_groups(first_ranks(compared(dumps)), 2)) == 2
    assert "The same or similar holds for 2 other groups." in report_of(write(tmp_path, dumps))
    every = " ".join(str(dumps_report(tmp_path, 10)).split())
    assert every.count("hasn't called collective 1") == 4 and "The same" not in every


def test_messages_of_different_sizes_and_two_that_both_receive_are_circles() -> None:
    sizes = {0: dump(waiting(1, "send 0->1", 10)), 1: dump(waiting(1, "recv 1<-0", 12))}
    receives = {0: dump(waiting(1, "recv 0<-1")), 1: dump(waiting(1, "recv 1<-0"))}
    for dumps in (sizes, receives):
        assert first_ranks(compared(dumps)).circle == {0, 1}


def test_the_first_ranks_of_a_thousand_are_found_in_seconds() -> None:
    dumps = {
        rank: dump(*([] if rank == 700 else [waiting(1)]), groups={DEFAULT: list(range(1024))}) for rank in range(1024)
    }
    first = first_ranks(compared(dumps))
    assert first.ranks == {700} and len(first.waiting) == 1023


# The command.

BEHIND = {rank: dump(entry(1), waiting(2)) for rank in (0, 2, 3)} | {1: dump(entry(1))}
LOG = "step 1\nTraceback (most recent call last):\nKeyError: 'x'\n"


def doctor(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Exit status and output of `course doctor --log …`, the output in one line."""
    with pytest.raises(SystemExit) as end:
        app(["doctor", "--log", *map(str, arguments)])
    return int(end.value.code or 0), " ".join(capsys.readouterr().out.split())


def test_doctor_reports_dumps_alone(capsys, tmp_path) -> None:
    write(tmp_path, BEHIND)
    for arguments in ([tmp_path], sorted(tmp_path.iterdir())):
        status, printed = doctor(capsys, *arguments)
        assert status == 0 and printed.startswith("Flight Recorder: look at rank 1 first, because")


def test_doctor_reports_dumps_after_the_story_of_the_log(capsys, tmp_path) -> None:
    (write(tmp_path, BEHIND) / "train.out").write_text(LOG)
    (tmp_path / "nccl_trace_rank_4").write_text(json.dumps(dump(entry(1))))
    for arguments in ([tmp_path], sorted(tmp_path.iterdir())):
        status, printed = doctor(capsys, *arguments)
        assert status == 0 and printed.startswith("KeyError")
        assert printed.index("Read more:") < printed.index("Flight Recorder: look at rank 1 first")


def test_doctor_reports_a_log_alone_though_its_name_is_like_a_dumps(capsys, tmp_path) -> None:
    (tmp_path / "flight_0").write_text(LOG)
    status, printed = doctor(capsys, tmp_path)
    assert status == 0 and printed.startswith("KeyError") and "Flight Recorder" not in printed


def test_doctor_names_a_broken_dump_in_a_line(capsys, tmp_path) -> None:
    broken = write(tmp_path, BEHIND) / "nccl_trace_rank_3"
    for content in (b"", broken.read_bytes()[:300], b"{", b'{"entries": ['):
        broken.write_bytes(content)
        for arguments in ([tmp_path], sorted(tmp_path.iterdir())):
            status, printed = doctor(capsys, *arguments)
            assert status == 0 and "nccl_trace_rank_3 can't be read: it" in printed and "look at rank 1" in printed
        status, printed = doctor(capsys, broken)
        assert status == 1 and printed.startswith("Flight Recorder: none of the dumps can be read.")


@pytest.mark.parametrize(
    ("dumps", "status"),
    [
        ({rank: dump(entry(1)) for rank in range(4)}, 0),
        ({rank: dump(waiting(1)) for rank in range(4)}, 1),
        ({5: dump(waiting(1), groups={DEFAULT: list(range(8))})}, 1),
        ({rank: dump(waiting(1)) for rank in range(3)}, 0),
    ],
    ids=["nothing waits", "all are in the same collective", "most dumps are missing", "one dump is missing"],
)
def test_status_of_doctor_is_0_if_it_is_known_where_to_look(capsys, tmp_path, dumps, status) -> None:
    assert doctor(capsys, write(tmp_path, dumps))[0] == status


def test_doctor_finds_neither_logs_nor_dumps(tmp_path) -> None:
    with pytest.raises(CourseError, match="There is no log in"):
        app(["doctor", "--log", str(tmp_path)])
    with pytest.raises(CourseError, match="No such file"):
        app(["doctor", "--log", str(tmp_path / "nothing")])


# Files and folders.


def test_a_folder_has_other_files_too(tmp_path) -> None:
    write(tmp_path, {rank: dump(entry(1)) for rank in range(4)}, "nccl_trace_rank_container-node02_")
    (tmp_path / "out_1").write_text("step 1 of 10")
    (tmp_path / "trace_2.json").write_text('{"traceEvents": [], "entries": []}')
    (tmp_path / "model_3").write_bytes(pickle.dumps([1, 2]))
    (tmp_path / "notes").write_text("")
    dumps = read_dumps(tmp_path)
    assert list(dumps.ranks) == [0, 1, 2, 3] and not dumps.unread


def test_dumps_lie_in_a_folder_for_each_node(tmp_path) -> None:
    for rank in range(4):
        write(tmp_path / f"node{rank // 2}", {rank: dump(entry(1))})
    assert list(read_dumps(tmp_path).ranks) == [0, 1, 2, 3]
    assert list(read_dumps([tmp_path / "node1", tmp_path / "node0" / "nccl_trace_rank_0"]).ranks) == [0, 2, 3]


def test_of_two_runs_the_one_with_more_dumps_is_taken(tmp_path) -> None:
    write(tmp_path, {rank: dump(waiting(1)) for rank in range(4)}, "second_")
    write(tmp_path, {rank: dump(entry(1)) for rank in range(2)}, "first_")
    dumps = read_dumps(tmp_path)
    assert {each.file.name for each in dumps.ranks.values()} == {f"second_{rank}" for rank in range(4)}
    assert sorted(file.name for file in dumps.left_out) == ["first_0", "first_1"]
    assert "which is left out" in report_of(tmp_path)


def test_without_dumps_there_is_no_report(tmp_path) -> None:
    (tmp_path / "log_1.txt").write_text("hello")
    assert dumps_report(tmp_path) is None
    with pytest.raises(CourseError, match="there is no such file or folder"):
        read_dumps(tmp_path / "nothing")


class Evil:
    """Runs a command when it is unpickled with full powers."""

    def __reduce__(self):
        return os.system, ("touch evil",)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (pickle.dumps(Evil()), "it asks for posix.system, which is not run here"),
        (pickle.dumps(dump(entry(1)))[:-40], "its pickle is broken or cut off"),
        (b"\x80\x02" + bytes(range(256)), "its pickle is broken or cut off"),
        (pickle.dumps({"entries": [{"profiling_name": torch.float32}]}), "which is not run here"),
        (pickle.dumps({"entries": [3]}), "it is no dump of the Flight Recorder"),
        (b'{"entries": [', "its JSON is broken or cut off"),
        (b"\x80\x02cbuiltins\neval\n(U\x041+1.tR.", "it asks for builtins.eval"),
        (b"\x7fELF\x00\x00", "neither a pickle nor JSON"),
    ],
)
def test_a_file_that_is_broken_or_evil_is_named_in_a_line(tmp_path, monkeypatch, content: bytes, why: str) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {0: dump(entry(1), waiting(2)), 2: dump(entry(1)), 3: dump(entry(1))})
    (tmp_path / "nccl_trace_rank_1").write_bytes(content)
    ((file, reason),) = read_dumps(tmp_path).unread.items()
    assert file.name == "nccl_trace_rank_1" and why in reason and "\n" not in reason
    assert f"nccl_trace_rank_1 can't be read: {reason}." in report_of(tmp_path)
    assert not (tmp_path / "evil").exists()


def test_torchs_own_functions_for_lists_are_harmless() -> None:
    pickled = b"\x80\x02ctorch.jit._pickle\nbuild_intlist\n](K\x01K\x02e\x85R."
    assert plain_data(pickled) == [1, 2]


STRANGE = [
    None,
    -1,
    1 << 70,
    1.5,
    "",
    "x" * 500,
    "a\nb",
    [],
    [[]],
    {},
    (),
    b"\xff",
    True,
    [None],
    [[-1, "x"]],
    {"a": 1},
]


def test_no_value_in_a_dump_gives_a_traceback(tmp_path) -> None:
    """Anything in the place of anything: a dump is read, or a line says why not."""
    keys = [*entry(1), "seq_id"]
    for number, strange in enumerate(STRANGE):
        for key in keys:
            written = {0: dump(entry(1), waiting(2) | {key: strange}), 1: dump(entry(1))}
            assert dumps_report(write(tmp_path / str(number) / key, written))
        for key in ("entries", "pg_config", "pg_status", "version"):
            assert dumps_report(write(tmp_path / str(number) / key, {0: dump(entry(1)) | {key: strange}}))
        status = {"0": strange, strange if isinstance(strange, str) else "1": {"last_enqueued_collective": strange}}
        assert dumps_report(write(tmp_path / str(number) / "status", {0: dump(waiting(1)) | {"pg_status": status}}))
        config = {"0": {"ranks": strange, "name": strange, "desc": strange}, "1": strange}
        assert dumps_report(write(tmp_path / str(number) / "config", {0: dump(waiting(1)) | {"pg_config": config}}))
        frames = [[strange], [{"filename": strange, "line": strange, "name": strange}]]
        assert all(
            dumps_report(write(tmp_path / str(number) / f"frames{n}", {0: dump(waiting(1, frames=each))}))
            for n, each in enumerate(frames)
        )


def test_no_bytes_give_a_traceback(seed) -> None:
    """Bytes of a good dump, some of them changed."""
    generator, good = random.Random(seed), pickle.dumps(dump(entry(1), waiting(2)), protocol=2)
    for _ in range(500):
        content = bytearray(good[: generator.randrange(1, len(good))] if generator.random() < 0.3 else good)
        for _ in range(generator.randrange(1, 4)):
            content[generator.randrange(len(content))] = generator.randrange(256)
        try:
            found = compared({0: plain_data(bytes(content)), 1: dump(entry(1))})
        except (NoDump, MemoryError):
            continue
        assert found.groups or found.messages or found.last is not None


def test_many_ranks_and_calls_are_compared_in_seconds() -> None:
    """64 ranks in 8 groups of eight, 100 calls each: every group is read from the dumps of its own ranks."""
    dumps = {}
    for rank in range(64):
        name = (str(rank // 8), "expert")
        calls = [entry(number, process_group=name) for number in range(1, 100)]
        if rank != 37:
            calls.append(waiting(100, process_group=name))
        dumps[rank] = dump(*calls, groups={name: list(range(rank // 8 * 8, rank // 8 * 8 + 8))})
    found = compared(dumps)
    assert [state.absent for state in found.causes if state.absent] == [(37,)]


def test_the_line_of_the_program_is_outside_of_torch() -> None:
    def line_of(*files: str) -> str | None:
        line = program_line([{"filename": file, "line": 3, "name": "f"} for file in files])
        return line and line.file

    ours, package, torchs = (
        "/home/me/train.py",
        "/env/lib/python3.12/site-packages/lightning/y.py",
        "/x/torch/distributed/z.py",
    )
    assert line_of(torchs, package, ours) == ours
    assert line_of(torchs, package) == package
    assert line_of("??", "<string>", torchs) is None
    (call, *_) = dump_of(
        dump(entry(1, frames=[{"filename": "/tmp/ipykernel_7/9.py", "line": 4, "name": "f"}])), 0
    ).calls
    assert line_text(call) == "line 4 of a cell"


def test_rows_of_ranks_in_words() -> None:
    assert ranks_text([2]) == "rank 2" and ranks_text([0, 1]) == "ranks 0 and 1"
    assert ranks_text([0, 1, 3]) == "ranks 0, 1 and 3" and ranks_text([*range(63), 64]) == "ranks 0 to 62 and 64"
    assert ranks_text(range(0, 100, 2)).endswith(" and others")


def test_groups_are_known_by_a_gathering() -> None:
    """Over gloo, torch does not record how many ranks a group has; an all-gather shows it."""
    gloo = {"profiling_name": "gloo:all_gather", "process_group": ("5", "undefined"), "output_sizes": [[3, 10]]}
    dumps = {0: dump(entry(1, **gloo), groups={("x", "x"): [0]})}
    (group,) = recorded_groups(Dumps({0: dump_of(dumps[0], 0)}))
    assert (group.members, group.size, group.is_known) == ((0,), 3, False)

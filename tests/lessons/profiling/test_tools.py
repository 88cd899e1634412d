"""What lesson 14 ends with: the critical path, what changed between two runs, and torch's Flight Recorder."""

import math

import pytest
import torch
import torch.distributed as dist

import course_utils as course
from course_utils.errors import CourseError
from course_utils.lessons.profiling import sentences
from course_utils.lessons.profiling.critical_path import (
    OWN,
    TRANSFER,
    Piece,
    collectives_of,
    critical_path,
    share_of_ranks,
)
from course_utils.lessons.profiling.dumps import flight_recorder
from course_utils.lessons.profiling.lanes import Lanes, lanes_of
from course_utils.lessons.profiling.merged_trace import merge
from course_utils.lessons.profiling.pictures import changed, critical
from course_utils.lessons.profiling.slow_programs import profile_program
from course_utils.lessons.profiling.trace_difference import IDLE, Change, changes, seconds_by_name, together
from tests.lessons.profiling.test_profiling import complete, rank_trace, two_ranks


@pytest.fixture(scope="module")
def ranks():
    started = course.start(4)
    yield started
    started.stop()


def three_ranks() -> tuple[list[Lanes], list[dict[int, tuple[float, float]]]]:
    """Two all-reduces: rank 1 comes last to the first one, at 5, rank 2 to the second one, at 12; they take 1 each."""
    collectives = [{0: (3, 6), 1: (5, 6), 2: (4, 6)}, {0: (8, 13), 1: (9, 13), 2: (12, 13)}]
    work = [[(0, 3), (6, 8), (13, 14)], [(0, 5), (6, 9), (13, 15)], [(0, 4), (6, 12), (13, 14)]]
    ends = [14, 15, 14]
    lanes = [Lanes(r, 0, ends[r], work[r], [each[r] for each in collectives], {}) for r in range(3)]
    return lanes, collectives


def test_the_path_goes_to_the_rank_that_was_waited_for() -> None:
    path = critical_path(*three_ranks())
    assert path == [
        Piece(1, 0, 5, OWN),
        Piece(1, 5, 6, TRANSFER),
        Piece(2, 6, 12, OWN),
        Piece(2, 12, 13, TRANSFER),
        Piece(1, 13, 15, OWN),
    ]
    assert share_of_ranks(path, range(3)) == pytest.approx([0, 7 / 15, 6 / 15])
    assert share_of_ranks(path, range(3), TRANSFER) == pytest.approx([0, 1 / 15, 1 / 15])
    told = sentences.critical_text(path, range(3))
    assert told == "Rank 1's own work makes up 47% of the critical path, transfers 13%"


def test_what_is_off_the_path_can_get_slower_for_nothing() -> None:
    lanes, collectives = three_ranks()
    lanes[0] = Lanes(0, 0, 14, [(0, 4.5), *lanes[0].computing[1:]], [(4.5, 6), (8, 13)], {})
    collectives[0][0] = (4.5, 6)
    assert critical_path(lanes, collectives) == critical_path(*three_ranks())


def test_a_message_that_is_hidden_is_not_on_the_path() -> None:
    lanes = [Lanes(rank, 0, 10, [(0, 10)], [(2, 5)], {}) for rank in (0, 1)]
    assert critical_path(lanes, [{0: (2, 5), 1: (2, 5)}]) == [Piece(0, 0, 10, OWN)]


def test_the_path_has_no_gaps_whatever_the_ranks_did(seed) -> None:
    random = torch.Generator().manual_seed(seed)
    for _ in range(30):
        ready, work, messages, collectives = [0.0] * 3, [[], [], []], [[], [], []], []
        for _ in range(5):
            begins = []
            for rank in range(3):
                took = 0.1 + float(torch.rand((), generator=random))
                work[rank].append((ready[rank], ready[rank] + took))
                begins.append(ready[rank] + took)
            end = max(begins) + 0.2
            collectives.append({rank: (begin, end) for rank, begin in enumerate(begins)})
            for rank in range(3):
                messages[rank].append((begins[rank], end))
                ready[rank] = end
        lanes = [Lanes(rank, 0.0, ready[rank], work[rank], messages[rank], {}) for rank in range(3)]
        path = critical_path(lanes, collectives)
        assert path[0].begin == 0 and path[-1].end == ready[0]
        assert all(math.isclose(a.end, b.begin) for a, b in zip(path, path[1:], strict=False))
        longest = sum(max(own[n][1] - own[n][0] for own in work) for n in range(5))
        assert sum(share_of_ranks(path, range(3))) * ready[0] == pytest.approx(longest), "the slowest of every step"


def test_collectives_are_matched_by_their_place() -> None:
    trace = merge(two_ranks())
    assert collectives_of(trace).times == [{0: pytest.approx((40e-6, 70e-6)), 1: pytest.approx((50e-6, 80e-6))}]
    one_only = collectives_of(merge([*two_ranks()[:1], rank_trace(1, 0.0)]))
    assert one_only.collectives == [] and one_only.unmatched == 1


def test_moments_of_a_step_are_counted_once() -> None:
    """One step of 100 µs: mm from 100 to 150 with add inside, 120 to 130, in another row; all_reduce 140 to 170."""
    events = [
        complete("aten::mm", 100, 150),
        complete("aten::add", 120, 130, tid=3),
        complete("gloo:all_reduce", 140, 170, tid=2, cat="user_annotation"),
    ]
    found = seconds_by_name(merge([rank_trace(0, 0.0, *events)]))
    expected = {"aten::mm": 40e-6, "aten::add": 10e-6, "gloo:all_reduce, exposed": 20e-6, IDLE: 30e-6}
    assert found == {name: pytest.approx(seconds) for name, seconds in expected.items()}


def test_changes_add_up_to_the_change_of_the_steps() -> None:
    before = merge([rank_trace(0, 0.0, complete("aten::mm", 100, 150))])
    after = merge([rank_trace(0, 0.0, complete("aten::mm", 100, 120), complete("aten::add", 130, 170))])
    found = changes(before, after)
    assert [one.name for one in found] == ["aten::add", "aten::mm", IDLE]
    assert [one.seconds for one in found] == pytest.approx([40e-6, -30e-6, -10e-6])
    assert sum(one.seconds for one in found) == pytest.approx(0, abs=1e-12), "both steps take 100 µs"
    few = together(found, 2)
    assert few[1].name == "2 others" and few[1].seconds == pytest.approx(-40e-6)
    assert together(found, 3) == found


def test_what_changed_is_said_and_drawn() -> None:
    found = [Change("aten::mm", 5.0, 1.0), Change(IDLE, 1.0, 2.0)]
    assert (
        sentences.changes_text(found)
        == "The run is 3 s shorter, on average over the ranks; what changed most: aten::mm, 4 s less"
    )
    assert sentences.changed_most(found) == "a" and sentences.changed_most(found[1:]) == "c"
    assert sentences.changed_most([Change("gloo:all_reduce, exposed", 3.0, 1.0), *found[1:]]) == "b"
    slower = [Change("aten::mm", 1.0, 5.0), Change(IDLE, 2.0, 1.0)]
    assert sentences.changes_text(slower) == sentences.changes_text(found).replace(" less", " more").replace(
        "shorter", "longer"
    )
    assert "aten::mm, 5 s before, 1 s after" in changed(found, "A title").alt_text
    with pytest.raises(CourseError, match="at least one"):
        changed([], "A title")


def test_the_slowest_rank_is_on_the_path_of_the_unbalanced_program(ranks) -> None:
    slow, better = (profile_program(ranks, 4, fast) for fast in (False, True))
    path = critical_path(slow.lanes, collectives_of(slow.trace).times)
    assert path[0].begin == pytest.approx(slow.lanes[path[0].rank].begin)
    assert all(a.end == pytest.approx(b.begin, abs=1e-7) for a, b in zip(path, path[1:], strict=False))
    own = share_of_ranks(path, range(4))
    assert own[3] == max(own), "rank 3 has the longest texts"
    assert "The critical path: own work of rank" in critical(slow.lanes, path, "A title").alt_text
    for found in (slow, better):
        whole = sum(one.seconds for one in found.lanes) / 4
        assert sum(seconds_by_name(found.trace).values()) == pytest.approx(whole)
    assert lanes_of(slow.trace)[0].seconds == slow.lanes[0].seconds


def one_left_out() -> None:
    """Rank 2 leaves out an all-reduce, and all meet in a barrier."""
    gradient = torch.ones(1000)
    for _ in range(3):
        dist.all_reduce(gradient)
    if dist.get_rank() != 2:
        dist.all_reduce(torch.ones(5, 3))
    dist.barrier()


def calls_of(dumps) -> list[list[str]]:
    """For each rank the collectives that it has begun, in order."""
    return [[entry["profiling_name"].partition(":")[2] for entry in dump["entries"]] for dump in dumps]


@pytest.mark.parametrize("hangs_before", [0, 1])
def test_fr_trace_and_our_report_name_the_same_rank_and_operation(ranks, tmp_path, hangs_before: int) -> None:
    for _ in range(hangs_before):  # the next call makes a new group
        flight_recorder.stuck(ranks, one_left_out)
    report, dumps = flight_recorder.stuck(ranks, one_left_out)
    assert calls_of(dumps) == [["all_reduce"] * 3 + [["all_reduce"], ["barrier"]][rank == 2] for rank in range(4)]
    told = flight_recorder.compared(dumps, tmp_path)
    assert sentences.culprit_letter(told, 2) == "a"
    assert (told.rank, told.operation) == (2, "all_reduce")
    assert "does not match found collective type: 'barrier'" in told.error
    assert "ranks 0, 1 and 3 all_reduce of 15 float32, rank 2 barrier" in report
    assert sentences.agree(told, report)
    assert "Both name the same rank and operation." in sentences.both_reports_text(told, report)


def test_reports_that_differ_are_told_apart() -> None:
    report = "deadlock: collective number 4 is not the same on all ranks (ranks 0 and 1 all_reduce, rank 2 barrier)."
    right = flight_recorder.Mismatch(2, "all_reduce", "")
    assert sentences.agree(right, report)
    for wrong in (None, flight_recorder.Mismatch(1, "all_reduce", ""), flight_recorder.Mismatch(2, "broadcast", "")):
        assert not sentences.agree(wrong, report)
        assert sentences.both_reports_text(wrong, report).endswith("They don't name the same rank and operation.")


def all_well() -> None:
    dist.all_reduce(torch.ones(3))


def test_without_a_hang_there_is_no_culprit(ranks, tmp_path) -> None:
    report, dumps = flight_recorder.stuck(ranks, all_well)
    assert report == "" and calls_of(dumps) == [["all_reduce"]] * 4
    told = flight_recorder.compared(dumps, tmp_path)
    assert told is None and sentences.culprit_letter(told, 2) == "c"


def test_what_fr_trace_cannot_read_is_a_line(tmp_path) -> None:
    with pytest.raises(CourseError, match=r"^torchfrtrace: .*no files loaded"):
        flight_recorder.fr_trace(tmp_path)

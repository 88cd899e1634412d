"""ZB-V and DualPipe-V: the order of torch's own, nothing missing, and as idle and as full as is promised."""

import pytest
from torch.distributed.pipelining.schedules import ScheduleDualPipeV, ScheduleZBVZeroBubble

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import COMPUTATIONS, Action, Schedule, parse, rank_of_stages
from course_utils.lessons.pipeline.schedules import one_f_one_b_schedule
from course_utils.lessons.pipeline.timing import simulate_schedule
from course_utils.lessons.pipeline.v_shape import dual_pipe_v_schedule, zb_v_schedule
from course_utils.lessons.pipeline.validate import peak_in_flight, problems
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule

SIZES = [(2, 4), (2, 7), (3, 6), (4, 8), (4, 11), (6, 12), (8, 24)]


def torchs_order(kind: type, ranks: int, micro_batches: int) -> Schedule:
    """What torch's schedule says that each rank computes; a pair that runs at once is its two, forward first."""
    own = object.__new__(kind)  # its order needs no stages and no group
    own.pp_group_size, own.num_stages, own._n_microbatches = ranks, 2 * ranks, micro_batches
    lists = [own._calculate_single_rank_operations(rank) for rank in range(ranks)]
    return [[ours for action in actions if action is not None for ours in computations(action)] for actions in lists]


def computations(action) -> list[Action]:
    parts = action.sub_actions or (action,)
    return [parse(str(part)) for part in parts if part.computation_type.value in COMPUTATIONS]


@pytest.mark.parametrize(("ranks", "micro_batches"), SIZES)
def test_the_order_is_torchs_own(ranks: int, micro_batches: int) -> None:
    assert zb_v_schedule(ranks, micro_batches) == torchs_order(ScheduleZBVZeroBubble, ranks, micro_batches)
    assert dual_pipe_v_schedule(ranks, micro_batches) == torchs_order(ScheduleDualPipeV, ranks, micro_batches)


@pytest.mark.parametrize(("ranks", "micro_batches"), [*SIZES, (1, 3), (4, 16)])
@pytest.mark.parametrize("schedule_of", [zb_v_schedule, dual_pipe_v_schedule])
def test_each_can_be_run_and_lies_in_a_v(schedule_of, ranks: int, micro_batches: int) -> None:
    schedule = schedule_of(ranks, micro_batches)
    assert problems(schedule, stages=2 * ranks, micro_batches=micro_batches) == []
    homes = rank_of_stages(schedule)
    assert homes == {stage: min(stage, 2 * ranks - 1 - stage) for stage in range(2 * ranks)}


def test_few_micro_batches_are_left_out_or_rejected() -> None:
    assert problems(zb_v_schedule(4, 2), stages=8, micro_batches=2) == []
    with pytest.raises(CourseError, match="7 micro-batches for 8 stages"):
        dual_pipe_v_schedule(4, 7)


@pytest.mark.parametrize(("ranks", "micro_batches"), [(2, 6), (4, 8), (4, 16)])
def test_zb_v_has_no_gap_inside_a_rank_and_keeps_what_1f1b_keeps(ranks: int, micro_batches: int) -> None:
    schedule, half = zb_v_schedule(ranks, micro_batches), 0.5
    timing = simulate_schedule(schedule, half, half, half)
    assert all(timing.window(rank) == pytest.approx(timing.busy(rank)) for rank in range(ranks))
    assert peak_in_flight(schedule, half) == [ranks] * ranks
    assert max(peak_in_flight(one_f_one_b_schedule(ranks, micro_batches))) == ranks
    assert timing.idle_share < simulate_schedule(zb_h1_schedule(ranks, micro_batches)).idle_share

"""Lesson 10, How are all stages kept busy? Read `schedules` first: a schedule is data, everything else reads it.

`actions` are what it is made of; `interleaved` and `zero_bubble` write others; `send_and_receive` puts messages in;
`validate` says what is wrong with one, `timing` when everything happens; `run_schedule` does it on real ranks.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures, torch_pipeline
    from .actions import (
        BACKWARD,
        FORWARD,
        INPUT,
        RECV_B,
        RECV_F,
        SEND_B,
        SEND_F,
        WEIGHT,
        Action,
        Schedule,
        micro_batches_of,
        parse_schedule,
        rank_of_stages,
        whole_number,
        write_schedule,
    )
    from .digits_pipeline import (
        digit_batches,
        digit_layers,
        largest_difference,
        own_stages,
        step_by_step,
        step_by_step_alone,
        timed_runs,
        train_alone,
    )
    from .interleaved import interleaved_schedule
    from .puzzle.leaderboard import Leaderboard
    from .puzzle.makespan_bound import longest_stretches, lower_bound, prove
    from .puzzle.proof_check import check_proof
    from .puzzle.puzzle import PUZZLES, Puzzle, best_known, judge
    from .run_schedule import run_schedule
    from .schedules import bubble_fraction, gpipe_schedule, one_f_one_b_schedule
    from .send_and_receive import address, with_messages
    from .sentences import (
        bubble_text,
        disturbed,
        faster_text,
        flush_text,
        formula_text,
        hidden_text,
        idle_seconds,
        idle_text,
        kept_by_rank,
        kept_text,
        plan_text,
        proofs_text,
        proved_text,
        stashing_text,
        steps_text,
        stretches_text,
        window_text,
    )
    from .stage_pace import Pace, at_work
    from .stage_work import Work
    from .timing import simulate_schedule, timing_of
    from .v_shape import dual_pipe_v_schedule, zb_v_schedule
    from .validate import peak_in_flight, problems
    from .zero_bubble import zb_h1_schedule, zb_h2_schedule

__getattr__, __dir__, __all__ = attach(__name__, __file__)

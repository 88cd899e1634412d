"""Lesson 14, Where did the time go? Read `time_shares` first.

`record_profiles` profiles steps on every rank, `rank_clocks` puts the ranks on one clock, `merged_trace` makes one
Chrome trace of theirs, and `chrome_trace` says what is wrong with one; `lanes` reads when each rank computed and
communicated, `step_memory` how many bytes a step takes and when. `slow` holds five slow training programs.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import critical_path, pictures
    from .chrome_trace import problems, read_trace
    from .dumps import flight_recorder
    from .dumps.recorder_sentences import dumps_report
    from .feeding import feed_here
    from .gpu_steps import profile_launches
    from .intervals import Interval, difference, intersection, length
    from .lanes import Lanes, lanes_of
    from .record_profiles import profile_ranks, training_step
    from .sentences import (
        both_reports_text,
        changed_most,
        changes_text,
        clock_text,
        convolutions_text,
        critical_text,
        culprit_letter,
        cured_texts,
        fed_bars,
        fed_text,
        fed_times,
        is_busy_feed,
        kept_text,
        launches_text,
        memory_text,
        operators_table,
        overlap_text,
        path_shares_text,
        peak_letter,
        profile_text,
        zero_grad_text,
    )
    from .slow.host_waits import own_network, right_share
    from .slow.input_pipeline import BATCH
    from .slow.no_overlap import own_link, waiting_network
    from .slow.small_kernels import ADAM_RATE, KEEP_AVERAGE, KEEP_MEAN, KEEP_SQUARE, TINY, deep_network
    from .slow.unbalanced import LETTERS, SIZE, VECTOR_RATE, gradient_of
    from .slow_programs import CHOICES, PROGRAMS, letter_of, profile_like, profile_program, race
    from .step_memory import memory_of_step
    from .time_shares import idle_share, overlap_share
    from .trace_difference import changes, together

__getattr__, __dir__, __all__ = attach(__name__, __file__)

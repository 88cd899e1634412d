"""Lesson 15, Can I now read any framework's manual? Read `framework_terms` first.

One training step in other frameworks (`framework_steps`, `lightning`), the words of their `manuals` (`dictionary`,
`passages`), PyTorch's simulated ranks (`local_ranks`), and the `capstone`.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures
    from .capstone.combinations import what_others_reached
    from .capstone.pictures import budget_bars
    from .capstone.result import used
    from .capstone.task import BUDGET, NAIVE_STEPS, network
    from .capstone.trial import naive_data_parallel, tried
    from .framework_steps import largest_difference, step_seen
    from .framework_terms import Step
    from .large_training.bottleneck import Cause
    from .large_training.lost_gpu import Recovery
    from .large_training.made_lanes import made_lanes
    from .large_training.training_tasks import TrainingTask, llama_task
    from .lightning import is_there, load_lightning, missing, on_these_ranks
    from .local_ranks import local_ranks, parts_of
    from .manuals import DEEPSPEED, FRAMEWORKS, HOROVOD, JAX, TENSORFLOW, TORCH
    from .passages import PASSAGES
    from .pictures import reading, sent_and_kept_panels
    from .sentences import (
        calls_text,
        naive_steps_text,
        plan_text,
        ran_text,
        same_text,
        sends_most,
        sent_and_kept_text,
        start_letter,
        stopping_text,
        words_text,
    )
    from .tables import dictionary_table, lines_of_code, side_by_side, words_table

__getattr__, __dir__, __all__ = attach(__name__, __file__)

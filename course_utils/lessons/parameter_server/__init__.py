"""Lesson 8, What if nobody waits? Read `server` first.

In `local_sgd` ranks average their weights now and then, in `outer_optimizer` their mean change becomes a step of its
own, and in `neighbours` each rank averages with two others only. `digits_trainings` trains in all these ways.
`rewarded_answers` is for networks that learn from their own answers.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from course_utils.lessons.messages.played_computation import compute_for

    from . import pictures
    from .digits_trainings import (
        Pace,
        first_weights,
        flat_gradient,
        own_gradients,
        train_asynchronously,
        train_in_rounds,
        train_locally,
        train_synchronously,
        training_curve,
    )
    from .experiments import link_seconds, race, served
    from .flat_network import own_batches, unflat
    from .local_sgd import federated_average, local_sgd_round, skewed_shards
    from .neighbours import consensus_distance, shrinking
    from .outer_optimizer import AdamW, outer_step
    from .rewarded_answers import answers_gradient, draw_answers
    from .sentences import (
        ages_text,
        backup_text,
        clinics_text,
        is_busy_race,
        lag_text,
        largest_rate,
        link_text,
        link_title,
        local_text,
        mean_text,
        neighbours_text,
        outer_text,
        races_text,
        rates_text,
        reached_table,
        rounds_to,
        served_text,
        slower,
        staleness_text,
        straggler_text,
    )
    from .server import GRADIENT, SERVER, STOP, WEIGHTS, ServerHistory, measure_staleness

__getattr__, __dir__, __all__ = attach(__name__, __file__)

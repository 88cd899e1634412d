"""Lesson 6, Can P workers train as one? Read `gradients` first, then `training`.

`shards` deals the images out, `batch_norm` shares statistics, `differentiable` has the message that a backward pass
can go through; `replicas` has several ways to keep replicas equal.

The CS744 report (VGG-11 on 4 nodes) redone from one's own runs: `train_way` makes a run of `timed_steps` and keeps it,
`report_figures` draws any runs beside `published_numbers`, and `report` puts what is kept on the report's page.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import gradients, noise_scale, report_figures, training
    from .backends import backend_seconds
    from .differentiable import Group, all_reduce_sum
    from .gradients import average_gradients, broadcast_parameters
    from .replicas import (
        BUCKET_BYTES,
        Replica,
        all_reduce_flat,
        torch_ddp,
        train_replicas,
        unsynchronised,
    )
    from .sentences import (
        best_rates_text,
        critical_text,
        exchange_text,
        fastest_text,
        phase_bars,
        phase_durations,
        quickest,
        sent_text,
        vectors_sent,
        waiting_text,
    )
    from .shards import shard_indices
    from .timed_steps import last_step
    from .train_way import train_way
    from .training import (
        History,
        Sgd,
        accuracy,
        batches,
        digits_mlp,
        flat_parameters,
        local_norm_mlp,
        mean_losses,
        sync_norm_mlp,
        train_parallel,
        train_serial,
        wide_mlp,
    )

__getattr__, __dir__, __all__ = attach(__name__, __file__)

"""Lesson 3, What limits one machine? Read `roofline` first.

How fast it computes and moves bytes (`machine_rates`, `layer_costs`), and how fast others do (`data_sheets`); what more
workers gain (`threads`, `work_and_depth`); where the time of a training step goes (`step_shares`); how it reads files
(`packed_samples`, `photos`, `reading_speed`).

Import this package before torch: then torch's threads sleep while they wait for each other. By default they spin, which
saves microseconds on a quiet machine, and on a busy one makes two threads slower than one.
"""

import os
from typing import TYPE_CHECKING

from course_utils.lazy import attach

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read by the OpenMP library when torch loads it

if TYPE_CHECKING:
    from . import (
        data_sheets,
        layer_costs,
        machine_rates,
        photos,
        pictures,
        reading_speed,
        sentences,
        step_shares,
        threads,
    )
    from .packed_samples import pack_samples, read_sample
    from .photos import SHRUNK, decode
    from .roofline import arithmetic_intensity
    from .work_and_depth import brent_bounds, chain_sum, run_graph, tree_sum

__getattr__, __dir__, __all__ = attach(__name__, __file__)

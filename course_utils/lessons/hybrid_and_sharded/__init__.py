"""Lesson 11, Which mixture? Read `device_mesh` first, then `zero1`.

Data, tensor and pipeline parallelism in one training run (`mesh_training`; `mesh_parts` finds what a rank holds), or
two of them in one network (`hybrid_step`). `gradient_clipping` takes the norm of a gradient that no rank has whole.
`utilization` counts what a training costs.
ZeRO: `zero_formulas` count on paper, `zero1` and `zero2` are by hand, `fsdp` is stage 3 through torch, `zero_stages`
trains with each, and `muon` with an optimizer that needs whole matrices. `mesh_checkpoints` writes with some ranks and
reads with others. `planner` works on paper alone.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures, shard_pictures
    from .device_mesh import mesh_groups
    from .experiments import (
        CONTEXT,
        RATE,
        count_meshes,
        count_stages,
        most_saved,
        small_batches,
        small_model,
    )
    from .fsdp import ShardWatch
    from .gradient_clipping import EPSILON, clip_alone, clip_over_mesh, squares
    from .hybrid_step import OWNER
    from .mesh_checkpoints import TorchMeshTraining
    from .mesh_parts import find_parts
    from .mesh_training import Adam, train_on_mesh, train_serially, whole_model
    from .muon import (
        first_matrices,
        matrix_gradients,
        sent_for,
        times_orthogonalised,
        torchs_muon,
        train_muon,
        train_muon_serially,
        whole_matrix,
    )
    from .planner import pictures as planner_pictures
    from .planner.gpu_clusters import H100
    from .planner.language_models import MODELS
    from .planner.layout_search import best, judge, plan
    from .planner.published_h100 import halves, measured_steps, published_kinds_text, published_runs
    from .planner.published_runs import SPENT
    from .planner.training_layout import EVERY_OTHER, FULL, MODERN, NOTHING, Layout
    from .planner.training_times import estimate_training
    from .report_network import enlarged, report_network, train_network
    from .sentences import (
        clip_text,
        distances,
        drift_text,
        held_text,
        largest_difference,
        mixtures_text,
        muon_drift_text,
        muon_ways_text,
        same_text,
        saved_text,
        stages_text,
        symptom,
        totals,
        utilizations_text,
    )
    from .utilization import energy
    from .zero1 import AdamShard
    from .zero_formulas import fits, zero_memory
    from .zero_stages import FlatModel

__getattr__, __dir__, __all__ = attach(__name__, __file__)

"""Lesson 18, What if a rank dies? Read `quorum` first, then `heal`.

A training of several replicas that goes on when one of them is killed: who takes part in the next step (`quorum`), how
a newcomer gets the state (`heal`), what they train (`replica_state`), the server that collects their reports
(`lighthouse`), a replica's part in this (`manager`), and how they are started and killed (`replica_processes`).
Checkpoints in pieces (`reshard`, `sharded_checkpoint`) and in the background (`save_async`). An error that crashes
nothing: `find_the_liar`.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures, sentences
    from .experiments import beside_one_process, load_with_torch, loss_after_flips, save_with_torch, steps_compared
    from .find_the_liar import find_the_liar, flip_bit
    from .heal import heal
    from .manager import Manager
    from .quorum import StepReport, quorum
    from .replica_processes import run_replicas
    from .replica_state import gradient_and_loss, load_state, new_state, save_state, train_serially, update
    from .save_async import save_async
    from .sharded_checkpoint import load_piece, save_piece, write_array, write_table

__getattr__, __dir__, __all__ = attach(__name__, __file__)

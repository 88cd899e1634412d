"""Lesson 4, How do processes talk? Read `point_to_point` first.

Upper-case methods of a communicator (`Send`, `Recv`, …) move the memory of a NumPy array; lower-case ones any object.
`broadcast_and_scatter` gives one rank's numbers to all; `ping_pong` says what a message costs.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures
    from .broadcast_and_scatter import flat_broadcast, tree_broadcast
    from .ping_pong import fit_alpha_beta, message_time, ping_pong
    from .point_to_point import pass_the_token

__getattr__, __dir__, __all__ = attach(__name__, __file__)

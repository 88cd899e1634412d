"""What every kind of ranks can do for a check: real, virtual and contained ones, and what stands in for none."""

from collections.abc import Callable, Sequence
from typing import Protocol

from course_utils.ranks.run import Attempt

PATIENCE = 3.0
"""Seconds without progress after which a check's ranks are told to stop, though nobody can know that they hang."""
LIMIT = 30.0
"""Seconds of processor time that a call of a check may take, see `call_limit`."""


class RanksInterface(Protocol):
    """Ranks that call functions which may be wrong.

    Attributes:
        world_size: how many ranks there are.
    """

    world_size: int

    def attempt(
        self,
        function: Callable,
        arguments: Sequence[tuple],
        *,
        with_comm: bool = True,
        backend: str | None = None,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> Attempt:
        """Call a function on as many ranks as there are tuples of arguments; never raise for what it does.

        The replies carry the arguments as they are after the call.

        Args:
            arguments: of each rank.
            with_comm: whether the function's first argument is a communicator.
            backend: "gloo" or "nccl", for a function of torch.distributed, which gets no communicator.
            patience: seconds without progress after which the ranks are taken to hang.
            limit: seconds of processor time after which the call is broken off, see `call_limit`.
        """

    def attempt_each(
        self,
        tasks: Sequence[tuple[Callable, tuple]],
        *,
        seconds: float = 1.0,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> list[Attempt]:
        """Call functions that need no other rank, each with its arguments, one after the other.

        Gives back the attempts that came to an end before `seconds` were over; none where that cannot be told.
        """

"""The check of `heal`: the state of the peer, in the newcomer's own tensor, and one message for each newcomer."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import after_another_call
from course_utils.checks.exercise import Case, Cost, Exercise
from course_utils.checks.torch_cases import drawn, not_contiguous
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor

SPARE = 64
"""Bytes by which a message may be longer than a state and a number."""


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(size: int, heals: Mapping[int, int], shape: tuple[int, ...] = (3, 7), key: str = "") -> Case:
        states = [drawn(rng, *shape) for _ in range(size)]
        if key == "not-contiguous":
            states = [not_contiguous(state) for state in states]
        newest = int(rng.integers(100, 90_000))
        steps = [newest - int(rng.integers(1, 90)) * (rank in heals) for rank in range(size)]
        sources = [heals.get(rank, rank) for rank in range(size)]
        most = max((list(heals.values()).count(peer) for peer in heals.values()), default=0)
        label = f"{ranks(size)}, {count(len(heals), 'newcomer')}, a state of {'×'.join(map(str, shape))} numbers"
        return Case(
            f"{label}, not contiguous" if key == "not-contiguous" else label,
            [(alike(state), step, dict(heals)) for state, step in zip(states, steps, strict=True)],
            [newest] * size,
            expected_arguments=[{0: states[source].clone()} for source in sources],
            may_change=(0,),
            tolerance=0.0,
            backend="gloo",
            cost=Cost(messages=len(heals), bytes_per_rank=most * (8 * states[0].numel() + 8) + SPARE, collectives=0),
            key=key or ("no-newcomer" if not heals else "several" if most > 1 else ""),
        )

    last = world_size - 1
    if world_size > 1:
        yield case(2, {1: 0})
        yield case(world_size, {0: last})
        yield case(world_size, {last: 0}, (5,))
        yield case(world_size, {rank: last for rank in range(last)})
        yield case(world_size, {rank: 0 for rank in range(1, world_size)}, (2, 3, 4))
    if world_size > 3:
        yield case(4, {3: 1, 0: 2})
        yield case(4, {0: 3, 2: 1}, (1, 1000))
        yield case(3, {0: 1}, (3, 40))
    yield case(world_size, {})
    yield case(1, {})
    yield case(world_size, {0: last} if last else {}, (4, 6), "not-contiguous")
    if world_size > 1:
        yield after_another_call(case(2, {1: 0}))
        yield case(world_size, {0: last}, (3, 20_000), "long")


def alike(state: "Tensor") -> "Tensor":
    """A copy whose numbers are in the same order in memory."""
    import torch

    return state.clone(memory_format=torch.preserve_format)


EXERCISE = Exercise(
    library="heal",
    number=2,
    minutes=15,
    difficulty=2,
    turn="newcomers receive, their peers send, all others do nothing",
    title="a newcomer gets the state",
    cases=_cases,
    needs_torch=True,
    hints=(
        "Which three kinds of rank are there, and which of them sends, receives, or does neither? How can the number "
        "of steps travel in the same message as the state?",
        "A message has `state.numel() + 1` numbers. A newcomer receives it from `heals[rank]`, and copies all but the "
        "last into its state with `copy_`, in the state's shape. A peer appends its step to the flattened state with "
        "`torch.cat`, and sends this to every newcomer whose peer it is.",
    ),
    praise=lambda outcome: "newcomers have the state of their peers, bit by bit, and no message was superfluous",
)

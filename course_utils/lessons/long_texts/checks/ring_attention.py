"""The check of `ring_attention`: against one process, and keys and values that go round once, from left to right."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import in_a_row, rejected
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, Kind, own
from course_utils.checks.torch_cases import digits_lost, drawn
from course_utils.lessons.long_texts.checks.block_attention import RESULT, at_once
from course_utils.trace.recorder import phase
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor

    from course_utils.trace.events import Event

_RIGHT = "the numbers are right, but rank {rank}"


def round_the_ring(
    function: Callable, q: "Tensor", k: "Tensor", v: "Tensor", positions: list["Tensor"], groups: int
) -> Any:
    """Call the learner's function in a phase, in one of `groups` groups; 1 for all ranks, and no group.

    Every `groups`-th rank is in the same group.
    """
    import torch.distributed as dist

    rank, size = dist.get_rank(), dist.get_world_size()
    all_groups = [dist.new_group(list(range(first, size, groups))) for first in range(groups)] if groups > 1 else [None]
    group = all_groups[rank % groups]
    with phase("attention"):
        found = function(q, k, v, positions, group)
    is_pair = type(found) in (tuple, list) and len(found) == len(RESULT)
    return dict(zip(RESULT, found, strict=True)) if is_pair else {RESULT[0]: found}


def moves(outcome: Outcome, rank: int) -> list["Event"]:
    """What a rank sent, or shared in a collective, during its phase."""
    events = outcome.attempt.replies[rank].events or ()
    spans = [event for event in events if event.kind == "phase" and event.name == "attention"]
    return [
        event
        for event in events
        if event.kind in ("send", "collective") and any(s.start <= event.start <= s.end for s in spans)
    ]


def _once_round(outcome: Outcome) -> Finding | None:
    *_, positions, groups = outcome.case.arguments[0]
    k = outcome.case.arguments[0][1]
    a_token = 2 * k.numel() // k.shape[2] * k.element_size()
    for rank in range(outcome.world_size):
        made = moves(outcome, rank)
        if others := [event.name for event in made if event.kind == "collective"]:
            words = f"{_RIGHT} called {{call}}; in a ring, only neighbours exchange messages"
            return own("collective-called", words, rank=rank, call=others[0])
        right = (rank + groups) % outcome.world_size
        if astray := [event.peer for event in made if event.peer != right]:
            words = f"{_RIGHT} sends to rank {{got}}; the one to its right is rank {{expected}}"
            return own("not-to-the-right", words, rank=rank, got=astray[0], expected=right)
        # All keys and values are sent on from here, except those of the right neighbour, which has them already.
        enough = a_token * (sum(map(len, positions)) - len(positions[right // groups]))
        sent = sum(event.bytes for event in made)
        if sent > enough:
            return Finding(Kind.BYTES, rank, got=sent, expected=enough)
    return None


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    import torch

    def case(
        shares: Sequence[int],
        about: str = "",
        dtype: str = "float64",
        groups: int = 1,
        mixed: bool = True,
        rising: bool = True,
    ) -> Case:
        ranks_of = len(shares) * groups
        arguments, expected = [()] * ranks_of, [{}] * ranks_of
        for first in range(groups):
            order = torch.from_numpy(rng.permutation(sum(shares))) if mixed else torch.arange(sum(shares))
            positions = [part.sort().values if rising else part for part in order.split(list(shares))]
            q, k, v = (drawn(rng, 1, 2, sum(shares), 4).to(getattr(torch, dtype)) for _ in range(3))
            whole = at_once(q, k, v, torch.arange(sum(shares)), torch.arange(sum(shares)))
            for rank, own_positions in zip(range(first, ranks_of, groups), positions, strict=True):
                mine = [tensor[:, :, own_positions].contiguous() for tensor in (q, k, v)]
                arguments[rank] = (*mine, positions, groups)
                expected[rank] = {name: tensor[:, :, own_positions] for name, tensor in whole.items()}
        label = f"{ranks(len(arguments))}, {sum(shares)} tokens, {dtype}"
        label = f"{label}, {about}" if about else label
        key = "groups" if groups > 1 else "unequal-shares" if len(set(shares)) > 1 else ""
        key = key or ("one-rank" if len(shares) == 1 else "in-order" if not mixed else "")
        more = {"backend": "gloo", "harness": round_the_ring, "judge": _once_round, "key": key}
        return Case(label, arguments, expected, **more)

    yield case([5])
    yield case([5], "in any order", rising=False)
    yield case([4] * world_size, "in the text's order", mixed=False)
    yield case([3] * min(2, world_size))
    yield case([4] * world_size)
    yield case([4] * world_size, "each rank's in any order", rising=False)
    yield case([3] * min(3, world_size))
    yield case([6] * world_size, dtype="float16")
    yield case([6] * min(3, world_size), dtype="bfloat16")
    yield case([int(share) for share in rng.permutation(np.arange(1, world_size + 1))], "unequal shares")
    yield case([2, 2], "2 groups", groups=2)
    yield case([3, 1], "2 groups, unequal shares", dtype="float32", groups=2)
    few = [[3] * min(2, world_size)] * 2
    yield in_a_row(*map(case, few))
    yield in_a_row(case([2] * min(2, world_size)), case([int(share) for share in range(min(2, world_size), 0, -1)]))
    for tokens, positions in ((5, [5, 5]), (5, [4]), (0, [])):
        q, k, v = (drawn(rng, 1, 2, tokens, 4) for _ in range(3))
        given = (q, k, v, [torch.arange(share) for share in positions])
        label = f"1 rank with {count(tokens, 'token')}, and positions for {positions}"
        yield rejected(label, given, backend="gloo")
    yield case([8] * world_size, dtype="float32")


def _praise(outcome: Outcome) -> str:
    sent = sum(event.bytes for event in moves(outcome, 0))
    return (
        f"the same as in one process on {ranks(outcome.world_size)}; each sent {sent:,} bytes to its right, in "
        f"{count(len(moves(outcome, 0)), 'message')}, so all keys and values went around once"
    )


EXERCISE = Exercise(
    library="ring_attention",
    number=3,
    minutes=25,
    difficulty=3,
    turn="keys and values go around; whose are here now?",
    title="keys and values around the ring",
    cases=_cases,
    needs_torch=True,
    symptoms={"digits are lost": digits_lost},
    hints=(
        "Draw three ranks, and next to each of them whose keys it has in steps 0, 1 and 2. In each step a rank sends "
        "to the right what it received in the step before. How often does it have to send until all ranks have seen "
        "all keys?",
        "Start with `kv = torch.stack([k, v])`. In step s = 0 … P - 1, kv belongs to rank source = (rank - s) % P. "
        "Unless it is the last step, call `pass_on(kv, shape, group)`, where `shape` has as many tokens as rank "
        "source - 1. Then call `block_attention(q, *kv, positions[rank], positions[source])` and `merge_attention`. "
        "At the end of the step, `kv = passing.wait()`.",
    ),
    praise=_praise,
)

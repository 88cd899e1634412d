"""Rows on the way to experts and back, worked out in one process, for several exercises."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor

    from course_utils.lessons.experts.choices import Dispatched

TOLERANCE = {"float64": 1e-10, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
ALL_TO_ONE, IDLE, DROPPED, SCATTERED = "all-to-one", "idle-expert", "choices-dropped", "not-contiguous"
"""How the choices of a case are: its key."""
GROUPS, UNEQUAL = "groups", "unequal-tokens"
"""Keys of other cases."""
_IN_WORDS = {
    ALL_TO_ONE: "all to one expert",
    IDLE: "an expert gets nothing",
    DROPPED: "some choices dropped",
    SCATTERED: "not contiguous in memory",
}
_RIGHT = "the numbers are right, but rank {rank}"


def chosen(rng: np.random.Generator, tokens: int, k: int, number: int, how: str = "") -> "Tensor":
    """Draw k different experts for each token."""
    import torch

    scores = rng.standard_normal((tokens, number))
    if how == ALL_TO_ONE:
        scores[:, number - 1] += 100
    if how == IDLE:
        scores[:, 1] -= 100
    experts = np.argsort(-scores, axis=1)[:, :k]
    if how == DROPPED:
        experts[rng.random(experts.shape) < 0.4] = -1
        experts[:1] = -1
    return torch.tensor(experts.reshape(tokens, k), dtype=torch.int64)


def ways(tokens: Sequence["Tensor"], experts: Sequence["Tensor"], here: int) -> list["Dispatched"]:
    """Work out row by row what each rank of a group has after the dispatch."""
    import torch

    from course_utils.lessons.experts.choices import Dispatched

    ranks, found = len(tokens), []
    places = [
        [[i for i, e in enumerate(choices.flatten().tolist()) if e == x] for x in range(ranks * here)]
        for choices in experts
    ]
    for rank in range(ranks):
        rows, expert = [tokens[rank][:0]], []
        for source in range(ranks):
            for local in range(here):
                for index in places[source][rank * here + local]:
                    rows.append(tokens[source][index // experts[source].shape[1]].unsqueeze(0))
                    expert.append(local)
        order = [index for of_expert in places[rank] for index in of_expert]
        own = slice(rank * here, (rank + 1) * here)
        sent = [sum(map(len, places[rank][r * here : (r + 1) * here])) for r in range(ranks)]
        received = [sum(map(len, places[s][own])) for s in range(ranks)]
        whole = torch.tensor(expert, dtype=torch.int64), torch.tensor(order, dtype=torch.int64)
        found.append(Dispatched(torch.cat(rows), *whole, sent, received))
    return found


def back(made: Sequence["Tensor"], every: Sequence["Dispatched"]) -> list["Tensor"]:
    """Return, for each rank of a group, the answers to the rows that it had sent, in the order of sending."""
    import torch

    parts = [rows.split(dispatched.received) for rows, dispatched in zip(made, every, strict=True)]
    return [torch.cat([parts[other][rank] for other in range(len(made))]) for rank in range(len(made))]


def label_of(lengths: Sequence[int], k: int, here: int, how: str, dtype: str, groups: int) -> str:
    """A case in words: how many ranks, each with how many tokens and experts."""
    label = f"{ranks(len(lengths) * groups)}, {count(here, 'expert')} on each, k = {k}, {dtype}"
    label += f", {_IN_WORDS[how]}" if how else ""
    label += ", unequal numbers of tokens" if len(set(lengths)) > 1 else ""
    return label + (f", {groups} groups" if groups > 1 else "")


def key_of(lengths: Sequence[int], how: str, groups: int) -> str:
    """The key of such a case."""
    return how or (GROUPS if groups > 1 else UNEQUAL if len(set(lengths)) > 1 else "")


def case_maker(
    harness: Callable, of_group: Callable[..., tuple[list, list, list]], all_to_alls: int
) -> Callable[..., Case]:
    """A function that makes cases: of rows on their way to experts or back, in one group of ranks or several alike.

    Args:
        harness: what runs on a rank; its last argument is the size of the group, 0 for all ranks.
        of_group: (tokens of each rank, k, experts on each rank, how they are chosen, dtype, width) → for each rank of a
            group its arguments, what it must have, and the bytes that are enough, drawn anew.
        all_to_alls: how many there are, forward and backward together.
    """

    def case(
        lengths: Sequence[int],
        k: int,
        here: int,
        how: str = "",
        dtype: str = "float64",
        width: int = 3,
        groups: int = 1,
    ) -> Case:
        drawn = [of_group(lengths, k, here, how, dtype, width) for _ in range(groups)]
        given, expected, enough = ([entry for part in parts for entry in part] for parts in zip(*drawn, strict=True))
        size = len(lengths) if groups > 1 else 0
        label, key = label_of(lengths, k, here, how, dtype, groups), key_of(lengths, how, groups)
        more = {"backend": "gloo", "harness": harness, "judge": rows_once(enough, all_to_alls), "key": key}
        return Case(label, [(*arguments, size) for arguments in given], expected, tolerance=TOLERANCE[dtype], **more)

    return case


def gradient_of(tensor: "Tensor") -> "Tensor | None":
    """Return its gradient; of a tensor without numbers zeros, if nothing went backward through it."""
    import torch

    return torch.zeros_like(tensor.detach()) if tensor.grad is None and not tensor.numel() else tensor.grad


def group_of(size: int) -> Any:
    """Return the group of `size` neighbours that this rank belongs to; None, which means all ranks, if size is 0."""
    import torch.distributed as dist

    return dist.new_subgroups(size)[0] if size else None


def bytes_of_rows(dispatched: "Dispatched | tuple", row: int) -> int:
    """Return the most bytes that rows of `row` bytes and their gradients may take.

    A number may travel with each row (its expert, or its weight), and before them one for each expert.
    """
    *_, sent, received = dispatched
    return (sum(sent) + sum(received)) * (row + 8) + 512


def rows_once(enough: Sequence[int], all_to_alls: int) -> Callable[[Outcome], Finding | None]:
    """A judge of numbers that are right: did each rank's rows travel once, to the ranks that need them?

    Args:
        enough: bytes of each rank's all-to-alls, its rows for itself among them.
        all_to_alls: how many there are on each rank.
    """

    def judge(outcome: Outcome) -> Finding | None:
        for reply, most in zip(outcome.attempt.replies, enough, strict=True):
            made = [event.bytes for event in reply.events or () if event.name.startswith("all_to_all")]
            if sum(made) > most:
                words = f"{_RIGHT} sent {{got:,}} bytes, which is more than its rows have"
                return own("more-than-its-rows", words, rank=reply.rank, got=sum(made))
        if found := only_to_their_ranks(outcome):
            return found
        for reply in outcome.attempt.replies:
            made = [event for event in reply.events or () if event.name.startswith("all_to_all")]
            if len(made) > all_to_alls:
                words = f"{_RIGHT} took part in {{got}} all-to-alls, and {{due}} are enough, forward and backward"
                return own("more-messages", words, rank=reply.rank, got=len(made), due=all_to_alls)
        return None

    return judge


def only_to_their_ranks(outcome: Outcome) -> Finding | None:
    """Judge numbers that are right: did rows go to the ranks that need them, and to no others?"""
    for reply in outcome.attempt.replies:
        for event in reply.events or ():
            if event.kind == "collective" and not event.name.startswith("all_to_all") and event.bytes > 256:
                words = f"{_RIGHT} called {{call}} with {{bytes:,}} bytes, although each row is needed on one rank only"
                return own("to-all-ranks", words, rank=reply.rank, call=event.name, bytes=event.bytes)
    return None

"""The check of `hybrid_step`: the gradients of one process with the whole batch, and where the activations went."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Outcome
from course_utils.checks.finding import Finding, Kind, own
from course_utils.checks.symptoms import collectives, same
from course_utils.checks.torch_cases import drawn
from course_utils.lessons.hybrid_and_sharded.checks.networks import (
    ASKS,
    CALLS,
    CONVOLUTIONS,
    DENSE,
    FORWARD,
    GRADIENT,
    LOSS,
    BothParts,
    gradients_of,
    step,
)
from course_utils.words import ranks

BOOKKEEPING = 64
"""Bytes that an answer may send beside what must travel."""


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    import torch

    def case(
        size: int,
        shard: int,
        about: str = "",
        *,
        regression: bool = False,
        strided: bool = False,
        key: str = "",
        **more: Any,
    ) -> Case:
        network = BothParts(int(rng.integers(2**31)), regression=regression, **more)
        x = drawn(rng, size * shard, 1, 6, 6, dtype=network.dtype)
        y = torch.tensor(rng.integers(3, size=size * shard))
        y = drawn(rng, size * shard, 3, dtype=network.dtype) if regression else y
        where = [slice(r, None, size) if strided else slice(r * shard, (r + 1) * shard) for r in range(size)]
        given = [(network, x, y, part) for part in where]
        label = f"{ranks(size)} with {shard} of {size * shard} examples{about}"
        more = {"backend": "gloo", "harness": step, "judge": _only_what_must, "key": key}
        tolerance = 1e-9 if network.dtype == "float64" else 1e-4
        return Case(label, given, _expected(network, given), tolerance=tolerance, **more)

    yield case(min(2, world_size), 3)
    yield case(world_size, 2)
    yield case(world_size, 3, ", activations turned round in memory", turned=True, key="turned")
    images = {"images": True, "turned": True, "key": "images"}
    yield case(min(2, world_size), 2, ", images until the fully connected layers", **images)
    yield case(world_size, 2, ", strided shards, another loss", regression=True, strided=True)
    yield case(min(3, world_size), 1, ", another loss", regression=True)
    yield case(min(2, world_size), 3, ", float32", dtype="float32", key="float32")
    yield in_a_row(case(min(2, world_size), 3), case(min(2, world_size), 3))
    yield in_a_row(case(min(2, world_size), 4), case(min(2, world_size), 2))
    yield case(1, 4)


def _expected(network: BothParts, given: Sequence[tuple]) -> list[dict]:
    """What each rank must have, by one process."""
    _, x, y, _ = given[0]
    order = [example for _, _, _, where in given for example in range(len(x))[where]]
    found = gradients_of(network, x[order], y[order]) | {FORWARD: 1, ASKS: False}
    none_of_dense = {GRADIENT.format(DENSE): dict.fromkeys(found[GRADIENT.format(DENSE)])}
    elsewhere = found | none_of_dense | {LOSS: 0.0, CALLS: 0}
    return [found | {CALLS: ...}] + [elsewhere] * (len(given) - 1)


def _activations(case: Case) -> int:
    """Bytes of one rank's activations."""
    network, x, _, where = case.arguments[0]
    return network.activations(x[where]).nbytes


def _only_what_must(outcome: Outcome) -> Finding | None:
    """Where the gradients are right: has anybody sent more than it must?"""
    case = outcome.case
    _, _, y, where = case.arguments[0]
    convolutions = sum(gradient.nbytes for gradient in case.expected[0][GRADIENT.format(CONVOLUTIONS)].values())
    targets = y[where].nbytes
    for rank in range(outcome.world_size):
        if outcome.world_size > 1 and _spread(outcome, rank):
            words = "the gradients are right, but rank {rank} was sent the activations of all ranks, or their gradients"
            return own("activations-everywhere", words, rank=rank)
        most = _activations(case) * (1 if rank else outcome.world_size + 1) + targets + convolutions
        sent = outcome.run.bytes_per_rank[rank]
        if sent > most + BOOKKEEPING:
            return Finding(Kind.BYTES, rank, got=sent, expected=most)
    return None


def _spread(outcome: Outcome, rank: int) -> bool:
    """Whether activations, or their gradients, came to a rank that needs only its own."""
    wide = [call for call in collectives(outcome, rank) if call.name.startswith(("all_gather", "broadcast"))]
    return any(call.bytes >= _activations(outcome.case) for call in wide)


def _right_on_rank_0(case: Case, outcome: Outcome, part: str) -> bool:
    """Whether rank 0 has the right numbers in a part of the result."""
    return same(outcome.results[0][part], (case.expected or ())[0][part], case.tolerance)


def _loss_wrong(case: Case, outcome: Outcome) -> bool:
    return not _right_on_rank_0(case, outcome, LOSS)


def _dense_wrong(case: Case, outcome: Outcome) -> bool:
    return not _right_on_rank_0(case, outcome, GRADIENT.format(DENSE))


def _convolutions_wrong(case: Case, outcome: Outcome) -> bool:
    found = outcome.finding
    return found is not None and GRADIENT.format(CONVOLUTIONS) in found.where


def _dense_elsewhere(case: Case, outcome: Outcome) -> bool:
    return any(result is not NO_RESULT and result[CALLS] for result in outcome.results[1:])


EXERCISE = Exercise(
    library="hybrid_step",
    number=6,
    minutes=20,
    difficulty=3,
    turn="send activations to rank 0 and their gradients back, then add up",
    title="convolutions on all ranks, the fully connected layers on one",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "Autograd does not follow a tensor from one rank to another. With which tensor does rank 0's part of the graph "
        "begin? What does every rank need from rank 0 so that it can go backward through its own part?",
        "Every rank calls `dist.gather` with `activations.detach().contiguous()` and again with its targets. On rank "
        "0, `whole = torch.cat(shards).requires_grad_()` goes through `dense` and the loss, and after `backward()` you "
        "scatter `list(whole.grad.chunk(ranks))`. Every rank then calls `activations.backward(gradient)` and, for each "
        "gradient of the convolutions, `dist.all_reduce`.",
    ),
    symptoms={
        "another rank than 0 uses them": _dense_elsewhere,
        "the loss on rank 0 is wrong": _loss_wrong,
        "the fully connected layers' gradients are wrong": _dense_wrong,
        "only the convolutions' gradients are wrong": _convolutions_wrong,
    },
    praise=lambda outcome: (
        "the gradients are those of one process with the whole batch; the activations went to rank 0 only, "
        "and every rank received its own part of their gradients"
    ),
)

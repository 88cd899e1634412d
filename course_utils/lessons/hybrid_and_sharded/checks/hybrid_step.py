"""The check of `hybrid_step`: the gradients of one process with the whole batch, and where the activations went."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.compare import kind_of
from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, collectives, hangs, raised, same, says
from course_utils.checks.torch_cases import drawn
from course_utils.lessons.hybrid_and_sharded.checks import LESSON
from course_utils.lessons.hybrid_and_sharded.checks.networks import (
    CALLS,
    CONVOLUTIONS,
    DENSE,
    LOSS,
    WEIGHTS,
    BothParts,
    gradients_of,
    step,
)
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor

BOOKKEEPING = 64
"""Bytes that an answer may send beside what must travel."""


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    import torch

    def case(size: int, shard: int, about: str = "", *, regression: bool = False, **more: bool) -> Case:
        network = BothParts(int(rng.integers(2**31)), regression=regression, **more)
        x = drawn(rng, size * shard, 1, 6, 6)
        y = drawn(rng, size * shard, 3) if regression else torch.tensor(rng.integers(3, size=size * shard))
        strided = "strided" in about
        where = [slice(r, None, size) if strided else slice(r * shard, (r + 1) * shard) for r in range(size)]
        given = [(network, x, y, one) for one in where]
        label = f"{ranks(size)} with {shard} of {size * shard} examples{about}"
        more = {"backend": "gloo", "harness": step, "judge": _only_what_must}
        return Case(label, given, _expected(network, given), tolerance=1e-9, **more)

    yield case(min(2, world_size), 3)
    yield case(world_size, 2)
    yield case(world_size, 3, ", activations turned round in memory", turned=True)
    yield case(min(2, world_size), 2, ", images until the fully connected layers", images=True, turned=True)
    yield case(world_size, 2, ", strided shards, another loss", regression=True)
    yield case(min(3, world_size), 1, ", another loss", regression=True)
    yield case(1, 4)


def _expected(network: BothParts, given: Sequence[tuple]) -> list[dict]:
    """What each rank must have, by one process."""
    _, x, y, _ = given[0]
    order = [one for _, _, _, where in given for one in range(len(x))[where]]
    found = gradients_of(network, x[order], y[order])
    elsewhere = found | {name: None for name in found if _of(DENSE, name)} | {LOSS: 0.0, CALLS: 0}
    return [found | {CALLS: ...}] + [elsewhere] * (len(given) - 1)


def _activations(case: Case) -> int:
    """Bytes of one rank's activations."""
    network, x, _, where = case.arguments[0]
    return network.activations(x[where]).numel() * 8


def _only_what_must(outcome: Outcome) -> str | None:
    """Where the gradients are right: has anybody sent more than it must?"""
    case = outcome.case
    _, _, y, where = case.arguments[0]
    convolutions = sum(g.numel() * 8 for g in _part(case, CONVOLUTIONS).values())
    targets = y[where].numel() * y.element_size()
    for rank in range(outcome.world_size):
        if outcome.world_size > 1 and _spread(outcome, rank):
            return f"the gradients are right, but rank {rank} was sent the activations of all ranks, or their gradients"
        most = _activations(case) * (1 if rank else outcome.world_size + 1) + targets + convolutions
        sent = outcome.run.bytes_per_rank[rank]
        if sent > most + BOOKKEEPING:
            return f"the gradients are right, but rank {rank} put in {sent:,} bytes; {most:,} are enough"
    return None


def _spread(outcome: Outcome, rank: int) -> bool:
    """Whether activations, or their gradients, came to a rank that needs only its own."""
    wide = [call for call in collectives(outcome, rank) if call.name.startswith(("all_gather", "broadcast"))]
    return any(call.bytes >= _activations(outcome.case) for call in wide)


def _of(part: str, name: str) -> bool:
    """Whether an entry is a gradient of this part."""
    return part in name and not name.startswith(WEIGHTS)


def _part(case: Case, part: str) -> dict:
    return {name: value for name, value in case.expected[0].items() if _of(part, name)}


def _gradients_are(words: str, change: Callable[["Tensor", int], "Tensor"]) -> Recogniser:
    """A recogniser of one part's gradients that are the right ones, changed by a function of (gradient, P)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        size, wanted = outcome.world_size, _part(case, words)
        found = outcome.results[:1] if words == DENSE else outcome.results
        return size > 1 and all(
            same(result[name], change(value, size), 1e-9) for result in found for name, value in wanted.items()
        )

    return recognises


def _shares(case: Case) -> list[dict]:
    """For each rank the gradients of its shard's share of the whole batch's mean loss."""
    found = []
    for network, x, y, where in case.arguments:
        own = gradients_of(network, x[where], y[where])
        found.append({name: value / len(case.arguments) for name, value in own.items() if name != LOSS})
    return found


def _nobody_added(case: Case, outcome: Outcome) -> bool:
    pairs = zip(outcome.results, _shares(case), strict=True)
    names = _part(case, CONVOLUTIONS)
    return outcome.world_size > 1 and all(same(got[name], own[name], 1e-9) for got, own in pairs for name in names)


def _own_examples(case: Case, outcome: Outcome) -> bool:
    """Rank 0's fully connected layers have seen its own examples alone."""
    size, own = outcome.world_size, _shares(case)[0]
    names = _part(case, DENSE)
    return size > 1 and all(same(outcome.results[0][name], own[name] * size, 1e-9) for name in names)


def _none_there(case: Case, outcome: Outcome) -> bool:
    """The convolutions have no gradient, or had none when somebody wanted to add it."""
    missing = [r[name] for r in outcome.results if r is not NO_RESULT for name in _part(case, CONVOLUTIONS)]
    return raised(outcome, "NoneType") or any(value is None for value in missing)


def _dense_elsewhere(case: Case, outcome: Outcome) -> bool:
    others = [result for result in outcome.results[1:] if result is not NO_RESULT]
    return any(result[CALLS] or any(result[name] is not None for name in _part(case, DENSE)) for result in others)


def _loss_elsewhere(case: Case, outcome: Outcome) -> bool:
    return any(not same(result[LOSS], 0.0) for result in outcome.results[1:] if kind_of(result[LOSS]) != "tensor")


def _loss_no_number(case: Case, outcome: Outcome) -> bool:
    return any(kind_of(result[LOSS]) != "float" for result in outcome.results)


def _weights_changed(case: Case, outcome: Outcome) -> bool:
    return WEIGHTS in outcome.wrong


def _wrong_shape(case: Case, outcome: Outcome) -> bool:
    return any(raised(outcome, words) for words in ("batch_size", "size of tensor", "shape"))


def _not_in_a_row(case: Case, outcome: Outcome) -> bool:
    """Only where the activations lie in memory in another order are the gradients wrong, or is there an error."""
    stuck = any(raised(outcome, words) for words in ("contiguous", "view size"))
    return stuck or case.arguments[0][0].turned and "the gradients are right" not in outcome.wrong


HYBRID_STEP = Exercise(
    name="hybrid_step",
    library="course_utils.lessons.hybrid_and_sharded.hybrid_step:hybrid_step",
    lesson=LESSON,
    place=2,
    minutes=20,
    difficulty=3,
    turn="activations to rank 0, gradients back, then a sum",
    title="convolutions on all ranks, the fully connected layers on one",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "Autograd does not follow a tensor to another rank. From which tensor does rank 0 begin its part of the graph, "
        "what does every rank need from it to go on backward in its own, and with which call?",
        "`dist.gather` of `activations.detach().contiguous()` and of the targets; on rank 0 "
        "`whole = torch.cat(shards).requires_grad_()`, the loss, `backward()`, and `dist.scatter` of "
        "`list(whole.grad.chunk(ranks))`; on every rank `activations.backward(gradient)`, then `dist.all_reduce` of "
        "each gradient of the convolutions.",
    ),
    mistakes=(
        Mistake("Do the numbers lie in memory one behind the other, as they are to be sent?", _not_in_a_row),
        Mistake("Does every rank make the same calls?", hangs),
        Mistake("Whose targets belong to the activations of all ranks?", _wrong_shape),
        Mistake("How does the gradient get from rank 0 into the convolutions of each rank?", _none_there),
        Mistake("Which rank has the fully connected layers?", _dense_elsewhere),
        Mistake("Who changes the weights: this function, or the optimizer?", _weights_changed),
        Mistake("A number, or a tensor?", _loss_no_number),
        Mistake("What does the docstring promise on ranks that have no loss?", _loss_elsewhere),
        Mistake("Whose activations go through the fully connected layers?", _own_examples),
        Mistake(
            "The loss is the mean over the whole batch already: are the ranks' shares added, or averaged?",
            _gradients_are(CONVOLUTIONS, lambda gradient, size: gradient / size),
        ),
        Mistake(
            "Is the loss the mean over the whole batch, or a sum of the shards' means?",
            _gradients_are(DENSE, lambda gradient, size: gradient * size),
        ),
        Mistake("Which examples does a rank's gradient of the convolutions come from?", _nobody_added),
        Mistake("Which rank needs whose activations, and which part of their gradients?", says("of all ranks, or")),
        Mistake("What must travel, and how often?", says("bytes")),
    ),
    praise=lambda outcome: (
        "the gradients of one process with the whole batch; activations went to rank 0 alone, "
        "and every rank got back its own part of their gradients"
    ),
)

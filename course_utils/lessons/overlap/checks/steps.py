"""Training steps whose every all-reduce is watched: what `overlapped_allreduce` is tried on.

The model is a chain of layers with a parameter each. In each step every rank says which parameters it uses, in which
order: one may be used twice, not at all, or in another order than on other ranks.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.torch_cases import marked
from course_utils.lessons.overlap.checks.common import mean_of
from course_utils.words import join

if TYPE_CHECKING:
    from torch import Tensor

    from course_utils.trace.events import Event

WIDTH = 4
Order = Sequence[int]
BACKWARD, LAYER, UNDER_WAY = "backward", "a layer", "an all-reduce is under way"
"""Phases: of each step, then a moment for each layer but the first, and for each all-reduce not yet waited for."""
LIST = "the order of the caller's list"


def loss_of(parameters: Sequence["Tensor"], x: "Tensor", order: Order, mark: Callable | None = None) -> "Tensor":
    """A chain of layers, one for each entry of `order`; mark(values) looks on between two of them."""
    h = x
    for index in order:
        h = mark(h) if mark else h
        weight = parameters[index].to(x.dtype)
        h = h + ((h @ weight.T).tanh() @ weight if weight.dim() == 2 else (h * weight).tanh())
    return h.square().mean()


def gradients_after(
    function: Callable,
    weights: Sequence["Tensor"],
    listed: Sequence[int],
    frozen: Sequence[int],
    bucket_bytes: int,
    others: bool,
    steps: Sequence[tuple["Tensor", Order]],
) -> dict:
    """Call the learner's function, then train for some steps; return the gradients that each step would use.

    `others`: call it for another model before, and for one more after, which are not trained.
    """
    from torch import nn

    from course_utils.trace.recorder import phase, recorder

    def note(name: str) -> None:
        with phase(name):
            pass

    parameters = [nn.Parameter(values.clone(), requires_grad=k not in frozen) for k, values in enumerate(weights)]
    ahead, behind = ([nn.Parameter(values.clone()) for values in weights] for _ in range(2))
    if others:
        function(ahead, bucket_bytes)
    callers = [parameters[k] for k in listed]
    finish = function(callers, bucket_bytes)
    if others:
        function(behind, bucket_bytes)
    order_now = [next(k for k, parameter in enumerate(parameters) if parameter is other) for other in callers]
    found: dict = {LIST: join(list(map(str, order_now)))}
    for number, (x, order) in enumerate(steps):
        for parameter in parameters:
            parameter.grad = None
        loss = loss_of(parameters, x, order, lambda h: marked(h, lambda: note(LAYER)))
        with phase(BACKWARD):
            loss.backward()
        for _ in range(len(recorder.open)):
            note(UNDER_WAY)
        finish()
        found[unwaited(number)] = len(recorder.open)
        for k, parameter in enumerate(parameters):
            found[named(k, number)] = copy_of(parameter.grad)
    return found


def means_by_default(function: Callable, numbers: Sequence[int]) -> dict[str, float]:
    """Call the learner's function without a limit, for parameters of so many numbers; return what one step leaves."""
    import torch
    from torch import nn

    parameters = [nn.Parameter(torch.zeros(number, dtype=torch.float64)) for number in numbers]
    finish = function(parameters)
    sum(parameter.sum() for parameter in parameters).backward()
    finish()
    return {f"the mean of the gradient of parameter {k}": float(p.grad.mean()) for k, p in enumerate(parameters)}


def copy_of(gradient: "Tensor | None") -> "Tensor | None":
    """What it holds now, whatever arrives later."""
    return None if gradient is None else gradient.detach().clone()


def named(k: int, step: int) -> str:
    """What a learner calls the gradient."""
    return f"the gradient of parameter {k} (step {step})"


def unwaited(step: int) -> str:
    """What a learner calls the number of all-reduces that are left after `finish`."""
    return f"the number of all-reduces that were not waited for before the step (step {step})"


def step_of(case: Case, name: str) -> int | None:
    """The step to which an entry of a result belongs; None where to none."""
    parameters = range(len(case.arguments[0][0]))
    steps = range(steps_of(case))
    return next((step for step in steps if name in (unwaited(step), *(named(k, step) for k in parameters))), None)


def expected(given: Sequence[tuple]) -> list[dict]:
    """What every rank must have after each step, by one process."""
    weights, listed, frozen, *_, steps = given[0]
    found: dict = {LIST: join(list(map(str, listed)))}
    for number in range(len(steps)):
        means = mean_of([gradients_of(weights, frozen, *arguments[-1][number]) for arguments in given])
        found[unwaited(number)] = 0
        for k, mean in enumerate(means):
            nobodys = mean is None and k not in frozen
            found[named(k, number)] = 0 * weights[k] if nobodys else mean
    return [found] * len(given)


def gradients_of(
    weights: Sequence["Tensor"], frozen: Sequence[int], x: "Tensor", order: Order
) -> list["Tensor | None"]:
    """One rank's own gradients."""
    parameters = [values.clone().requires_grad_(k not in frozen) for k, values in enumerate(weights)]
    loss_of(parameters, x, order).backward()
    return [parameter.grad for parameter in parameters]


def buckets_of(case: Case) -> list[list[int]]:
    """The parameters of each bucket."""
    from course_utils.lessons.overlap.buckets import make_buckets

    weights, listed, frozen, bucket_bytes, *_ = case.arguments[0]
    trained = [k for k in dict.fromkeys(listed) if k not in frozen]
    dtypes = [weights[k].dtype for k in trained]
    return [
        [trained[index] for index in bucket] for bucket in make_buckets(bytes_of(case, trained), bucket_bytes, dtypes)
    ]


def bytes_of(case: Case, parameters: Sequence[int]) -> list[int]:
    """The bytes of each of these gradients."""
    weights = case.arguments[0][0]
    return [weights[k].numel() * weights[k].element_size() for k in parameters]


def steps_of(case: Case) -> int:
    """How many steps the case trains."""
    return len(case.arguments[0][-1])


def passes(outcome: Outcome, rank: int) -> Iterator[tuple["Event", dict[int, float], int]]:
    """For each step the backward pass, when it had come through with each layer, and how much was under way then."""
    phases = [event for event in outcome.attempt.replies[rank].events if event.kind == "phase"]
    backward = [phase for phase in phases if phase.name == BACKWARD]
    ends = [*(phase.start for phase in backward[1:]), math.inf]
    for this, end, (_, order) in zip(backward, ends, outcome.case.arguments[rank][-1], strict=True):
        inside = [phase for phase in phases if this.start <= phase.start < end]
        layers = [phase.start for phase in inside if phase.name == LAYER]
        under_way = sum(phase.name == UNDER_WAY for phase in inside)
        yield this, {len(order) - 1 - n: start for n, start in enumerate(layers)}, under_way  # the last layer first


def could(buckets: Sequence[Sequence[int]], order: Order, position: int) -> int:
    """How many buckets may have left when the layers from `position` on are done: none before all those ahead of it."""
    ready = set(order) - set(order[:position])
    return next((n for n, bucket in enumerate(buckets) if not ready.issuperset(bucket)), len(buckets))

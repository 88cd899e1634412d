"""Training steps whose every all-reduce is watched: what `overlapped_allreduce` is tried on.

The model is a chain of layers with a parameter each. In each step every rank says which parameters it uses, in which
order: one may be used twice, not at all, or in another order than on other ranks.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.torch_cases import marked
from course_utils.lessons.overlap.checks.common import mean_of

if TYPE_CHECKING:
    from torch import Tensor

    from course_utils.trace.events import Event

WIDTH = 4
Order = Sequence[int]
UNDER_WAY = "under way: "
LAYER = "layer "
LIST = "the caller's list, by places in the model"
UNWAITED = "the number of all-reduces that nobody waited for before the step"


def loss_of(parameters: Sequence["Tensor"], x: "Tensor", order: Order, mark: Callable | None = None) -> "Tensor":
    """A chain of layers, one for each entry of `order`; mark(values, place) looks on between two of them."""
    h = x
    for place, index in enumerate(order):
        h = mark(h, place) if mark else h
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

    def note(words: str) -> None:
        with phase(words):
            pass

    parameters = [nn.Parameter(values.clone(), requires_grad=k not in frozen) for k, values in enumerate(weights)]
    ahead, behind = ([nn.Parameter(values.clone()) for values in weights] for _ in range(2))
    if others:
        function(ahead, bucket_bytes)
    callers = [parameters[k] for k in listed]
    finish = function(callers, bucket_bytes)
    if others:
        function(behind, bucket_bytes)
    found: dict = {LIST: [next(k for k, one in enumerate(parameters) if one is other) for other in callers]}
    for number, (x, order) in enumerate(steps):
        for parameter in parameters:
            parameter.grad = None
        loss = loss_of(parameters, x, order, lambda h, place: marked(h, lambda: note(f"{LAYER}{place}")))
        with phase("backward"):
            loss.backward()
        note(f"{UNDER_WAY}{len(recorder.open)}")
        finish()
        found[f"{UNWAITED} (step {number})"] = len(recorder.open)
        for k, parameter in enumerate(parameters):
            found[named(k, number)] = copy_of(parameter.grad)
    return found


def copy_of(gradient: "Tensor | None") -> "Tensor | None":
    """What it holds now, whatever arrives later."""
    return None if gradient is None else gradient.detach().clone()


def named(k: int, step: int) -> str:
    """What a learner calls the gradient."""
    return f"the gradient of parameter {k} (step {step})"


def expected(given: Sequence[tuple]) -> list[dict]:
    """What every rank must have after each step, by one process."""
    weights, listed, frozen, *_, steps = given[0]
    found: dict = {LIST: list(listed)}
    for number in range(len(steps)):
        means = mean_of([gradients_of(weights, frozen, *own[-1][number]) for own in given])
        found[f"{UNWAITED} (step {number})"] = 0
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
        [trained[place] for place in bucket] for bucket in make_buckets(bytes_of(case, trained), bucket_bytes, dtypes)
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
    under_way = [int(one.name.removeprefix(UNDER_WAY)) for one in phases if one.name.startswith(UNDER_WAY)]
    backward = [one for one in phases if one.name == "backward"]
    for one, left in zip(backward, under_way, strict=True):
        layers = [mark for mark in phases if mark.name.startswith(LAYER) and one.start <= mark.start <= one.end]
        yield one, {int(mark.name.removeprefix(LAYER)): mark.start for mark in layers}, left


def could(buckets: Sequence[Sequence[int]], order: Order, place: int) -> int:
    """How many buckets may have left when the layers from `place` on are done: none before all those ahead of it."""
    ready = set(order) - set(order[:place])
    return next((n for n, bucket in enumerate(buckets) if not ready.issuperset(bucket)), len(buckets))

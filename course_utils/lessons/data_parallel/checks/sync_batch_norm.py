"""The check of `sync_batch_norm`: torch's batch norm on the whole batch at once, forward and backward."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import after_another_call, fewer
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.torch_cases import gradient_for
from course_utils.lessons.data_parallel.checks.common import tensor
from course_utils.trace.recorder import phase
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_EPS = 1e-5
INPUTS = ("x", "weight", "bias")
NAMES = ("the mean", "the variance", "y", *(f"the gradient of {name}" for name in INPUTS))


def forward_and_backward(
    function: Callable, x: "Tensor", weight: "Tensor", bias: "Tensor", eps: float | None, upstream: "Tensor"
) -> dict[str, Any]:
    """Call the learner's function, then go backward from `y` with the gradient `upstream`; both as phases.

    eps: None is not handed over, so that the function's own default counts.
    """
    more = () if eps is None else (eps,)
    inputs = [values.clone().requires_grad_() for values in (x, weight, bias)]
    with phase("forward"):
        y, *statistics = function(*inputs, *more)
        mean, variance = (statistic.detach() for statistic in statistics)
    with phase("backward"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own of 700 characters, once per rank
        if y.requires_grad:
            y.backward(gradient_for(y, upstream))
    found = [mean.to(x.dtype), variance.to(x.dtype), y.detach(), *[values.grad for values in inputs]]
    return after([values.detach() for values in inputs]) | dict(zip(NAMES, found, strict=True))


def after(inputs: Sequence["Tensor"]) -> dict[str, "Tensor"]:
    """What the caller's own numbers are in the end."""
    return {f"{name} after the call": values for name, values in zip(INPUTS, inputs, strict=True)}


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        rows: Sequence[int],
        features: int,
        dtype: str = "float64",
        eps: float | None = DEFAULT_EPS,
        centre: float = 1.0,
        tolerance: float | None = None,
        of_weight: str = "",
        view: bool = False,
    ) -> Case:
        of_weight = of_weight or dtype
        offset = centre * (1 + rng.random(features))
        x = [(offset + rng.standard_normal((n, features)) * (rank + 1)).astype(dtype) for rank, n in enumerate(rows)]
        signs = rng.choice([-1, 1], features)
        weight, bias = ((signs * rng.uniform(0.5, 2, features)).astype(of_weight) for _ in range(2))
        upstream = [rng.standard_normal((n, features)).astype(dtype) for n in rows]
        given = [tensor(share.T).T if view else tensor(share) for share in x]
        arguments = [(share, tensor(weight), tensor(bias), eps, tensor(up)) for share, up in zip(given, upstream)]
        about = f", mean about {centre:.0f}" if centre > 10 else ""
        label = f"{ranks(len(rows))} with {', '.join(map(str, rows))} examples, {features} features, {dtype}{about}"
        label += f", weight and bias {of_weight}" * (of_weight != dtype) + ", x a transposed view" * view
        label += ", eps not named" * (eps is None)
        expected = by_torch(arguments)
        tolerance = tolerance or {"float64": 1e-8, "float32": 1e-4}[dtype]
        keys = {"default-eps": eps is None, "large-mean": centre > 10, "no-examples": 0 in rows}
        key = next((key for key, is_so in keys.items() if is_so), "")
        more = {"backend": "gloo", "tolerance": tolerance, "harness": forward_and_backward, "judge": _one_each}
        return Case(label, arguments, expected, **more, key=key)

    yield case([8] * world_size, 3)
    yield case(_unlike(rng, 3, 12, world_size), 4, eps=0.5)
    yield case(_rows([16, 4, 1, 7], world_size), 2, "float32")
    yield case(_rows([9, 0, 5, 3], world_size), 3)
    for size in fewer(world_size):
        yield case(_unlike(rng, 2, 20, size), int(rng.integers(1, 6)))
    yield case(_rows([200, 150, 100, 50], world_size), 3, "float32", centre=3000.0, tolerance=3e-3)
    yield case(_rows([6, 3, 9], world_size), 2, "float32", of_weight="float64")
    yield case(_rows([5, 8], world_size), 3, "float64", of_weight="float32", tolerance=1e-6, view=True)
    yield case(_rows([5, 2, 7], world_size), 4, "float16", tolerance=1e-2)
    yield after_another_call(case(_rows([4, 7], world_size), 3))
    yield case(_rows([5, 6], world_size), 2, eps=None)
    yield case([64] * world_size, 32, "float32")


def _unlike(rng: np.random.Generator, low: int, high: int, world_size: int) -> list[int]:
    """How many examples each rank has, none as many as all have on average: there its own number would do."""
    while True:
        rows = rng.integers(low, high, world_size)
        if world_size == 1 or (rows * world_size != rows.sum()).all():
            return rows.tolist()


def _rows(lengths: Sequence[int], world_size: int) -> list[int]:
    """How many examples each rank has: these numbers, again and again."""
    return [lengths[rank % len(lengths)] for rank in range(world_size)]


def by_torch(arguments: Sequence[tuple]) -> list[dict[str, "Tensor"]]:
    """What each rank must have, from one batch norm over the examples of all ranks, in float64."""
    import torch
    from torch.nn import functional

    shares, weights, biases, epsilons, upstream = zip(*arguments, strict=True)
    whole = torch.cat(shares).double().requires_grad_()
    plain = functional.batch_norm(whole, None, None, training=True, eps=epsilons[0] or DEFAULT_EPS)
    y = plain * weights[0].double() + biases[0].double()
    y.backward(torch.cat(upstream).double())
    variance, mean = torch.var_mean(whole.detach(), dim=0, correction=0)
    lengths = [len(share) for share in shares]
    found = []
    for normal, out, gradient, up in zip(
        plain.detach().split(lengths), y.detach().split(lengths), whole.grad.split(lengths), upstream, strict=True
    ):
        numbers = [mean, variance, out, gradient, (normal * up).sum(dim=0), up.double().sum(dim=0)]
        dtypes = [shares[0].dtype] * 4 + [weights[0].dtype] * 2
        found.append(dict(zip(NAMES, [number.to(dtype) for number, dtype in zip(numbers, dtypes)], strict=True)))
    return [after(given[:3]) | numbers for given, numbers in zip(arguments, found, strict=True)]


def _calls(outcome: Outcome, rank: int, name: str) -> list:
    """The collective calls of `rank` during its phase of that name."""
    events = outcome.attempt.replies[rank].events or ()
    spans = [event for event in events if event.kind == "phase" and event.name == name]
    return [
        event
        for event in events
        if event.kind == "collective" and any(span.start <= event.start <= span.end for span in spans)
    ]


def _one_each(outcome: Outcome) -> Finding | None:
    size, features = outcome.world_size, outcome.case.arguments[0][0].shape[1]
    for name, share in (("forward", 1), ("backward", size)):
        for rank in range(size):
            calls = _calls(outcome, rank, name)
            if len(calls) != 1 and (calls or size > 1):  # one rank alone has nothing to share
                words = (
                    "the numbers are right, but rank {rank} made {got} collective calls in the {phase} pass, expected 1"
                )
                return own("not-one-collective", words, rank=rank, got=len(calls), phase=name)
            most = 8 * (2 * features + 1) * share
            if calls and calls[0].bytes > most:
                words = (
                    "the numbers are right, but {who} sent {got:,} bytes in the {phase} pass; {expected:,} are enough"
                )
                return own("too-many-bytes", words, rank=rank, got=calls[0].bytes, expected=most, phase=name)
    return None


def _unlike_means(case: Case, outcome: Outcome) -> bool:
    return len({len(given[0]) for given in case.arguments}) > 1 and outcome.finding.where == ("the mean",)


EXERCISE = Exercise(
    library="batch_norm",
    number=6,
    minutes=20,
    difficulty=3,
    turn="put all sums into one tensor, and add it up once",
    title="batch norm over all ranks",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "From which sums over the examples can you compute the mean and the variance? Sums can be added up over the "
        "ranks, but means and variances can't. How many numbers are that, and do they fit into one tensor?",
        "Take the `torch.cat` of the sums of x, the sums of x², and the number of examples, all in float64, and one "
        "`all_reduce_sum` of it. Then mean = sums / N and variance = sums of squares / N − mean².",
    ),
    symptoms={"ranks with different numbers of examples find another mean": _unlike_means},
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} agree with one batch norm over all examples, gradients too; "
        f"one all-reduce in the forward pass ({_calls(outcome, 0, 'forward')[0].bytes:,} bytes), and one in the "
        "backward pass"
    ),
)

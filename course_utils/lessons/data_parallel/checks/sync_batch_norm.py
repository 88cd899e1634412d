"""The check of `sync_batch_norm`: torch's batch norm on the whole batch at once, forward and backward."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import hangs, raised
from course_utils.lessons.data_parallel.checks import LESSON
from course_utils.lessons.data_parallel.checks.common import same, tensor
from course_utils.trace.recorder import phase
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor

NAMES = ("y", "the mean", "the variance", "the gradient of x", "the gradient of weight", "the gradient of bias")


def forward_and_backward(
    function: Callable, x: "Tensor", weight: "Tensor", bias: "Tensor", eps: float, upstream: "Tensor"
) -> dict[str, Any]:
    """Call the learner's function, then go backward from `y` with the gradient `upstream`; both as phases."""
    inputs = [values.clone().requires_grad_() for values in (x, weight, bias)]
    with phase("forward"):
        y, mean, variance = function(*inputs, eps)
    with phase("backward"):
        y.backward(upstream)
    found = [y.detach(), mean.detach(), variance.detach(), *[values.grad for values in inputs]]
    return dict(zip(NAMES, found, strict=True))


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        rows: Sequence[int],
        features: int,
        dtype: str = "float64",
        eps: float = 1e-5,
        centre: float = 1.0,
        tolerance: float | None = None,
        of_weight: str = "",
        view: bool = False,
    ) -> Case:
        of_weight = of_weight or dtype
        offset = centre * (1 + rng.random(features))
        x = [(offset + rng.standard_normal((n, features)) * (rank + 1)).astype(dtype) for rank, n in enumerate(rows)]
        weight, bias = (rng.uniform(0.5, 2, features).astype(of_weight) for _ in range(2))
        upstream = [rng.standard_normal((n, features)).astype(dtype) for n in rows]
        given = [tensor(own.T).T if view else tensor(own) for own in x]
        arguments = [(own, tensor(weight), tensor(bias), eps, tensor(up)) for own, up in zip(given, upstream)]
        about = f", mean about {centre:.0f}" if centre > 10 else ""
        label = f"{ranks(len(rows))} with {', '.join(map(str, rows))} examples, {features} features, {dtype}{about}"
        label += f", weight and bias {of_weight}" * (of_weight != dtype) + ", x a transposed view" * view
        expected = by_torch(arguments)
        tolerance = tolerance or {"float64": 1e-8, "float32": 1e-4}[dtype]
        more = {"backend": "gloo", "tolerance": tolerance, "harness": forward_and_backward, "judge": _one_each}
        return Case(label, arguments, expected, **more)

    yield case([8] * world_size, 3)
    yield case([int(n) for n in rng.integers(3, 12, world_size)], 4, eps=0.5)
    yield case(_rows([16, 4, 1, 7], world_size), 2, "float32")
    yield case(_rows([9, 0, 5, 3], world_size), 3)
    for size in range(world_size - 1, 0, -1):
        yield case([int(n) for n in rng.integers(2, 20, size)], int(rng.integers(1, 6)))
    yield case(_rows([200, 150, 100, 50], world_size), 3, "float32", centre=3000.0, tolerance=3e-3)
    yield case(_rows([6, 3, 9], world_size), 2, "float32", of_weight="float64")
    yield case(_rows([5, 8], world_size), 3, "float64", of_weight="float32", tolerance=1e-6, view=True)
    yield case([64] * world_size, 32, "float32")


def _rows(lengths: Sequence[int], world_size: int) -> list[int]:
    """How many examples each rank has: these numbers, again and again."""
    return [lengths[rank % len(lengths)] for rank in range(world_size)]


def by_torch(arguments: Sequence[tuple]) -> list[dict[str, "Tensor"]]:
    """What each rank must have, from one batch norm over the examples of all ranks, in float64."""
    import torch
    from torch.nn import functional

    shares, weights, biases, epsilons, upstream = zip(*arguments, strict=True)
    whole = torch.cat(shares).double().requires_grad_()
    plain = functional.batch_norm(whole, None, None, training=True, eps=epsilons[0])
    y = plain * weights[0].double() + biases[0].double()
    y.backward(torch.cat(upstream).double())
    variance, mean = torch.var_mean(whole.detach(), dim=0, correction=0)
    lengths = [len(share) for share in shares]
    found = []
    for own, out, gradient, up in zip(
        plain.detach().split(lengths), y.detach().split(lengths), whole.grad.split(lengths), upstream, strict=True
    ):
        numbers = [out, mean, variance, gradient, (own * up).sum(dim=0), up.double().sum(dim=0)]
        dtypes = [shares[0].dtype] * 4 + [weights[0].dtype] * 2
        found.append(dict(zip(NAMES, [number.to(dtype) for number, dtype in zip(numbers, dtypes)], strict=True)))
    return found


def _calls(outcome: Outcome, rank: int, name: str) -> list:
    """The collective calls of `rank` during its phase of that name."""
    events = outcome.attempt.replies[rank].events or ()
    spans = [event for event in events if event.kind == "phase" and event.name == name]
    return [
        event
        for event in events
        if event.kind == "collective" and any(span.start <= event.start <= span.end for span in spans)
    ]


def _one_each(outcome: Outcome) -> str | None:
    features = outcome.case.arguments[0][0].shape[1]
    for name, share in (("forward", 1), ("backward", outcome.world_size)):
        for rank in range(outcome.world_size):
            calls = _calls(outcome, rank, name)
            if len(calls) != 1:
                return f"the numbers are right, but rank {rank} made {len(calls)} collective calls {name}, expected 1"
            most = 8 * (2 * features + 1) * share
            if calls[0].bytes > most:
                return f"the numbers are right, but rank {rank} put in {calls[0].bytes:,} bytes {name}; {most:,} do"
    return None


def _shares(case: Case) -> list:
    return [arguments[0].double() for arguments in case.arguments]


def _entry(outcome: Outcome, name: str) -> list:
    return [result[name] for result in outcome.results]


def _statistics_are(formula: Callable[[Case], "Tensor"], name: str = "the variance") -> Callable[[Case, Outcome], bool]:
    """A recogniser of a wrong mean or variance that is the same on all ranks."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        wrong = formula(case)
        tolerance = case.tolerance or 1e-6
        return all(same(got.double(), wrong, 10 * tolerance) for got in _entry(outcome, name)) and not all(
            same(got.double(), case.expected[0][name].double(), tolerance) for got in _entry(outcome, name)
        )

    return recognises


def _mean_of_means(case: Case) -> "Tensor":
    return sum(share.mean(dim=0) for share in _shares(case)) / len(case.arguments)


def _mean_of_variances(case: Case) -> "Tensor":
    shares = _shares(case)
    total = sum(len(share) * share.var(dim=0, correction=0) for share in shares if len(share))
    return total / sum(map(len, shares))


def _unbiased(case: Case) -> "Tensor":
    n = sum(map(len, _shares(case)))
    return case.expected[0]["the variance"].double() * n / (n - 1)


def _local(case: Case, outcome: Outcome) -> bool:
    own = [share.mean(dim=0) for share in _shares(case)]
    got = _entry(outcome, "the mean")
    return len(own) > 1 and all(same(g.double(), o, 1e-4) for g, o in zip(got, own, strict=True))


def _no_examples(case: Case, outcome: Outcome) -> bool:
    return min(map(len, _shares(case))) == 0


def _forward_right(case: Case, outcome: Outcome) -> bool:
    return all(
        same(result[name], case.expected[rank][name], case.tolerance)
        for rank, result in enumerate(outcome.results)
        for name in NAMES[:3]
    )


def _gradient_blocked(case: Case, outcome: Outcome) -> bool:
    return raised(outcome, "does not require grad") or outcome.run is not None and _forward_right(case, outcome)


def _digits_lost(case: Case, outcome: Outcome) -> bool:
    return "mean about" in case.label


def _not_three(case: Case, outcome: Outcome) -> bool:
    return any(raised(outcome, words) for words in ("unpack", "has no attribute 'backward'", "iteration over"))


def _y_wrong(case: Case, outcome: Outcome) -> bool:
    names = NAMES[1:3]
    return all(same(r[name], case.expected[0][name], case.tolerance) for r in outcome.results for name in names)


def _other_dtype(case: Case, outcome: Outcome) -> bool:
    return any(result["y"].dtype != case.arguments[0][0].dtype for result in outcome.results)


def _more_than_one(case: Case, outcome: Outcome) -> bool:
    return any(len(_calls(outcome, 0, name)) > 1 for name in ("forward", "backward"))


def _heavy(case: Case, outcome: Outcome) -> bool:
    return "bytes" in outcome.wrong


SYNC_BATCH_NORM = Exercise(
    name="sync_batch_norm",
    library="course_utils.lessons.data_parallel.batch_norm:sync_batch_norm",
    lesson=LESSON,
    place=5,
    minutes=20,
    difficulty=3,
    turn="gather all sums in one tensor, and share them once",
    title="the statistics of everybody's examples",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "From which sums over the examples can you get mean and variance at the end? Such sums can be added over "
        "ranks, means and variances cannot. How many numbers is that, and do they fit into one tensor?",
        "`torch.cat` of the sums of x, the sums of x², and the number of examples, all in float64; one "
        "`all_reduce_sum` of that; then mean = sums / N and variance = sums of squares / N − mean².",
    ),
    mistakes=(
        Mistake("Do you return three things: y, mean and variance?", _not_three),
        Mistake("Does a rank without examples take part?", hangs),
        Mistake("Must the examples themselves travel?", _heavy),
        Mistake("Could all the sums travel together?", _more_than_one),
        Mistake("Which dtype has y: that of x, or that of weight?", _other_dtype),
        Mistake("What is the mean of no examples?", _no_examples),
        Mistake("Can the gradient find its way back through the sums of all ranks?", _gradient_blocked),
        Mistake("How many digits are left when two large and nearly equal numbers are subtracted?", _digits_lost),
        Mistake("Whose examples are in this mean?", _local),
        Mistake("Does a rank with more examples count for more?", _statistics_are(_mean_of_means, "the mean")),
        Mistake("Do the ranks' means differ from each other?", _statistics_are(_mean_of_variances)),
        Mistake("Is it divided by N, or by N − 1?", _statistics_are(_unbiased)),
        Mistake("Where do eps, weight and bias stand in the formula of y?", _y_wrong),
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} agree with one batch norm over all examples, gradients too; "
        f"one collective forward ({_calls(outcome, 0, 'forward')[0].bytes:,} bytes), one backward"
    ),
)

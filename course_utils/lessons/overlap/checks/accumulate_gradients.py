"""The check of `accumulate_gradients`: the gradient of the whole batch, micro-batch by micro-batch, sent once."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.compare import kind_of
from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, collectives, same
from course_utils.checks.torch_cases import averaging_hook, drawn, marked
from course_utils.lessons.overlap.checks import LESSON
from course_utils.lessons.overlap.checks.common import mean_of
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor, nn

CLASSES = 3
LOSS, RAN = "the loss", "what ran"
Batches = Sequence[tuple["Tensor", "Tensor"]]


def network(weights: Sequence["Tensor"], note: Callable[[str], None] = lambda words: None) -> "nn.Module":
    """A network of two layers with these weights; it notes how many examples go forward, and each way back."""
    from torch import nn

    class NotedNetwork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (nn.Parameter(values.clone()) for values in weights)

        def forward(self, x: "Tensor") -> "Tensor":
            note(f"{len(x)} forward")
            return marked((x @ self.first).tanh() @ self.second, lambda: note("backward"))

    return NotedNetwork()


def gradients_after(function: Callable, weights: Sequence["Tensor"], steps: Sequence[Batches]) -> dict:
    """Call the learner's function for each step on a DistributedDataParallel; return losses, gradients, what ran."""
    from torch.nn.parallel import DistributedDataParallel

    found, ran = {}, []
    module = DistributedDataParallel(network(weights, ran.append))
    module.register_comm_hook(None, averaging_hook)
    for number, batches in enumerate(steps):
        module.zero_grad()
        ran.clear()
        loss = function(module, batches)
        found |= {f"{RAN} (step {number})": list(ran), f"{LOSS} (step {number})": loss}
        for name, parameter in module.module.named_parameters():
            found[f"the gradient of `{name}` (step {number})"] = (
                None if parameter.grad is None else parameter.grad.clone()
            )
    return found


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(sizes: Sequence[Sequence[int]], steps: int = 1, dtype: str = "float64") -> Case:
        """sizes: for each rank the examples of its micro-batches."""
        weights = [drawn(rng, 4, 5, dtype=dtype), drawn(rng, 5, CLASSES, dtype=dtype)]
        given = [(weights, [[_batch(rng, n, dtype) for n in own] for _ in range(steps)]) for own in sizes]
        alike = "each " if len(sizes) > 1 and len({tuple(own) for own in sizes}) == 1 else ""
        every = alike + (
            str(list(sizes[0])) if alike or len(sizes) == 1 else " and ".join(str(list(own)) for own in sizes)
        )
        label = f"{ranks(len(sizes))} with micro-batches of {every} examples, {count(steps, 'step')}, {dtype}"
        more = {"backend": "gloo", "harness": gradients_after, "judge": _sent_once}
        return Case(label, given, expected(given), **more)

    # One rank more each time: each must first import half of torch to make a DistributedDataParallel.
    yield case([[4, 4, 4]])
    yield case([[6, 6, 2]] * min(2, world_size), steps=2)
    yield case([[3, 5, 1], [4], [1, 1, 7]][:world_size], steps=2)
    yield case([[int(n) for n in rng.integers(1, 9, int(rng.integers(2, 6)))] for _ in range(world_size)], steps=2)
    yield case([[5]] * min(2, world_size))
    yield case([[1, 7, 3, 2]] * min(3, world_size), dtype="float32")
    yield case([[int(n) for n in rng.integers(1, 9, 4)]] * world_size)


def _batch(rng: np.random.Generator, n: int, dtype: str) -> tuple["Tensor", "Tensor"]:
    import torch

    return drawn(rng, n, 4, dtype=dtype), torch.tensor(rng.integers(0, CLASSES, n))


def expected(given: Sequence[tuple]) -> list[dict]:
    """What each rank must have, from its whole batch at once."""
    import torch
    from torch.nn.functional import cross_entropy

    found: list[dict] = [{} for _ in given]
    for number in range(len(given[0][1])):
        gradients = []
        for rank, (weights, steps) in enumerate(given):
            module = network(weights)
            x, y = (torch.cat(parts) for parts in zip(*steps[number], strict=True))
            loss = cross_entropy(module(x), y)
            loss.backward()
            gradients.append([parameter.grad for parameter in module.parameters()])
            ran = [words for x, _ in steps[number] for words in (f"{len(x)} forward", "backward")]
            found[rank] |= {f"{RAN} (step {number})": ran, f"{LOSS} (step {number})": _number(loss)}
        means = dict(zip(("first", "second"), mean_of(gradients), strict=True))
        for own in found:
            own |= {f"the gradient of `{name}` (step {number})": mean for name, mean in means.items()}
    return found


def _number(loss: "Tensor") -> float | np.float32:
    """As exact as the network's dtype."""
    return loss.item() if "64" in str(loss.dtype) else np.float32(loss.item())


def _bytes(case: Case) -> int:
    return sum(values.numel() * values.element_size() for values in case.arguments[0][0])


def _sent_once(outcome: Outcome) -> str | None:
    case = outcome.case
    steps = len(case.arguments[0][1])
    for rank in range(outcome.world_size):
        sent = sum(call.bytes for call in collectives(outcome, rank))
        if sent != _bytes(case) * steps:
            return (
                f"the gradients are right, but rank {rank} sent {sent:,} bytes in {count(steps, 'step')}; "
                f"its gradients have {_bytes(case):,}"
            )
    return None


def _ran(outcome: Outcome) -> Iterator[tuple[list[str], list[str]]]:
    """What ran on each rank in its first step, and what should have run."""
    for result, wanted in zip(outcome.results, outcome.case.expected, strict=True):
        yield result[f"{RAN} (step 0)"], wanted[f"{RAN} (step 0)"]


def _all_at_once(case: Case, outcome: Outcome) -> bool:
    return any(sorted(got) != sorted(wanted) and len(got) == 2 for got, wanted in _ran(outcome))


def _one_way_back(case: Case, outcome: Outcome) -> bool:
    return any(
        got.count("backward") < wanted.count("backward") or got[1] != "backward" for got, wanted in _ran(outcome)
    )


def _gradients_are(formula: Callable[[Case, int], list["Tensor"]]) -> Recogniser:
    """A recogniser of other gradients in the first step, from (case, rank)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        pairs = [(result, formula(case, rank)) for rank, result in enumerate(outcome.results)]
        names = [f"the gradient of `{name}` (step 0)" for name in ("first", "second")]
        return all(same(result[name], g, 1e-4) for result, gs in pairs for name, g in zip(names, gs, strict=True))

    return recognises


def _weighted(weight: Callable[[int, list[int]], float]) -> Callable[[Case, int], list["Tensor"]]:
    """The mean over the ranks, where weight(number of the micro-batch, sizes of all) is what it counts."""
    return lambda case, rank: mean_of([_sum_of(given, weight) for given in case.arguments])


def _first_travelled(case: Case, rank: int) -> list["Tensor"]:
    """The first micro-batch alone has."""
    first = _weighted(lambda k, sizes: _share(k, sizes) * (k == 0))(case, rank)
    rest = _sum_of(case.arguments[rank], lambda k, sizes: _share(k, sizes) * (k > 0))
    return [one + other for one, other in zip(first, rest, strict=True)]


def _sum_of(given: tuple, weight: Callable[[int, list[int]], float]) -> list["Tensor"]:
    from torch.nn.functional import cross_entropy

    weights, steps = given
    module, sizes = network(weights), [len(x) for x, _ in steps[0]]
    for number, (x, y) in enumerate(steps[0]):
        (cross_entropy(module(x), y) * weight(number, sizes)).backward()
    return [parameter.grad for parameter in module.parameters()]


def _share(number: int, sizes: list[int]) -> float:
    return sizes[number] / sum(sizes)


def _alike(number: int, sizes: list[int]) -> float:
    return 1 / len(sizes)


def _last_alone(number: int, sizes: list[int]) -> float:
    return _share(number, sizes) * (number + 1 == len(sizes))


def _loss_wrong(case: Case, outcome: Outcome) -> bool:
    gradients = [name for name in case.expected[0] if "gradient" in name]
    return all(same(result[name], case.expected[0][name]) for result in outcome.results for name in gradients)


def _no_number(case: Case, outcome: Outcome) -> bool:
    return all(kind_of(result[f"{LOSS} (step 0)"]) not in ("int", "float") for result in outcome.results)


def _silent(case: Case, outcome: Outcome) -> bool:
    return not any(collectives(outcome, rank) for rank in range(outcome.world_size))


def _too_often(case: Case, outcome: Outcome) -> bool:
    return "sent" in outcome.wrong and "bytes" in outcome.wrong


ACCUMULATE_GRADIENTS = Exercise(
    name="accumulate_gradients",
    library="course_utils.lessons.overlap.buckets:accumulate_gradients",
    lesson=LESSON,
    place=3,
    minutes=10,
    difficulty=2,
    turn="forward and backward for each micro-batch, and quiet until the last",
    title="a large batch in small pieces, sent once",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "The loss of a micro-batch is the mean over its examples. By what must it be multiplied so that the sum over "
        "all micro-batches is the mean over all examples? And in which backward pass are the gradients complete?",
        "`loss = cross_entropy(module(x), y) * len(x) / examples` and `loss.backward()` for each; all but the last, "
        "forward pass included, inside `with module.no_sync():`. Return the sum of `loss.item()`.",
    ),
    mistakes=(
        Mistake("What does the function return?", _no_number),
        Mistake("Is there memory for the whole batch at once?", _all_at_once),
        Mistake("How long does the memory of a forward pass stay in use?", _one_way_back),
        Mistake("Which backward pass talks to the other ranks?", _silent),
        Mistake("How often do the gradients travel in one step?", _too_often),
        Mistake("Is this the loss of all micro-batches together?", _loss_wrong),
        Mistake("Which backward pass talks to the other ranks?", _gradients_are(_first_travelled)),
        Mistake("Does a micro-batch with fewer examples count as much?", _gradients_are(_weighted(_alike))),
        Mistake("Is the sum of means a mean?", _gradients_are(_weighted(lambda number, sizes: 1.0))),
        Mistake("Where are the gradients of the earlier micro-batches?", _gradients_are(_weighted(_last_alone))),
    ),
    praise=lambda outcome: (
        f"micro-batch by micro-batch the gradients of the whole batch of {ranks(outcome.world_size)}; "
        f"each sent its {_bytes(outcome.case):,} bytes once a step"
    ),
)

"""The check of `accumulate_gradients`: the gradient of the whole batch, micro-batch by micro-batch, sent once."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.symptoms import collectives
from course_utils.checks.torch_cases import averaging_hook, drawn, marked
from course_utils.lessons.overlap.checks.common import mean_of
from course_utils.words import count, join, ranks

if TYPE_CHECKING:
    from torch import Tensor, nn

CLASSES = 3
OF_THE_MODULE = ("broadcast", "all_gather")
"""What DistributedDataParallel sends besides gradients: that all ranks have one network, and its parts in one order."""
LOSS = "the loss"
FORWARD, BACKWARD = "forward", "backward"
TRAINING = "module.training"
AVERAGED = "the bytes that the module has averaged"
Batches = Sequence[tuple["Tensor", "Tensor"]]


def ran_in_step(number: int) -> str:
    """Under this name a harness gives what ran in a step, in order: pairs of a pass and its number of examples."""
    return f"the passes of step {number}"


def network(weights: Sequence["Tensor"], note: Callable[[tuple], None] = lambda what: None) -> "nn.Module":
    """A network of two layers with these weights; it notes how many examples go forward, and each way back."""
    from torch import nn

    class NotedNetwork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (nn.Parameter(values.clone()) for values in weights)

        def forward(self, x: "Tensor") -> "Tensor":
            note((FORWARD, len(x)))
            return marked((x @ self.first).tanh() @ self.second, lambda: note((BACKWARD, 0)))

    return NotedNetwork()


def gradients_after(function: Callable, weights: Sequence["Tensor"], steps: Sequence[Batches]) -> dict:
    """Call the learner's function for each step on a DistributedDataParallel; return losses, gradients, what ran."""
    from torch.nn.parallel import DistributedDataParallel

    found, ran, averaged = {}, [], []

    def hook(_, bucket):  # noqa: ANN001, ANN202 - DDP rejects a hook whose annotations are texts
        averaged.append(bucket.buffer().nbytes)
        return averaging_hook(None, bucket)

    module = DistributedDataParallel(network(weights, ran.append))
    module.register_comm_hook(None, hook)
    for number, batches in enumerate(steps):
        module.zero_grad()
        ran.clear()
        loss = function(module, batches)
        found[ran_in_step(number)] = list(ran)
        for name, parameter in module.module.named_parameters():
            found[f"the gradient of `{name}` (step {number})"] = (
                None if parameter.grad is None else parameter.grad.clone()
            )
        found[f"{LOSS} (step {number})"] = loss
    return found | {AVERAGED: sum(averaged), TRAINING: module.training}


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        sizes: Sequence[Sequence[int]],
        steps: int = 1,
        dtype: str = "float64",
        kind: Callable = list,
        grows: int = 0,
    ) -> Case:
        """Make a case.

        Args:
            sizes: for each rank the examples of its micro-batches.
            kind: the type of the sequence that holds them.
            grows: by so many examples a micro-batch is longer in each step than in the one before.
        """
        weights = [drawn(rng, 4, 5, dtype=dtype), drawn(rng, 5, CLASSES, dtype=dtype)]
        given = [
            (weights, [kind(_batch(rng, n + grows * step, dtype) for n in each) for step in range(steps)])
            for each in sizes
        ]
        alike = len({tuple(each) for each in sizes}) == 1
        parts = [_examples_text(each) for each in (sizes[:1] if alike else sizes)]
        every = f"each with {parts[0]}" if alike and len(sizes) > 1 else f"with {', '.join(parts)}"
        label = f"{ranks(len(sizes))}, {every}, {count(steps, 'step')}, {dtype}"
        label += ", one and the same" * (kind is over_and_over) + ", more examples in the second step" * bool(grows)
        more = {"backend": "gloo", "harness": gradients_after, "judge": _sent_once}
        key = "one-batch" if kind is over_and_over else "other-sizes" if grows else ""
        return Case(label, given, expected(given), **more, key=key)

    def over_and_over(batches: Iterator) -> list:
        """A list in which the first batch stands at each place."""
        first, *others = batches
        return [first] * (1 + len(others))

    # One rank more each time: each must first import half of torch to make a DistributedDataParallel.
    yield case([[4, 4, 4]])
    yield case([[6, 6, 2]] * min(2, world_size), steps=2, kind=tuple)
    yield case([[3, 5, 1], [4], [1, 1, 7]][:world_size], steps=2)
    yield case([[int(n) for n in rng.integers(1, 9, int(rng.integers(2, 6)))] for _ in range(world_size)], steps=2)
    yield case([[2, 5, 1]] * min(2, world_size), steps=2, grows=2)
    yield case([[5]] * min(2, world_size))
    yield case([[3, 3, 3]], kind=over_and_over)
    yield case([[1, 7, 3, 2]] * min(3, world_size), dtype="float32")
    yield case([[int(n) for n in rng.integers(1, 9, 7)]] * world_size)


def _examples_text(sizes: Sequence[int]) -> str:
    """What a rank has, in words."""
    noun = "micro-batch" if len(sizes) == 1 else "micro-batches"
    return f"{noun} of {join(list(map(str, sizes)))} examples"


def _batch(rng: np.random.Generator, n: int, dtype: str) -> tuple["Tensor", "Tensor"]:
    import torch

    return drawn(rng, n, 4, dtype=dtype), torch.tensor(rng.integers(0, CLASSES, n))


def expected(given: Sequence[tuple]) -> list[dict]:
    """What each rank must have, from its whole batch at once."""
    import torch
    from torch.nn.functional import cross_entropy

    found: list[dict] = [{} for _ in given]
    ran_in = [ran_in_step(number) for number in range(len(given[0][1]))]
    for number in range(len(given[0][1])):
        gradients, losses = [], []
        for weights, steps in given:
            module = network(weights)
            x, y = (torch.cat(parts) for parts in zip(*steps[number], strict=True))
            loss = cross_entropy(module(x), y)
            loss.backward()
            gradients.append([parameter.grad for parameter in module.parameters()])
            losses.append(_number(loss))
        means = dict(zip(("first", "second"), mean_of(gradients), strict=True))
        for result, loss in zip(found, losses, strict=True):
            result |= {f"the gradient of `{name}` (step {number})": mean for name, mean in means.items()}
            result[f"{LOSS} (step {number})"] = loss
    return [result | {AVERAGED: ..., TRAINING: True} | dict.fromkeys(ran_in, ...) for result in found]


def _number(loss: "Tensor") -> np.float32:
    """As exact as single precision, in which an answer may add up the losses of any network."""
    return np.float32(loss.item())


def _others_go_forward(case: Case, outcome: Outcome) -> bool:
    """Whether the module gets other micro-batches than there are, or in a different order."""
    return (wrong := _wrong_passes(outcome)) is not None and wrong.key == "other-forward-passes"


def _bytes(case: Case) -> int:
    return sum(values.numel() * values.element_size() for values in case.arguments[0][0])


def _wrong_passes(outcome: Outcome) -> Finding | None:
    """Find what no gradient shows: passes of other sizes than the micro-batches, or in a different order."""
    for rank, result in enumerate(outcome.results):
        for number, batches in enumerate(outcome.case.arguments[rank][1]):
            ran, sizes = result[ran_in_step(number)], [len(x) for x, _ in batches]
            forward = [examples for name, examples in ran if name == FORWARD]
            if forward != sizes:
                words = (
                    "the gradients are right, but {who} computed forward passes of {got} examples; expected {expected}"
                )
                return own("other-forward-passes", words, rank=rank, got=_listed(forward), expected=_listed(sizes))
            names = [name for name, _ in ran]
            if names != [FORWARD, BACKWARD] * len(sizes):
                words = (
                    "the gradients are right, but not every forward pass of {who} was followed by its backward pass "
                    "before the next forward pass began"
                )
                return own("passes-not-in-pairs", words, rank=rank)
    return None


def _listed(sizes: Sequence[int]) -> str:
    return join(list(map(str, sizes))) or "no"


def _sent_once(outcome: Outcome) -> Finding | None:
    if wrong := _wrong_passes(outcome):
        return wrong
    needed, steps = _bytes(outcome.case), len(outcome.case.arguments[0][1])
    for rank, result in enumerate(outcome.results):
        sent = sum(call.bytes for call in collectives(outcome, rank) if call.name not in OF_THE_MODULE)
        if sent != needed * steps:
            words = (
                "the gradients are right, but rank {rank} sent {got:,} bytes of gradients in {steps}; "
                "they have {needed:,} in each step"
            )
            return own("not-once", words, rank=rank, got=sent, steps=count(steps, "step"), needed=needed)
        others = {call.name for call in collectives(outcome, rank)} - {"all_reduce", *OF_THE_MODULE}
        if others:
            words = "the gradients are right, but rank {rank} called {call}"
            return own("another-call", words, rank=rank, call=min(others))
        if result[AVERAGED] != sent:
            left = "only {got:,} of their {sent:,} bytes were sent during a backward pass of rank {rank}"
            return own(
                "not-in-the-backward-pass",
                f"the gradients are right, but {left}",
                rank=rank,
                got=result[AVERAGED],
                sent=sent,
            )
    return None


EXERCISE = Exercise(
    library="buckets",
    number=3,
    minutes=10,
    difficulty=2,
    turn="forward and backward for each micro-batch, with no_sync for all but the last",
    title="a large batch in small pieces, sent once",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "The loss of a micro-batch is the mean over its own examples. By what do you have to multiply it so that the "
        "sum over all micro-batches is the mean over all examples? And after which backward pass are the gradients "
        "complete?",
        "For each micro-batch, `loss = cross_entropy(module(x), y) * len(x) / examples` and then `loss.backward()`. "
        "For all but the last, both lines belong inside `with module.no_sync():`. Return the sum of `loss.item()`.",
    ),
    symptoms={"other micro-batches go forward": _others_go_forward},
    praise=lambda outcome: (
        f"micro-batch by micro-batch the gradients of the whole batch of {ranks(outcome.world_size)}; "
        f"each sent its {_bytes(outcome.case):,} bytes once a step"
    ),
)

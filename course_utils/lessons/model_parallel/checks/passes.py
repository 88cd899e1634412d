"""One pass through a layer cut over ranks, forward and backward, against the whole layer in one process.

Tensors go by name: those the learner's function gets, x first, then "y" and "the gradient of …".
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Outcome
from course_utils.checks.recognisers import Recogniser, raised, same
from course_utils.checks.torch_cases import drawn
from course_utils.trace.recorder import phase
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor

    from course_utils.trace.events import Event

Shapes = Mapping[str, tuple[int, ...]]
Tensors = dict[str, "Tensor | None"]
AFTER = "x after the call"
RIGHT = "the numbers are right, but"


def gradient(name: str) -> str:
    """What the gradient of an argument is called in a result."""
    return f"the gradient of {name}"


@dataclass(frozen=True)
class CuttableLayer:
    """A layer that can be cut.

    Attributes:
        serial: the whole of it, of the same arguments; None stands for a bias that is not there.
        shapes: (size that is cut, the other size) → the shapes of its arguments; of x the last axis only.
        cut: the axis along which an argument, or y, is cut over ranks; what is not named each rank has whole.
        forward, backward: all-reduces that it takes.
    """

    serial: Callable[..., "Tensor"]
    shapes: Callable[[int, int], Shapes]
    cut: Mapping[str, int]
    forward: int
    backward: int


def pass_through(
    function: Callable, inputs: Tensors, upstream: "Tensor", elsewhere: "Tensor | None", group_size: int
) -> Tensors:
    """Call the learner's function and go backward from y, both as phases; return y, x, and all gradients.

    Args:
        inputs: the arguments, x first. A None stands for a bias that is not there.
        upstream: the gradient of y.
        elsewhere: the gradient that comes back to x from another use of it.
        group_size: so many neighbours share a layer; 0 for all ranks, and no group.
    """
    group = group_of(group_size)
    given = leaves(inputs)
    x = given["x"] * 1  # as it comes from the layer before
    with phase("forward"):
        y = function(*[x if name == "x" else one for name, one in given.items()], group)
    found = {"y": copied(y), AFTER: copied(x)}
    if getattr(y, "requires_grad", False) and y.shape == upstream.shape:
        with phase("backward"):
            go_back(y, upstream, x, elsewhere)
    return found | gradients(given)


def by_one(layer: CuttableLayer, inputs: Tensors, upstream: "Tensor", elsewhere: "Tensor | None") -> Tensors:
    """The same of the whole layer, in this process."""
    given = leaves(inputs)
    y = layer.serial(*given.values())
    go_back(y, upstream, given["x"], elsewhere)
    return {"y": y.detach(), AFTER: inputs["x"]} | gradients(given)


def leaves(inputs: Tensors) -> Tensors:
    """Copies that gather gradients; their order in memory stays."""
    return {name: None if one is None else one.clone().requires_grad_() for name, one in inputs.items()}


def gradients(given: Tensors) -> Tensors:
    """The gradients of what is there."""
    return {gradient(name): None if one is None else one.grad for name, one in given.items()}


def go_back(y: "Tensor", upstream: "Tensor", x: "Tensor", elsewhere: "Tensor | None") -> None:
    """Go backward with these gradients of y, and of x itself."""
    loss = (y * upstream).sum()
    (loss if elsewhere is None else loss + (x * elsewhere).sum()).backward()


def copied(one: Any) -> Any:
    """What a tensor holds now; anything else as it is."""
    return one.detach().clone() if hasattr(one, "detach") else one


def group_of(size: int) -> Any:
    """The group of `size` neighbours that this rank belongs to; None, which stands for all, where size is 0."""
    import torch.distributed as dist

    return dist.new_subgroups(size)[0] if size else None


def case_of(
    rng: np.random.Generator,
    layer: CuttableLayer,
    shares: Sequence[int],
    *,
    rows: tuple[int, ...] = (5,),
    other: int = 6,
    bias: bool = True,
    dtype: str = "float64",
    turned: bool = False,
    again: bool = False,
    groups: int = 1,
) -> Case:
    """A layer cut into these shares, one for each rank of a group.

    Args:
        rows: the axes of x before the last.
        other: the size that is not cut.
        turned: x is a transposed view.
        again: x is used elsewhere too.
        groups: of ranks; each has a layer and an input of its own.
    """
    arguments, expected = [], []
    shapes = layer.shapes(sum(shares), other)
    for _ in range(groups):
        inputs = {
            name: drawn(rng, *(rows if name == "x" else ()), *shape, dtype=dtype) for name, shape in shapes.items()
        }
        if not bias:
            inputs["bias"] = None
        if turned:
            inputs["x"] = inputs["x"].mT.contiguous().mT
        upstream = drawn(rng, *layer.serial(*inputs.values()).shape, dtype=dtype)
        elsewhere = drawn(rng, *inputs["x"].shape, dtype=dtype) if again else None
        whole = by_one(layer, inputs, upstream, elsewhere)
        for rank in range(len(shares)):
            own = part(layer, {**inputs, "upstream": upstream, "elsewhere": elsewhere}, shares, rank)
            rest = (own.pop("upstream"), own.pop("elsewhere"), len(shares) if groups > 1 else 0)
            arguments.append((own, *rest))
            expected.append(part(layer, whole, shares, rank))
    about = (f", {groups} groups" if groups > 1 else "") + ", unequal shares" * (len(set(shares)) > 1)
    about += ", without bias" * (not bias) + ", x a transposed view" * turned + ", x used elsewhere too" * again
    label = f"{ranks(len(arguments))}{about}, x of shape {tuple(arguments[0][0]['x'].shape)}, {dtype}"
    more = {"backend": "gloo", "harness": pass_through, "judge": counted(layer)}
    return Case(label, arguments, expected, tolerance={"float64": 1e-10, "float32": 1e-4}[dtype], **more)


def part(layer: CuttableLayer, tensors: Tensors, shares: Sequence[int], rank: int) -> Tensors:
    """What this rank has of each tensor."""
    whose = {gradient(name): axis for name, axis in layer.cut.items()} | dict(layer.cut)
    whose |= {"upstream": whose.get("y"), AFTER: whose.get("x"), "elsewhere": whose.get("x")}

    def of(name: str, one: "Tensor | None") -> "Tensor | None":
        axis = whose.get(name)
        return one if one is None or axis is None else one.split(list(shares), axis)[rank]

    return {name: of(name, one) for name, one in tensors.items()}


def calls(outcome: Outcome, rank: int, phase: str) -> list["Event"]:
    """What `rank` sent, received or shared during its phase of that name."""
    events = outcome.attempt.replies[rank].events or ()
    spans = [event for event in events if event.kind == "phase" and event.name == phase]
    kinds = ("collective", "send", "recv")
    return [one for one in events if one.kind in kinds and any(s.start <= one.start <= s.end for s in spans)]


def counted(layer: CuttableLayer) -> Callable[[Outcome], str | None]:
    """A judge of numbers that are right: are there as many all-reduces as the layer needs, and nothing else?"""

    def judge(outcome: Outcome) -> str | None:
        for name, wanted in (("forward", layer.forward), ("backward", layer.backward)):
            for rank in range(outcome.world_size):
                made = calls(outcome, rank, name)
                others = {call.name for call in made} - {"all_reduce"}
                if others:
                    does = "one all-reduce does" if wanted else "nothing has to move"
                    return f"{RIGHT} rank {rank} called {min(others)} {name}; {does}"
                if len(made) != wanted and (outcome.world_size > 1 or len(made) > wanted):
                    return f"{RIGHT} rank {rank} made {count(len(made), 'all-reduce')} {name}, expected {wanted}"
        return None

    return judge


def numbers(outcome: Outcome, name: str) -> list:
    """What each rank has of one name."""
    return [result[name] for result in outcome.results]


def wrong(outcome: Outcome, name: str) -> bool:
    """Whether some rank has not what it should have of one name."""
    case = outcome.case
    return any(not same(result[name], case.expected[rank][name], case.tolerance) for rank, result in _there(outcome))


def _there(outcome: Outcome) -> Iterator[tuple[int, Tensors]]:
    return ((rank, result) for rank, result in enumerate(outcome.results) if result is not NO_RESULT)


def is_wrong(name: str) -> Recogniser:
    """A recogniser of a wrong entry."""
    return lambda case, outcome: wrong(outcome, name)


def is_missing(name: str) -> Recogniser:
    """A recogniser of nothing where something should be."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        here = [result[name] is None and case.expected[rank][name] is not None for rank, result in _there(outcome)]
        return bool(here) and all(here)

    return recognises


def becomes(name: str, change: Callable[[Case, int], Any]) -> Recogniser:
    """A recogniser of an entry that is wrong, and on each rank what `change(case, rank)` gives."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        here = list(_there(outcome))
        found = all(same(result[name], change(case, rank), 10 * case.tolerance) for rank, result in here)
        return bool(here) and found and wrong(outcome, name)

    return recognises


def times(name: str, factor: Callable[[int], float]) -> Recogniser:
    """A recogniser of an entry that is what it should be, times a factor that depends on the number of ranks."""
    return becomes(name, lambda case, rank: case.expected[rank][name] * factor(len(case.arguments)))


def whole_shape(case: Case, outcome: Outcome) -> bool:
    """Whether y is longer along its last axis than it should be."""
    return any(y.shape[-1] > case.expected[rank]["y"].shape[-1] for rank, y in enumerate(numbers(outcome, "y")))


def in_groups(case: Case, outcome: Outcome) -> bool:
    """Whether ranks of several groups have each a layer of their own: where all else was right."""
    return " groups" in case.label


def without_bias(case: Case, outcome: Outcome) -> bool:
    """Whether it fails where there is no bias."""
    return raised(outcome) and "without bias" in case.label


def changed_in_place(case: Case, outcome: Outcome) -> bool:
    """Whether torch refused to change a tensor in place."""
    return raised(outcome, "inplace") or raised(outcome, "in-place")

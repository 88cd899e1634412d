"""One pass through a layer cut over ranks, forward and backward, against the whole layer in one process.

Tensors go by name: those the learner's function gets, x first, then "y" and "the gradient of …".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.torch_cases import drawn, gradient_for
from course_utils.trace.recorder import phase
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor

    from course_utils.trace.events import Event

Shapes = Mapping[str, tuple[int, ...]]
Tensors = dict[str, "Tensor | None"]
AFTER, ASKED = "x after the call", "x.requires_grad after the call"
SENT = {"forward": "y", "backward": AFTER}
"""Whose bytes an all-reduce has."""
RIGHT = "the numbers are right, but"
TOLERANCE = {"float64": 1e-10, "float32": 1e-4, "float16": 2e-2}


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
    function: Callable,
    inputs: Tensors,
    upstream: "Tensor | None",
    elsewhere: "Tensor | None",
    group_size: int,
    x_learns: bool,
) -> Tensors:
    """Call the learner's function and go backward from y, both as phases; return y, x, and all gradients.

    Where ranks form groups, a layer that all ranks share comes before: its group is another one.

    Args:
        inputs: the arguments, x first. A None stands for a bias that is not there.
        upstream: the gradient of y; None to go forward only.
        elsewhere: the gradient that comes back to x from another use of it.
        group_size: this many neighbours share a layer; 0 for all ranks, and no group.
        x_learns: x has a gradient; False for the numbers of a batch.
    """
    group = group_of(group_size)
    if group:
        call_for_all(function, inputs)
    ask_for_gradients(inputs, x_learns)
    x = inputs["x"] * 1  # as it comes from the layer before
    with phase("forward"):
        y = function(*without_defaults([x if name == "x" else tensor for name, tensor in inputs.items()], group))
    found = {AFTER: copied(x), ASKED: x.requires_grad, "y": copied(y)}
    if upstream is None:
        return found
    if getattr(y, "requires_grad", False):
        with phase("backward"):
            go_back(y, gradient_for(y, upstream), x, elsewhere)
    return found | gradients(inputs)


def without_defaults(tensors: "Sequence[Tensor | None]", group: Any) -> list:
    """The arguments of a call, but for a group and a bias that are not there: None is the docstring's default."""
    given = [*tensors, group]
    while given[-1] is None:
        given.pop()
    return given


def call_for_all(function: Callable, inputs: Tensors) -> None:
    """Call the learner's function with fewer rows, then with all, of other numbers, and no group; only forward."""
    import torch

    fewer = {name: tensor[:1] if name == "x" and tensor is not None else tensor for name, tensor in inputs.items()}
    with torch.no_grad():
        for given in (fewer, inputs):
            function(*[None if tensor is None else 1 - tensor for tensor in given.values()], None)


def by_one(
    layer: CuttableLayer, inputs: Tensors, upstream: "Tensor", elsewhere: "Tensor | None", x_learns: bool
) -> Tensors:
    """The same of the whole layer, in this process."""
    given = {name: None if tensor is None else tensor.clone() for name, tensor in inputs.items()}
    ask_for_gradients(given, x_learns)
    y = layer.serial(*given.values())
    go_back(y, upstream, given["x"], elsewhere)
    return {AFTER: inputs["x"], ASKED: x_learns, "y": y.detach()} | gradients(given)


def ask_for_gradients(given: Tensors, x_learns: bool) -> None:
    """Let every tensor that is there have a gradient, x only where it learns."""
    for name, tensor in given.items():
        if tensor is not None and (x_learns or name != "x"):
            tensor.requires_grad_()


def gradients(given: Tensors) -> Tensors:
    """The gradients of what is there."""
    return {gradient(name): None if tensor is None else tensor.grad for name, tensor in given.items()}


def go_back(y: "Tensor", upstream: "Tensor", x: "Tensor", elsewhere: "Tensor | None") -> None:
    """Go backward with these gradients of y, and of x itself."""
    loss = (y * upstream).sum()
    (loss if elsewhere is None else loss + (x * elsewhere).sum()).backward()


def copied(value: Any) -> Any:
    """What a tensor holds now; anything else as it is."""
    return value.detach().clone() if hasattr(value, "detach") else value


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
    backward: bool = True,
    x_learns: bool = True,
) -> Case:
    """A layer cut into these shares, one for each rank of a group.

    Args:
        rows: the axes of x before the last.
        other: the size that is not cut.
        turned: x is a transposed view.
        again: x is used elsewhere too.
        groups: of ranks; each has a layer and an input of its own.
        backward: go back from y, too.
        x_learns: x has a gradient.
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
        whole = by_one(layer, inputs, upstream, elsewhere, x_learns)
        for rank in range(len(shares)):
            own = part(layer, {**inputs, "upstream": upstream, "elsewhere": elsewhere}, shares, rank)
            back = own.pop("upstream"), own.pop("elsewhere")
            arguments.append((own, *(back if backward else (None, None)), len(shares) if groups > 1 else 0, x_learns))
            wanted = part(layer, whole, shares, rank)
            expected.append(wanted if backward else {name: wanted[name] for name in (AFTER, ASKED, "y")})
    special = {
        "groups": groups > 1,
        "without-bias": not bias,
        "unequal-shares": len(set(shares)) > 1,
        "batch": not x_learns,
    }
    key = next((name for name, is_so in special.items() if is_so), "")
    about = "" if backward else ", y alone"
    about += (f", {groups} groups" if groups > 1 else "") + ", unequal shares" * (len(set(shares)) > 1)
    about += ", x of a batch, without a gradient" * (not x_learns)
    about += ", without bias" * (not bias) + ", x a transposed view" * turned + ", x used elsewhere too" * again
    label = f"{ranks(len(arguments))}{about}, x of shape {tuple(arguments[0][0]['x'].shape)}, {dtype}"
    more = {"backend": "gloo", "harness": pass_through, "judge": counted(layer)}
    return Case(label, arguments, expected, tolerance=TOLERANCE[dtype], key=key, **more)


def part(layer: CuttableLayer, tensors: Tensors, shares: Sequence[int], rank: int) -> Tensors:
    """What this rank has of each tensor."""
    whose = {gradient(name): axis for name, axis in layer.cut.items()} | dict(layer.cut)
    whose |= {"upstream": whose.get("y"), AFTER: whose.get("x"), "elsewhere": whose.get("x")}

    def of(name: str, tensor: "Tensor | None") -> "Tensor | None":
        axis = whose.get(name)
        return tensor if tensor is None or axis is None else tensor.split(list(shares), axis)[rank]

    return {name: of(name, tensor) for name, tensor in tensors.items()}


def fewer_axes(case: Case, outcome: Outcome) -> bool:
    """Whether y has fewer axes than it should."""
    return outcome.results[0]["y"].ndim < case.expected[0]["y"].ndim


def calls(outcome: Outcome, rank: int, phase: str) -> list["Event"]:
    """What `rank` sent, received or shared during its phase of that name."""
    events = outcome.attempt.replies[rank].events or ()
    spans = [event for event in events if event.kind == "phase" and event.name == phase]
    kinds = ("collective", "send", "recv")
    return [event for event in events if event.kind in kinds and any(s.start <= event.start <= s.end for s in spans)]


def counted(layer: CuttableLayer) -> Callable[[Outcome], Finding | None]:
    """Make a judge of numbers that are right: are there as many all-reduces as the layer needs, and nothing else?

    What it finds has "forward" or "backward" as its `where`.
    """

    def judge(outcome: Outcome) -> Finding | None:
        _, upstream, _, _, learns = outcome.case.arguments[0]
        backward = upstream is not None
        for name, wanted in [("forward", layer.forward), ("backward", layer.backward)][: 1 + backward]:
            for rank in range(outcome.world_size):
                made = calls(outcome, rank, name)
                found = {"rank": rank, "where": (name,)}
                others = {call.name for call in made} - {"all_reduce"}
                if others:
                    enough = "one all-reduce is enough" if wanted else "nothing has to be sent"
                    words = f"{RIGHT} in the {{where[0]}} pass rank {{rank}} called {{got}}; {enough}"
                    return own("other-call", words, got=min(others), **found)
                spared = not made and (outcome.world_size == 1 or (name == "backward" and not learns))
                if len(made) != wanted and not spared:
                    words = f"{RIGHT} in the {{where[0]}} pass rank {{rank}} made {{made}}, expected {{expected}}"
                    made_text = count(len(made), "all-reduce")
                    return own("all-reduces", words, made=made_text, got=len(made), expected=wanted, **found)
                moves, enough = sum(call.bytes for call in made), outcome.results[rank][SENT[name]].nbytes
                if moves > enough:
                    words = f"{RIGHT} in the {{where[0]}} pass rank {{rank}}'s all-reduce has {{got:,}} bytes; "
                    return own("too-many-bytes", words + "{expected:,} are enough", got=moves, expected=enough, **found)
        return None

    return judge

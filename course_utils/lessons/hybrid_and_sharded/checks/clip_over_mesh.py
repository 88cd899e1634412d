"""The check of `clip_over_mesh`: torch's clipping of the whole gradient, and that no gradients travel for it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.symptoms import collectives
from course_utils.checks.torch_cases import drawn
from course_utils.lessons.hybrid_and_sharded.checks.mesh_groups import by_numpy
from course_utils.lessons.hybrid_and_sharded.device_mesh import place_of
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor

NORM, CUT, REPLICATED = "the norm", "the vector of cut gradients", "the vector of replicated gradients"
AXES = ("data", "pipeline", "tensor")
ENOUGH = 256
"""Bytes that a rank may put in: sums of squares, and no gradients."""


def after_clipping(
    function: Callable,
    sizes: Mapping[str, int],
    cut: Sequence["Tensor"],
    replicated: Sequence["Tensor"],
    max_norm: float,
) -> dict:
    """Call the learner's function with this rank's groups; return what it says, and what became of the gradients."""
    from course_utils.lessons.hybrid_and_sharded.mesh_training import make_process_groups

    cut, replicated = [gradient.clone() for gradient in cut], [gradient.clone() for gradient in replicated]
    groups = make_process_groups(by_numpy(sizes))  # the library's `mesh_groups` is hidden in a graded notebook
    norm = function(cut, replicated, groups, max_norm)
    return {NORM: norm, CUT: _in_a_row(cut), REPLICATED: _in_a_row(replicated)}


def _in_a_row(gradients: Sequence["Tensor"]) -> "Tensor":
    import torch

    return torch.cat([torch.zeros(0, dtype=torch.float64), *(gradient.flatten() for gradient in gradients)])


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        sizes: dict[str, int],
        share: float,
        about: str = "",
        cut: Sequence[int] = (2, 2),
        replicated: Sequence[int] = (1, 1),
        dtype: str = "float64",
        scale: float = 1.0,
        key: str = "",
    ) -> Case:
        """`share`: of the norm that is allowed; `cut`, `replicated`: how many gradients each stage has."""
        whole = {axis: sizes.get(axis, 1) for axis in AXES}
        places = [place_of(rank, whole) for rank in range(prod(whole.values()))]

        def some(number: int) -> list["Tensor"]:
            return [scale * drawn(rng, int(rng.integers(2, 5)), 3, dtype=dtype) for _ in range(number)]

        stages = range(whole["pipeline"])
        parts = {(s, t): some(cut[s]) for s in stages for t in range(whole["tensor"])}
        copies = {s: some(replicated[s]) for s in stages}
        norm = float(_in_a_row([*_all_of(parts), *_all_of(copies)]).square().sum() ** 0.5)
        max_norm = float(f"{share * norm:.6g}") or 1.0
        factor = min(1.0, max_norm / (norm + 1e-6))
        given = [(whole, parts[p["pipeline"], p["tensor"]], copies[p["pipeline"]], max_norm) for p in places]
        expected = [
            {NORM: norm, CUT: _in_a_row(own) * factor, REPLICATED: _in_a_row(same) * factor}
            for _, own, same, _ in given
        ]
        mesh = " × ".join(f"{size} {axis}" for axis, size in sizes.items())
        label = f"{ranks(len(places))}: {mesh}, a norm of {norm:.4g}, {max_norm:g} allowed{about}"
        more = {"backend": "gloo", "harness": after_clipping, "judge": _no_gradients, "key": key}
        return Case(label, given, expected, tolerance=1e-5 if dtype == "float64" else 1e-4, **more)

    yield case({"tensor": 2}, 0.05)
    yield case({"pipeline": 2}, 0.5)
    yield case({"data": 2}, 0.5)
    yield case({"tensor": 4}, 0.3, cut=(3,), replicated=(2,))
    yield case({"pipeline": 2, "tensor": 2}, 0.4)
    yield case({"data": 2, "tensor": 2}, 0.4)
    yield case({"data": 2, "pipeline": 2}, 0.4, cut=(1, 3), replicated=(2, 1))
    yield case({"pipeline": 2, "tensor": 2}, 1.5, ": small enough", key="small-enough")
    yield case({"pipeline": 2, "tensor": 2}, 0.5, ", a stage of which nothing is cut", cut=(2, 0))
    yield case({"pipeline": 2, "tensor": 2}, 0.5, ", a stage of which nothing is replicated", replicated=(0, 2))
    yield case({"pipeline": 2, "tensor": 2}, 0.5, ", a stage without gradients", cut=(2, 0), replicated=(1, 0))
    yield case({"tensor": 2}, 0.5, ", all zeros", scale=0.0, key="zeros")
    yield case({"pipeline": 2, "tensor": 2}, 0.5, ", float32", dtype="float32")
    yield case({"pipeline": 2}, 0.5, ", small gradients", scale=0.05)
    yield case({"tensor": 2}, 0.5, ", tiny gradients", scale=2e-7, key="tiny")
    yield in_a_row(case({"tensor": 2}, 0.2, scale=3.0), case({"tensor": 2}, 0.5))
    yield in_a_row(case({"pipeline": 2}, 1.5, cut=(3, 2)), case({"pipeline": 2}, 0.4))
    yield case({"tensor": 1}, 0.25)


def _all_of(parts: Mapping) -> Iterator["Tensor"]:
    for gradients in parts.values():
        yield from gradients


def _no_gradients(outcome: Outcome) -> Finding | None:
    """Where the numbers are right: have gradients travelled?"""
    for rank in range(outcome.world_size):
        sent = sum(call.bytes for call in collectives(outcome, rank))
        if sent > ENOUGH:
            words = (
                "the gradients are right, but rank {rank} sent {got:,} bytes in collectives; sums of squares are enough"
            )
            return own("gradients-travel", words, rank=rank, got=sent)
    return None


EXERCISE = Exercise(
    library="gradient_clipping",
    number=2,
    minutes=15,
    difficulty=2,
    turn="find the norm of the whole gradient, with each number counted once",
    title="clip a gradient that no single rank holds in full",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "The square of the norm is a sum over all numbers of the whole gradient. Which of these numbers are on this "
        "rank only, which are on other ranks as well, and along which axis are those ranks?",
        "Add up `squares(cut)` over `groups['tensor']`. Then add `squares(replicated)`, once and without sending it "
        "along that axis. Add up the result over `groups['pipeline']`. Its square root is the norm. Multiply every "
        "gradient in place by `min(1.0, max_norm / (norm + EPSILON))`, on every rank.",
    ),
    praise=lambda outcome: (
        "clipped as one process would do it, with stages, divided matrices and copies, and without sending a gradient"
    ),
)

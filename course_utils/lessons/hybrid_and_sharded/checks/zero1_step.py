"""The check of `zero1_step`: torch's Adam on the mean gradient, a part of its state on each rank, two collectives."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, Kind, own
from course_utils.checks.symptoms import collectives, same
from course_utils.checks.torch_cases import drawn
from course_utils.lessons.hybrid_and_sharded.checks.steps import (
    KEPT,
    MEAN,
    SQUARE,
    STEPS,
    WEIGHTS,
    after_steps,
    in_a_matrix,
    parts_of,
)
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor

Settings = dict[str, Any]
"""Rate, betas and eps by name; where one is missing, that of `DEFAULTS`."""
DEFAULTS: Settings = {"rate": 0.001, "betas": (0.9, 0.999), "eps": 1e-8}
KINDS = ("reduce_scatter", "all_gather")


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        size: int,
        n: int,
        steps: int,
        about: str = "",
        dtype: str = "float64",
        seen: int = 0,
        column: bool = False,
        defaults: bool = False,
        key: str = "",
    ) -> Case:
        weights = drawn(rng, n, dtype=dtype)
        gradients = [[drawn(rng, n, dtype=dtype) * 3 for _ in range(steps)] for _ in range(size)]
        settings = {} if defaults else _settings(rng)
        if column:
            weights, gradients = (
                in_a_matrix(weights),
                [[in_a_matrix(gradient) for gradient in own] for own in gradients],
            )
        given = [(weights, own, settings, seen) for own in gradients]
        label = f"{ranks(size)}, {count(n, f'{dtype} number')}, {count(steps, 'step')}{about}"
        label += f", in parts of {-(-n // size)}" if n % size else ""
        key = "uneven" if n % size else key
        more = {"backend": "gloo", "harness": after_steps, "judge": _two_collectives, "key": key}
        tolerance = 1e-8 if dtype == "float64" else 1e-4
        return Case(label, given, _expected(given), tolerance=tolerance, **more)

    yield case(min(2, world_size), 6, 1)
    yield case(world_size, 4 * world_size, 2)
    yield case(world_size, 2 * world_size + 1, 3)
    yield case(world_size, max(1, world_size - 1), 2)
    yield case(min(3, world_size), 1, 2)
    yield case(world_size, 3 * world_size, 2, ", a column of a matrix", column=True)
    yield case(min(3, world_size), int(rng.integers(300, 900)), 2, dtype="float32")
    yield case(1, 5, 2)
    yield case(min(2, world_size), 6, 2, ", by a state that has seen 7 steps", seen=7, key="steps-before")
    yield in_a_row(case(min(2, world_size), 6, 2), case(min(2, world_size), 6, 2))
    yield in_a_row(case(min(2, world_size), 10, 1), case(min(2, world_size), 4, 1))
    yield case(world_size, 4000, 2, ", with the rate, betas and eps of the docstring", defaults=True)


def _settings(rng: np.random.Generator) -> Settings:
    """Rate, betas and eps that show themselves in the very first steps."""
    betas = float(rng.uniform(0.5, 0.9)), float(rng.uniform(0.6, 0.95))
    return {"rate": float(rng.uniform(0.01, 0.2)), "betas": betas, "eps": float(rng.uniform(0.05, 0.5))}


def _means(given: Sequence[tuple]) -> list["Tensor"]:
    """For each step the mean of the ranks' gradients."""
    return [sum(each) / len(each) for each in zip(*(gradients for _, gradients, *_ in given), strict=True)]


def _expected(given: Sequence[tuple]) -> list[dict]:
    """What each rank must have, by torch's Adam in one process."""
    import torch

    weights, gradients, settings, seen = given[0]
    settings = DEFAULTS | settings
    whole = torch.nn.Parameter(weights.clone().contiguous())
    optimizer = torch.optim.Adam([whole], lr=settings["rate"], betas=settings["betas"], eps=settings["eps"])
    optimizer.state[whole] = {
        "step": torch.tensor(float(seen)),
        "exp_avg": torch.zeros_like(whole),
        "exp_avg_sq": torch.zeros_like(whole),
    }
    for mean in _means(given):
        whole.grad = mean.contiguous()
        optimizer.step()
    state, parts = optimizer.state[whole], parts_of(len(whole), len(given))
    more = {WEIGHTS: whole.detach(), STEPS: seen + len(gradients), KEPT: ...}
    return [more | {MEAN: state["exp_avg"][own].clone(), SQUARE: state["exp_avg_sq"][own].clone()} for own in parts]


def _two_collectives(outcome: Outcome) -> Finding | None:
    """Where the numbers are right: what has it cost, in calls, in bytes and in memory?"""
    part, steps = _part_bytes(outcome.case), len(outcome.case.arguments[0][1])
    for rank in range(outcome.world_size):
        calls = collectives(outcome, rank)
        names = [call.name for call in calls]
        if "all_reduce" in names:
            words = (
                "called all_reduce, which brings the sum of the whole gradient; it needs its own part only, "
                "and a reduce-scatter sends half as many bytes for that"
            )
            return _right_but("all-reduce", words, rank=rank)
        for kind in KINDS:
            made = sum(name.startswith(kind) for name in names)
            if made != steps:
                often = f"{count(made, 'time')} in {count(steps, 'step')}"
                words = "called {kind} {often}, and one call in each step is expected"
                return _right_but("not-one-in-each-step", words, rank=rank, kind=kind, often=often)
        others = [name for name in names if not name.startswith(KINDS)]
        if others:
            words = "also called {call}; a reduce-scatter and an all-gather are enough"
            return _right_but("another-collective", words, rank=rank, call=others[0])
        sent, most = sum(call.bytes for call in calls), steps * part * (outcome.world_size + 1)
        if sent > most:
            return Finding(Kind.BYTES, rank, got=sent, expected=most)
        kept = outcome.results[rank][KEPT]
        if kept > 2 * part:
            words = "keeps {got:,} bytes of state; the mean and the square of its part take {expected:,}"
            return _right_but("state-too-large", words, rank=rank, got=kept, expected=2 * part)
    return None


def _right_but(key: str, words: str, **values: Any) -> Finding:
    return own(key, f"the parameters are right, but rank {{rank}} {words}", **values)


def _state_wrong(case: Case, outcome: Outcome) -> bool:
    """Whether Adam's mean is wrong on a rank, which means that `state.change` was given wrong numbers."""
    pairs = zip(outcome.results, case.expected or (), strict=True)
    return any(not same(result[MEAN], wanted[MEAN], case.tolerance) for result, wanted in pairs)


def _parameters_wrong(case: Case, outcome: Outcome) -> bool:
    """Whether nothing but the parameters is wrong."""
    found = outcome.finding
    return found is not None and WEIGHTS in found.where and not _state_wrong(case, outcome)


def _rounded(case: Case, outcome: Outcome) -> bool:
    """Whether all numbers of a float64 case are right to six digits: some of them went through float32."""
    is_float64 = case.tolerance is not None and case.tolerance < 1e-6
    pairs = zip(outcome.results, case.expected or (), strict=True)
    return is_float64 and all(same(result, wanted, 1e-6) for result, wanted in pairs)


def _part_bytes(case: Case) -> int:
    """The bytes of one rank's part of the parameters."""
    weights = case.arguments[0][0]
    return -(-len(weights) // len(case.arguments)) * weights.element_size()


EXERCISE = Exercise(
    library="zero1",
    number=3,
    minutes=20,
    difficulty=3,
    turn="reduce-scatter the gradient, update this rank's part, all-gather the parameters",
    title="Adam's state divided among the ranks",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "An all-reduce is a reduce-scatter and an all-gather. What does a rank have between the two? And what can the "
        "ranks gather instead of gradients, once each of them has used what it has?",
        "Let `length` be that of `state.mean`. `filled = pad(gradient, (0, P * length - n))` has P equal parts, and "
        "`dist.reduce_scatter_single(mine, filled)` brings this rank's part of the sum, which you divide by P. Pad the "
        "parameters in the same way, take the slice from `rank * length`, and add `state.change(mine, rate, betas, "
        "eps)`. `dist.all_gather_single(everything, own)` collects all parts, and the first n numbers of `everything` "
        "go into `parameters`.",
    ),
    symptoms={
        "the numbers have the precision of float32": _rounded,
        "the state's mean is wrong": _state_wrong,
        "only the parameters are wrong": _parameters_wrong,
    },
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} do the same steps as torch's Adam, and each keeps {outcome.results[0][KEPT]:,} "
        f"of {2 * outcome.world_size * _part_bytes(outcome.case):,} bytes of state, with one reduce-scatter and one "
        "all-gather in each step"
    ),
)

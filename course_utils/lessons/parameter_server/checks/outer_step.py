"""The check of `outer_step`: torch's Nesterov step along the mean change, in one all-reduce."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import after_another_call, fewer
from course_utils.checks.exercise import Case, Cost, Exercise
from course_utils.lessons.parameter_server.checks.common import LEAST, after_a_different_call, weights_once
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from mpi4py import MPI

DEFAULTS = {"rate": 0.7, "momentum": 0.9}
ARRAYS = ("`parameters`", "`started`", "`velocity`")


def called_so(
    function: Callable,
    comm: "MPI.Intracomm",
    parameters: np.ndarray,
    started: np.ndarray,
    velocity: np.ndarray,
    settings: dict[str, float],
) -> dict[str, np.ndarray]:
    """Call the learner's function and return its three arrays by name.

    What the docstring has as a default is left out where a case leaves it out.
    """
    function(comm, parameters, started, velocity, **settings)
    return dict(zip(ARRAYS, (parameters, started, velocity), strict=True))


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(
        size: int,
        length: int,
        settings: dict[str, float] | None,
        about: str = "",
        dtype: str = "float64",
        first: bool = False,
    ) -> Case:
        """`settings`: None for the docstring's own. `first`: the velocity is zero."""
        started = rng.standard_normal(length).astype(dtype)
        velocity = (rng.standard_normal(length) * (not first)).astype(dtype)
        own = [(started + rng.standard_normal(length)).astype(dtype) for _ in range(size)]
        weights, moved = by_hand(own, started, velocity, **(DEFAULTS if settings is None else settings))
        weights, moved = weights.astype(dtype), moved.astype(dtype)
        named = " and ".join(f"{name} {value}" for name, value in (settings or {}).items())
        settings_text = named or "rate and momentum of the docstring"
        label = f"{ranks(size)}, {count(length, f'{dtype} number')}, {settings_text}{about}"
        arguments = [(local_weights, started.copy(), velocity.copy(), settings or {}) for local_weights in own]
        expected = [dict(zip(ARRAYS, (weights, weights, moved), strict=True))] * size
        cost = Cost(messages=0, collectives=1 if size > 1 else None)
        more = {"tolerance": 1e-10 if dtype == "float64" else 1e-4, "harness": called_so, "judge": weights_once}
        key = "defaults" if settings is None else ""
        return Case(label, arguments, expected, may_change=(0, 1, 2), cost=cost, key=key, **more)

    def drawn() -> dict[str, float]:
        return {"rate": round(float(rng.uniform(0.3, 0.9)), 2), "momentum": round(float(rng.uniform(0.4, 0.8)), 2)}

    yield case(world_size, 4, {"rate": 1.0, "momentum": 0.0}, ": the plain mean")
    yield case(world_size, 6, drawn())
    yield case(world_size, 30, None)
    yield case(world_size, 12, drawn(), ", the first step", first=True)
    for size in fewer(world_size):
        yield case(size, int(rng.integers(2, 99)), drawn())
    yield case(world_size, 40, drawn(), dtype="float32")
    for length in (1, 0):
        yield case(world_size, length, drawn())
    yield after_another_call(case(world_size, 7, drawn()))
    yield after_a_different_call(case(world_size, 11, drawn()), case(world_size, 6, drawn()))
    yield case(world_size, 50_001, drawn(), dtype="float32")


def by_hand(
    own: Sequence[np.ndarray], started: np.ndarray, velocity: np.ndarray, rate: float, momentum: float
) -> tuple[np.ndarray, np.ndarray]:
    """The new weights and velocity, in float64."""
    change = np.mean(np.stack(own).astype("float64"), axis=0) - started.astype("float64")
    moved = momentum * velocity.astype("float64") - change
    return started + rate * (change - momentum * moved), moved


EXERCISE = Exercise(
    library="outer_optimizer",
    number=5,
    minutes=15,
    difficulty=2,
    turn="use the mean change as a gradient, and take one Nesterov step with it",
    title="DiLoCo's outer step",
    cases=_cases,
    hints=(
        "All ranks began at `started`. Which vector leads from the mean of their present weights back to it? This is "
        "the outer gradient. What would the step be without momentum?",
        "The gradient g is the all-reduce of `started - parameters`, divided by `comm.size`. Then compute "
        "`velocity[:] = momentum * velocity + g`, `started -= rate * (g + momentum * velocity)` and "
        "`parameters[:] = started`.",
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} took one outer step together, and contributed "
        f"{outcome.run.bytes_per_rank[0]:,} bytes each to one all-reduce"
    ),
)

"""The check of `scaling_efficiency`: strong and weak, and rejections."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.cases import rejections
from course_utils.checks.exercise import Case, Exercise
from course_utils.words import ranks

KINDS = ("strong", "weak")
NO_KINDS = ((4, "sideways"), (1, "sideways"), (4, ""), (4, "Strong"), (4, "weak "), (4, "w"), (4, "weakly"))
NO_SENSE = (
    (0.0, 2.0, 4),
    (-8.0, 2.0, 4),
    (8.0, 0.0, 4),
    (8.0, -2.0, 4),
    (8.0, 2.0, 0),
    (8.0, 2.0, -4),
    (-8.0, -2.0, 4),
    (8.0, -2.0, -4),
)


def of_both_kinds(function: Callable, *numbers: float) -> dict[str, float]:
    """The learner's efficiency in strong and in weak scaling."""
    return {f"the efficiency in {kind} scaling": function(*numbers, kind) for kind in KINDS}


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(serial: float, together: float, size: int, key: str = "") -> Case:
        """Shares of all seconds, in ranks × seconds: of use, and spent."""
        label = f"alone {serial:.4g} s, {ranks(size)} together {together:.4g} s"
        wanted = {
            f"the efficiency in {kind} scaling": useful / (size * together)
            for kind, useful in (("strong", serial), ("weak", serial * size))
        }
        given = (serial, together, size)
        return Case(label, [given], [wanted], with_comm=False, tolerance=1e-12, harness=of_both_kinds, key=key)

    yield case(8.0, 10.0, 4)
    yield case(8.0, 8.0, 4)
    serial, other = (float(seconds) for seconds in rng.uniform(1, 100, 2))
    yield case(serial, serial * float(rng.uniform(1.05, 3)), int(rng.integers(2, 64)))
    yield case(other, other * float(rng.uniform(1.05, 3)), 1)
    yield case(8.0, 2.5, 4)
    yield case(12.0, 2.5, 4)
    yield case(0.02, 0.004, 8, "short-times")
    yield case(3e-6, 9e-7, 4, "short-times")
    more = {"with_comm": False, "tolerance": 1e-12, "key": "default-kind"}
    yield Case("no kind is named", [(serial, 3.0, 8)], [serial / 24.0], **more)
    calls = [(8.0, 2.0, *given) for given in NO_KINDS]
    yield from rejections("scaling_efficiency", calls, "ValueError", key="unknown-kind")
    calls = [(*given, kind) for given in NO_SENSE for kind in KINDS]
    yield from rejections("scaling_efficiency", calls, "ValueError")


EXERCISE = Exercise(
    library="scaling",
    number=4,
    minutes=5,
    difficulty=1,
    turn="the useful seconds of all ranks, divided by all their seconds",
    title="how efficient are P ranks?",
    cases=_cases,
    hints=(
        "P ranks are busy for seconds_together each. For how many seconds do you pay in total, and how many seconds "
        "would one rank have needed for the same work?",
        "You pay for world_size · seconds_together. One rank would have needed seconds_alone for the same work in "
        "strong scaling, and world_size · seconds_alone in weak scaling. Before you divide, raise a ValueError if "
        "`kind` is unknown, or a number is zero or negative.",
    ),
    praise=lambda outcome: "strong and weak scaling are right, and what makes no sense is rejected",
)

"""The check of `matmul_backward`: torch's own gradients of `a @ b`, for matrices and for stacks that broadcast."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Kind
from course_utils.checks.symptoms import raised, same


def by_torch(gradient: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradients with respect to `a` and `b`, by torch in float64, in the dtype of `a`."""
    import torch

    left, right = (torch.tensor(np.asarray(x, np.float64), requires_grad=True) for x in (a, b))
    (left @ right).backward(torch.tensor(np.asarray(gradient, np.float64)))
    return left.grad.numpy().astype(a.dtype), right.grad.numpy().astype(b.dtype)


def sides(shape: tuple[int, ...]) -> str:
    """A shape in a message: "7 × 2 × 3"."""
    return " × ".join(map(str, shape))


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(a: tuple[int, ...], b: tuple[int, ...], dtype: str = "float64", columns: bool = False) -> Case:
        x, y = (rng.normal(size=shape).astype(dtype) for shape in (a, b))
        if columns:
            x, y = map(np.asfortranarray, (x, y))  # they keep their order on the way to the function; views would not
        gradient = rng.normal(size=(x @ y).shape).astype(dtype)
        label = f"{sides(a)} @ {sides(b)}" + ", a stack" * (gradient.ndim > 2)
        label += f", {dtype}" * (dtype != "float64") + ", in memory column by column" * columns
        given = (gradient, x, y)
        key = "stack" if gradient.ndim > 2 else ""
        parts = "the gradient of a", "the gradient of b"
        return Case(label, [given], [by_torch(*given)], with_comm=False, key=key, parts=parts)

    n, k, m = (int(side) for side in rng.permutation([2, 3, 4, 5, 6])[:3])
    yield case((2, 3), (3, 4))
    yield case((3, 3), (3, 3))
    yield case((1, k), (k, 1))
    yield case((1, 1), (1, 1))
    yield case((7, n, k), (7, k, m))
    yield case((7, n, k), (k, m))
    yield case((n, k), (7, k, m))
    yield case((1, n, k), (7, k, m))
    yield case((7, n, k), (1, k, m))
    yield case((4, 7, n, k), (7, k, m))
    yield case((4, 7, n, k), (k, m))
    yield case((n, k), (4, 7, k, m))
    yield case((4, 1, n, k), (1, 7, k, m))
    yield case((3, 1, k), (k, 1))
    yield case((1, n, k), (k, m))
    yield case((3, 3, 3), (3, 3))
    yield case((n, k), (k, m), columns=True)
    yield case((2, 1, n, k), (3, k, m), columns=True)
    yield case((n, k), (k, m), "float32")
    yield case((4, n, k), (2, 1, k, m), "float32")
    yield case((5, n, k), (k, m), "float16")
    yield in_a_row(case((n, k), (k, m)), case((n, k), (k, m)))
    yield in_a_row(case((2, n, k), (k, m), "float32"), case((n, k), (k, m)))
    yield case((0, k), (k, m))
    yield case((n, 0), (0, m))


def _stack_of_another_shape(case: Case, outcome: Outcome) -> bool:
    return case.key == "stack" and outcome.finding.kind == Kind.SHAPE


def _stack_raises(case: Case, outcome: Outcome) -> bool:
    return case.key == "stack" and raised(outcome)


def _nearly_right(case: Case, outcome: Outcome) -> bool:
    return same(outcome.results[0], case.expected[0], 1e-5)


def _no_entries(case: Case, outcome: Outcome) -> bool:
    return any(array.size == 0 for array in case.arguments[0])


EXERCISE = Exercise(
    library="autodiff",
    number=2,
    minutes=15,
    difficulty=2,
    turn="compute two products, and sum where an array was repeated",
    title="the gradients of a @ b",
    cases=_cases,
    hints=(
        "The shape of `gradient` is (rows, columns), that of `b` is (inner, columns), and the gradient of `a` must be "
        "(rows, inner). Which product of the first two has this shape? And if one matrix was multiplied by seven "
        "others, how many parts does its gradient have, and what do you do with them?",
        "`b.swapaxes(-1, -2)` swaps the last two axes. The gradient of `a` is `gradient @ b.swapaxes(-1, -2)`, and "
        "that of `b` is `a.swapaxes(-1, -2) @ gradient`. Then call `unbroadcast(…, a.shape)` on the first and "
        "`unbroadcast(…, b.shape)` on the second.",
    ),
    symptoms={
        "a stack has another shape": _stack_of_another_shape,
        "a stack raises an error": _stack_raises,
        "a matrix has no entries": _no_entries,
        "it is nearly right": _nearly_right,
    },
    praise=lambda outcome: "both gradients agree with torch's, for matrices and for stacks that broadcast",
)

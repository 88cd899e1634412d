"""The check of `matmul_backward`: torch's own gradients of `a @ b`, for matrices and for stacks that broadcast."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import nothing_returned, raised
from course_utils.lessons.autodiff_and_optimizers.autodiff import unbroadcast
from course_utils.lessons.autodiff_and_optimizers.checks import LESSON
from course_utils.lessons.autodiff_and_optimizers.checks.common import changed, gives, same

Pair = tuple[np.ndarray, np.ndarray]


def by_torch(gradient: np.ndarray, a: np.ndarray, b: np.ndarray) -> Pair:
    """The gradients with respect to `a` and `b`, by torch in float64, in the dtype of `a`."""
    import torch

    left, right = (torch.tensor(np.asarray(x, np.float64), requires_grad=True) for x in (a, b))
    (left @ right).backward(torch.tensor(np.asarray(gradient, np.float64)))
    return left.grad.numpy().astype(a.dtype), right.grad.numpy().astype(b.dtype)


def sides(shape: tuple[int, ...]) -> str:
    """A shape in a message: "7 × 2 × 3"."""
    return " × ".join(map(str, shape))


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(a: tuple[int, ...], b: tuple[int, ...], dtype: str = "float64", views: bool = False) -> Case:
        x, y = (rng.normal(size=shape).astype(dtype) for shape in (a, b))
        if views:
            x, y = x.swapaxes(-1, -2).copy().swapaxes(-1, -2), np.repeat(y, 2, axis=-1)[..., ::2]
        gradient = rng.normal(size=(x @ y).shape).astype(dtype)
        unlike = "" if dtype == "float64" else f", {dtype}"
        label = f"{sides(a)} @ {sides(b)}{unlike}" + (", arrays that do not lie in one piece" if views else "")
        given = (gradient, x, y)
        unchanged = {place: one.copy() for place, one in enumerate(given)}
        return Case(label, [given], [by_torch(*given)], [unchanged], with_comm=False)

    n, k, m = (int(side) for side in rng.permutation([2, 3, 4, 5, 6])[:3])
    yield case((2, 3), (3, 4))
    yield case((3, 3), (3, 3))
    yield case((1, k), (k, 1))
    yield case((1, 1), (1, 1))
    yield case((7, n, k), (7, k, m))
    yield case((7, n, k), (k, m))
    yield case((n, k), (7, k, m))
    yield case((1, n, k), (7, k, m))
    yield case((4, 7, n, k), (7, k, m))
    yield case((4, 1, n, k), (1, 7, k, m))
    yield case((3, 1, k), (k, 1))
    yield case((n, k), (k, m), views=True)
    yield case((n, k), (k, m), "float32")
    yield case((0, k), (k, m))
    yield case((n, 0), (0, m))


def _stacks(case: Case) -> bool:
    """Whether one of the two was repeated along leading axes."""
    _, a, b = case.arguments[0]
    return a.shape[:-2] != b.shape[:-2]


def _whole(gradient: np.ndarray, a: np.ndarray, b: np.ndarray) -> Pair:
    return gradient @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ gradient


def _whole_summed(gradient: np.ndarray, a: np.ndarray, b: np.ndarray) -> Pair:
    to_a, to_b = _whole(gradient, a, b)
    return unbroadcast(to_a, a.shape), unbroadcast(to_b, b.shape)


def _not_summed(case: Case, outcome: Outcome) -> bool:
    found = outcome.results[0]
    shapes = [one.shape for one in _whole(*case.arguments[0])]
    return _stacks(case) and found is not NO_RESULT and _shapes(found) == shapes


def _shapes(found: object) -> list:
    return [getattr(one, "shape", None) for one in found] if type(found) in (tuple, list) else []


def _other_shapes(case: Case, outcome: Outcome) -> bool:
    return _stacks(case) and outcome.results[0] is not NO_RESULT and _shapes(outcome.results[0]) != _expected(case)


def _expected(case: Case) -> list:
    return [one.shape for one in case.expected[0]]


def _swapped(case: Case, outcome: Outcome) -> bool:
    found = outcome.results[0]
    return type(found) in (tuple, list) and same(tuple(found), case.expected[0][::-1])


def _mean(gradient: np.ndarray, a: np.ndarray, b: np.ndarray) -> Pair:
    """The mean along repeated axes, where the sum is right."""
    to_a, to_b = _whole(gradient, a, b)
    return tuple(unbroadcast(g, x.shape) * (x.size / g.size) for g, x in ((to_a, a), (to_b, b)))


def _first_of_stack(gradient: np.ndarray, a: np.ndarray, b: np.ndarray) -> Pair:
    """Of repeated axes only the first entry."""
    found = []
    for g, x in zip(_whole(gradient, a, b), (a, b), strict=True):
        while g.ndim > x.ndim:
            g = g[0]
        found.append(g[tuple(slice(0, 1) if side == 1 else slice(None) for side in x.shape)])
    return tuple(found)


def _one_alone(case: Case, outcome: Outcome) -> bool:
    found = outcome.results[0]
    return type(found) is np.ndarray and any(same(found, one) for one in case.expected[0])


def _reshaped(gradient: np.ndarray, a: np.ndarray, b: np.ndarray) -> Pair:
    """Turned by reshape, which keeps the numbers' order, where the axes had to be swapped."""
    turned_b, turned_a = (x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2]) for x in (b, a))
    return unbroadcast(gradient @ turned_b, a.shape), unbroadcast(turned_a @ gradient, b.shape)


MATMUL_BACKWARD = Exercise(
    name="matmul_backward",
    library="course_utils.lessons.autodiff_and_optimizers.autodiff:matmul_backward",
    lesson=LESSON,
    place=2,
    minutes=15,
    difficulty=2,
    turn="two products, each summed where its array was repeated",
    title="the gradients of a @ b",
    cases=_cases,
    picture=False,
    hints=(
        "`gradient` is (rows, columns), `b` is (inner, columns), and the gradient of `a` must be (rows, inner). Which "
        "product of the first two has this shape? And where one matrix was used for seven others, how many parts has "
        "its gradient, and what becomes of them?",
        "For `a`: `gradient @ b` with b's last two axes swapped; for `b`: `a` with its last two axes swapped, "
        "`@ gradient`. Then `unbroadcast(…, a.shape)` and `unbroadcast(…, b.shape)`.",
    ),
    mistakes=(
        Mistake("Is there a `return`?", nothing_returned),
        Mistake("Whose numbers did you change on the way?", changed(0, 1, 2)),
        Mistake("How many gradients are asked for?", _one_alone),
        Mistake("Which of the two gradients comes first?", _swapped),
        Mistake("What became of `gradient`?", gives(lambda g, a, b: _whole_summed(np.ones_like(g), a, b))),
        Mistake("Are the axes swapped, or only the numbers filled into another shape?", gives(_reshaped)),
        Mistake("A matrix was used for several others: are its parts added up, or averaged?", gives(_mean)),
        Mistake("A matrix was used for several others: does each of them count?", gives(_first_of_stack)),
        Mistake("A matrix was used for several others: which shape has its gradient?", _not_summed),
        Mistake("Which axes were repeated, and which have only length 1 by themselves?", _other_shapes),
        Mistake(
            "In a stack of matrices, which two axes change places?",
            lambda case, outcome: case.arguments[0][1].ndim + case.arguments[0][2].ndim > 4,
        ),
        Mistake(
            "Write the three shapes side by side: which of the two factors must be turned so that they fit?",
            lambda case, outcome: raised(outcome),
        ),
    ),
    praise=lambda outcome: "both gradients are torch's, for matrices and for stacks of them that broadcast",
)

"""The check of `softmax_cross_entropy_backward`: torch's own gradient, with logits of any size."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import nothing_returned, raised
from course_utils.lessons.autodiff_and_optimizers.checks import LESSON
from course_utils.lessons.autodiff_and_optimizers.checks.common import changed, gives


def by_torch(gradient: float, logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The gradient with respect to the logits, by torch in float64, in the dtype of the logits."""
    import torch

    x = torch.tensor(np.array(logits, np.float64, order="C"), requires_grad=True)
    torch.nn.functional.cross_entropy(x, torch.tensor(labels.astype(np.int64))).backward(
        torch.tensor(gradient).double()
    )
    return x.grad.numpy().astype(logits.dtype)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        label: str,
        batch: int,
        classes: int = 10,
        gradient: float = 1.0,
        *,
        scale: float = 1.0,
        shift: float | np.ndarray = 0.0,
        dtype: str = "float64",
        views: bool = False,
    ) -> Case:
        logits = (rng.normal(size=(batch, classes)) * scale + shift).astype(dtype)
        if views:
            logits = np.asfortranarray(logits)[:, ::-1]
        labels = rng.integers(classes, size=batch)
        given = (gradient, logits, labels)
        unchanged = {1: logits.copy(), 2: labels.copy()}
        return Case(label, [given], [by_torch(*given)], [unchanged], with_comm=False)

    batch, classes = int(rng.integers(5, 9)), int(rng.integers(3, 8))
    yield case("4 rows, 3 classes", 4, 3)
    yield case(f"{batch} rows, {classes} classes", batch, classes)
    yield case("4 rows, 4 classes", 4, 4)
    yield case("1 row, 3 classes", 1, 3)
    yield case("6 rows, gradient 0.25: the mean is not yet the loss", 6, gradient=0.25)
    yield case("5 rows, float32", 5, dtype="float32")
    yield case("5 rows, logits around 2000", 5, scale=3.0, shift=2000.0)
    yield case("5 rows, logits around -2000", 5, scale=3.0, shift=-2000.0)
    apart = 2000.0 * np.array([[1.0], [-1.0], [0.0], [1.0]])
    yield case("4 rows, around 2000, around -2000 and around 0", 4, scale=3.0, shift=apart)
    yield case("3 rows, logits thousands apart", 3, scale=3000.0)
    yield case("4 rows, 1 class", 4, 1)
    yield case("6 rows that do not lie in one piece", 6, views=True)


def _softmax(logits: np.ndarray, axis: int | tuple[int, int] = 1) -> np.ndarray:
    exponentials = np.exp(logits - logits.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _one_hot(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.eye(logits.shape[1])[labels]


def _columns(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """1 in each column that is the label of some row."""
    return np.broadcast_to(_one_hot(logits, labels).max(axis=0), logits.shape)


def _formula(of: Callable[[np.ndarray, np.ndarray, float], np.ndarray]) -> Callable:
    """A recogniser of what a formula of (softmax, one at each row's label, gradient / rows) gives."""
    return gives(lambda g, x, y: of(_softmax(x), _one_hot(x, y), g / len(y)))


def _overflows(case: Case, outcome: Outcome) -> bool:
    found = outcome.results[0]
    return type(found) is np.ndarray and found.dtype.kind == "f" and not np.isfinite(found).all()


def _overflows_at_plus(case: Case, outcome: Outcome) -> bool:
    return _overflows(case, outcome) and case.arguments[0][1].max() > 700 and case.arguments[0][1].min() > 700


def _overflows_at_minus(case: Case, outcome: Outcome) -> bool:
    return _overflows(case, outcome) and case.arguments[0][1].min() < -700


def _clipped(case: Case, outcome: Outcome) -> bool:
    return outcome.results[0] is not NO_RESULT and bool(np.abs(case.arguments[0][1]).max() > 700)


def _other_dtype(case: Case, outcome: Outcome) -> bool:
    found = outcome.results[0]
    return type(found) is np.ndarray and found.dtype != case.expected[0].dtype


def _right_shape(case: Case, outcome: Outcome) -> bool:
    found = outcome.results[0]
    return type(found) is np.ndarray and found.shape == case.expected[0].shape


def _rows_add_up_wrongly(case: Case, outcome: Outcome) -> bool:
    if not _right_shape(case, outcome) or not np.isfinite(outcome.results[0]).all():
        return False
    found = outcome.results[0]
    return bool(np.abs(found.sum(axis=1)).max(initial=0) > 1e-3 * np.abs(found).max(initial=0))


SOFTMAX_CROSS_ENTROPY_BACKWARD = Exercise(
    name="softmax_cross_entropy_backward",
    library="course_utils.lessons.autodiff_and_optimizers.autodiff:softmax_cross_entropy_backward",
    lesson=LESSON,
    place=3,
    minutes=15,
    difficulty=2,
    turn="the softmax, less 1 at the right class, scaled",
    title="where the backward pass begins",
    cases=_cases,
    picture=False,
    hints=(
        "The softmax of a row is what the network believes; the truth is 1 at the right class and 0 elsewhere. What "
        "lies between the two? And which number may be taken from all logits of a row without changing its softmax?",
        "`e = np.exp(logits - logits.max(axis=1, keepdims=True))`, divided by its row sums; minus 1 at "
        "`[np.arange(len(labels)), labels]`; all of it times `gradient / len(labels)`.",
    ),
    mistakes=(
        Mistake("Is there a `return`?", nothing_returned),
        Mistake("Whose numbers did you change on the way?", changed(1, 2)),
        Mistake("In which dtype did the logits come?", _other_dtype),
        Mistake("How large is e^2000? Which softmax has smaller exponents, and is the same?", _overflows_at_plus),
        Mistake(
            "Every row has a largest logit of its own: what is left of a row far below the others?", _overflows_at_minus
        ),
        Mistake("The loss is a mean: over how many rows?", _formula(lambda p, y, g: (p - y) * g * len(p))),
        Mistake(
            "The loss is a mean: over the rows, or over all entries?",
            _formula(lambda p, y, g: (p - y) * g / p.shape[1]),
        ),
        Mistake(
            "The loss is a mean: over the rows, or over the classes?",
            _formula(lambda p, y, g: (p - y) * g * len(p) / p.shape[1]),
        ),
        Mistake("What is `gradient` for?", gives(lambda g, x, y: (_softmax(x) - _one_hot(x, y)) / len(y))),
        Mistake("What does the right class change?", _formula(lambda p, y, g: p * g)),
        Mistake(
            "Should the right class's logit grow or shrink when you step against the gradient?",
            _formula(lambda p, y, g: (y - p) * g),
        ),
        Mistake("Do the other classes have a gradient as well?", _formula(lambda p, y, g: (p - y) * y * g)),
        Mistake(
            "Over which axis does a softmax add up to 1?",
            gives(lambda g, x, y: (_softmax(x, 0) - _one_hot(x, y)) * g / len(y)),
        ),
        Mistake(
            "Over which axis does a softmax add up to 1?",
            gives(lambda g, x, y: (_softmax(x, (0, 1)) - _one_hot(x, y)) * g / len(y)),
        ),
        Mistake(
            "Is 1 taken from one entry of each row, or from whole columns?",
            gives(lambda g, x, y: (_softmax(x) - _columns(x, y)) * g / len(y)),
        ),
        Mistake("Is that the softmax of these logits, or of others?", _clipped),
        Mistake(
            "Which shapes must two arrays have, so that each row meets its own number?",
            lambda case, outcome: raised(outcome, "broadcast"),
        ),
        Mistake("The softmax of a row adds up to 1: to what must a row of the gradient add up?", _rows_add_up_wrongly),
        Mistake("Which shape has the gradient of an array?", lambda case, outcome: not _right_shape(case, outcome)),
    ),
    praise=lambda outcome: "the gradient is torch's, with logits in the thousands too",
)

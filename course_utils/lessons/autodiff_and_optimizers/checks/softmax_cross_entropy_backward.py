"""The check of `softmax_cross_entropy_backward`: torch's own gradient, with logits of any size."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.symptoms import same


def by_torch(gradient: float, logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The gradient with respect to the logits, by torch in float64, in the dtype of the logits."""
    import torch

    x = torch.tensor(np.array(logits, np.float64, order="C"), requires_grad=True)
    loss = torch.nn.functional.cross_entropy(x, torch.tensor(labels.astype(np.int64)))
    loss.backward(torch.tensor(gradient, dtype=torch.float64))
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
        of_labels: str = "int64",
        columns: bool = False,
        key: str = "",
    ) -> Case:
        logits = (rng.normal(size=(batch, classes)) * scale + shift).astype(dtype)
        if columns:
            logits = np.asfortranarray(logits)  # keeps its order on the way to the function; a view would not
        given = (gradient, logits, rng.integers(classes, size=batch).astype(of_labels))
        return Case(label, [given], [by_torch(*given)], with_comm=False, key=key)

    batch, classes = int(rng.integers(5, 9)), int(rng.integers(3, 8))
    factor = float(-rng.uniform(1, 3))
    yield case("4 rows, 3 classes", 4, 3)
    yield case(f"{batch} rows, {classes} classes", batch, classes)
    yield case("4 rows, 4 classes", 4, 4)
    yield case("1 row, 3 classes", 1, 3)
    yield case("6 rows, gradient 0.25: the mean is not yet the loss", 6, gradient=0.25)
    yield case(f"6 rows, gradient {factor:.3g}", 6, gradient=factor)
    yield case("5 rows, float32", 5, dtype="float32", of_labels="int32")
    yield case("5 rows of equal numbers", 5, scale=0.0, shift=1.3)
    yield case("5 rows, logits around 2000", 5, scale=3.0, shift=2000.0, key="large-logits")
    yield case("5 rows, logits around -2000", 5, scale=3.0, shift=-2000.0, key="large-logits")
    shifts = 2000.0 * np.array([[1.0], [-1.0], [0.0], [1.0]])
    yield case("4 rows, logits around 2000, -2000 and 0", 4, scale=3.0, shift=shifts, key="large-logits")
    label = "3 rows, logits thousands apart"
    yield case(label, 3, scale=3000.0, key="large-logits")
    yield case(f"{label}, float32", 3, gradient=factor, scale=3000.0, dtype="float32", key="large-logits")
    yield case("4 rows, float16", 4, dtype="float16")
    yield in_a_row(case("5 rows, 4 classes", 5, 4), case("5 rows, 4 classes", 5, 4))
    yield in_a_row(case("7 rows, 5 classes", 7, 5, dtype="float32"), case("3 rows, 4 classes", 3, 4))
    yield case("4 rows, 1 class", 4, 1)
    yield case("6 rows that lie in memory column by column", 6, columns=True, key="columns")
    yield case("200 rows, 150 classes, labels of 8 bits", 200, 150, of_labels="uint8")


def _rows_add_up_wrongly(case: Case, outcome: Outcome) -> bool:
    found = outcome.results[0]
    if type(found) is not np.ndarray or found.shape != case.expected[0].shape or not np.isfinite(found).all():
        return False
    return bool(np.abs(found.sum(axis=1)).max(initial=0) > 1e-3 * np.abs(found).max(initial=0))


def _nearly_right(case: Case, outcome: Outcome) -> bool:
    return not case.key and same(outcome.results[0], case.expected[0], 1e-5)


EXERCISE = Exercise(
    library="autodiff",
    number=3,
    minutes=15,
    difficulty=2,
    turn="compute the softmax, subtract 1 at the right class, and scale",
    title="where the backward pass begins",
    cases=_cases,
    hints=(
        "What do you get as the derivative of log Σ e^z with respect to one z? And which number can you subtract from "
        "all logits of a row without changing its softmax, so that no exponential is too large?",
        "Compute `e = np.exp(logits - logits.max(axis=1, keepdims=True))` and divide it by "
        "`e.sum(axis=1, keepdims=True)`. Subtract 1 at `[np.arange(len(labels)), labels]`, and multiply everything by "
        "`gradient / len(labels)`. Take care that the result has the dtype of `logits`.",
    ),
    symptoms={"a row adds up wrongly": _rows_add_up_wrongly, "it is nearly right": _nearly_right},
    praise=lambda outcome: "the gradient agrees with torch's, even for logits in the thousands",
)

"""The check of `adam_step`: parameters and averages after many steps, as `torch.optim.Adam` has them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, raised
from course_utils.lessons.autodiff_and_optimizers.checks import LESSON
from course_utils.lessons.autodiff_and_optimizers.checks.common import same

DEFAULTS = {"rate": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
EVERY = ("parameters", "means", "squares")
LAYERS = ((6, 4), (4,), (4, 2))
Arrays = Sequence[np.ndarray]
Update = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
"""(parameter, gradient, mean, square, step, rate, beta1, beta2, eps) → parameter, mean and square after the step."""


def after_steps(
    function: Callable, parameters: Arrays, gradients: Sequence[Arrays], options: dict, views: bool
) -> dict:
    """What the arrays hold after one step for each entry of `gradients`, seen by somebody else who holds them too."""
    weights = [np.repeat(one, 2, axis=0)[::2] if views else one for one in parameters]
    means, squares = ([np.zeros_like(one) for one in weights] for _ in range(2))
    for step, each in enumerate(gradients, start=1):
        function(list(weights), each, list(means), list(squares), step, **options)
    return {"means": means, "squares": squares, "parameters": weights, "gradients": gradients}


def by_torch(parameters: Arrays, gradients: Sequence[Arrays], options: dict) -> dict:
    """The same, by `torch.optim.Adam` in float64, in the dtype of the parameters."""
    import torch

    given = DEFAULTS | options
    weights = [torch.tensor(np.asarray(one, np.float64), requires_grad=True) for one in parameters]
    betas = (given["beta1"], given["beta2"])
    optimizer = torch.optim.Adam(weights or [torch.zeros(0)], lr=given["rate"], betas=betas, eps=given["eps"])
    for each in gradients:
        for weight, gradient in zip(weights, each, strict=True):
            weight.grad = torch.tensor(np.asarray(gradient, np.float64))
        optimizer.step()
    states = [optimizer.state[weight] for weight in weights]
    found = {
        "means": [state["exp_avg"] for state in states],
        "squares": [state["exp_avg_sq"] for state in states],
        "parameters": [weight.detach() for weight in weights],
    }
    plain = {
        name: [one.numpy().astype(given.dtype) for one, given in zip(each, parameters, strict=True)]
        for name, each in found.items()
    }
    return plain | {"gradients": [[gradient.copy() for gradient in each] for each in gradients]}


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        label: str,
        shapes: Sequence[tuple[int, ...]],
        steps: int,
        dtype: str = "float64",
        scale: float = 1.0,
        views: bool = False,
        **options: float,
    ) -> Case:
        def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
            """Gradients of both signs, none of them near 0 beside the others."""
            return np.asarray(scale * rng.uniform(0.3, 2, shape) * rng.choice([-1, 1], shape)).astype(dtype)

        weights = [np.asarray(rng.normal(size=shape)).astype(dtype) for shape in shapes]
        gradients = [[drawn(shape, dtype) for shape in shapes] for _ in range(steps)]
        given = (weights, gradients, options, views)
        tolerance = 1e-4 if dtype == "float32" else 1e-7
        expected = by_torch(*given[:3])
        return Case(label, [given], [expected], with_comm=False, harness=after_steps, tolerance=tolerance)

    rate = float(rng.uniform(0.01, 0.1))
    yield case("2 steps", [(3,)], 2, rate=rate)
    yield case("1 step", [(3,)], 1, rate=rate)
    yield case("a gradient of 0 throughout", [(4,)], 3, scale=0.0)
    yield case("rate and betas not given", [(4,)], 3)
    yield case("5 steps, other betas", LAYERS, 5, rate=rate, beta1=0.8, beta2=0.95)
    yield case("100 steps", LAYERS, 100, rate=rate)
    yield case("gradients around 1e-8, the size of eps", [(5,)], 3, scale=1e-8, rate=rate)
    yield case("eps 0.1", [(5,)], 4, rate=rate, eps=0.1)
    yield case("20 steps in float32", LAYERS, 20, dtype="float32", rate=rate)
    yield case("arrays that do not lie in one piece", [(4, 3), (5,)], 3, views=True, rate=rate)
    yield case("arrays of length 0 and 1 among them", [(0,), (1,), (3, 1, 2)], 2, rate=rate)
    yield case("no parameters at all", [], 2)


def plain_update(
    w: np.ndarray,
    g: np.ndarray,
    m: np.ndarray,
    s: np.ndarray,
    step: int,
    rate: float,
    beta1: float,
    beta2: float,
    eps: float,
    *,
    first: Callable[[float, int], float] = lambda beta, step: 1 - beta**step,
    second: Callable[[float, int], float] = lambda beta, step: 1 - beta**step,
    power: Callable[[np.ndarray], np.ndarray] = np.square,
    ratio: Callable[..., np.ndarray] = lambda m, s, eps: m / (np.sqrt(s) + eps),
    new: Callable[[float], float] = lambda beta: 1 - beta,
    keep: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One step of Adam in which a part can be replaced: the corrections, the square, the ratio, the share of the new.

    Args:
        keep: False: the corrected averages take the place of the averages.
    """
    m, s = beta1 * m + new(beta1) * g, beta2 * s + new(beta2) * power(g)
    corrected_m, corrected_s = m / first(beta1, step), s / second(beta2, step)
    w = w - rate * ratio(corrected_m, corrected_s, eps)
    return (w, m, s) if keep else (w, corrected_m, corrected_s)


def _with(update: Update = plain_update, of: Sequence[str] = ("parameters",), **changes: Any) -> Recogniser:
    """A recogniser of what a changed step leads to, in some of the arrays."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        parameters, gradients, options, _ = case.arguments[0]
        given = DEFAULTS | options
        held = [(w, np.zeros_like(w), np.zeros_like(w)) for w in parameters]
        with np.errstate(all="ignore"):
            for step, each in enumerate(gradients, start=1):
                held = [
                    update(w, g, m, s, step, *given.values(), **changes)
                    for (w, m, s), g in zip(held, each, strict=True)
                ]
        wanted = dict(zip(EVERY, zip(*held, strict=True), strict=True))
        return bool(held) and all(_near(_part(outcome, name), wanted[name]) for name in of)

    return recognises


def _part(outcome: Outcome, name: str) -> Any:
    result = outcome.results[0]
    return NO_RESULT if result is NO_RESULT else result[name]


def _near(got: Any, wanted: Sequence[np.ndarray]) -> bool:
    if got is NO_RESULT:
        return False
    return same(got, [np.asarray(one, dtype=given.dtype) for one, given in zip(wanted, got, strict=True)], 1e-4)


def _stays(name: str) -> Recogniser:
    """A recogniser of arrays that hold after the call what they held before, though they should not."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        parameters = case.arguments[0][0]
        before = parameters if name == "parameters" else [np.zeros_like(one) for one in parameters]
        got = _part(outcome, name)
        return not same(got, case.expected[0][name], 1e-9) and same(got, list(before), 0.0)

    return recognises


def _gradients_changed(case: Case, outcome: Outcome) -> bool:
    got = _part(outcome, "gradients")
    return got is not NO_RESULT and not same(got, case.expected[0]["gradients"], 0.0)


def _first_only(case: Case, outcome: Outcome) -> bool:
    """The first parameter is right, a later one is not."""
    wanted, got = case.expected[0]["parameters"], _part(outcome, "parameters")
    return got is not NO_RESULT and len(wanted) > 1 and same(got[0], wanted[0], 1e-9)


def _defaults(case: Case, outcome: Outcome) -> bool:
    """What the default betas and eps lead to, where others were given."""
    parameters, gradients, options, _ = case.arguments[0]
    given = {name: value for name, value in options.items() if name == "rate"}
    return given != options and same(_part(outcome, "means"), by_torch(parameters, gradients, given)["means"], 1e-4)


def _zero_over_zero(case: Case, outcome: Outcome) -> bool:
    got = _part(outcome, "parameters")
    return got is not NO_RESULT and any(not np.isfinite(one).all() for one in got)


def _eps_matters(case: Case, outcome: Outcome) -> bool:
    """The averages are right; the parameters are off by little, or where eps is not small beside the gradients."""
    expected = case.expected[0]
    averages = all(same(_part(outcome, name), expected[name], 1e-6) for name in ("means", "squares"))
    return averages and (
        case.label.startswith(("eps", "gradients around"))
        or same(_part(outcome, "parameters"), expected["parameters"], 1e-6)
    )


def _square_of_mean(w, g, m, s, step, rate, beta1, beta2, eps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * m**2
    return w - rate * (m / (1 - beta1**step)) / (np.sqrt(s / (1 - beta2**step)) + eps), m, s


def _averages_later(w, g, m, s, step, rate, beta1, beta2, eps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    w = w - rate * (m / (1 - beta1**step)) / (np.sqrt(s / (1 - beta2**step)) + eps)
    return w, beta1 * m + (1 - beta1) * g, beta2 * s + (1 - beta2) * g**2


def _turned_shares(w, g, m, s, step, rate, beta1, beta2, eps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return plain_update(w, g, m, s, step, rate, 1 - beta1, 1 - beta2, eps)


def _uncorrected(beta: float, step: int) -> float:
    return 1.0


ADAM_STEP = Exercise(
    name="adam_step",
    library="course_utils.lessons.autodiff_and_optimizers.optimizers:adam_step",
    lesson=LESSON,
    place=4,
    minutes=15,
    difficulty=2,
    turn="renew both averages in place, correct them, move the parameter",
    title="a step of Adam, as torch takes it",
    cases=_cases,
    picture=False,
    hints=(
        "After the first step the mean is (1 − beta1) · gradient: a tenth of it. By what must it be divided to be the "
        "gradient? And after the second? Which arrays must hold what until the next call, corrected or not?",
        "For each parameter: `mean *= beta1`, `mean += (1 - beta1) * gradient`; the same for `square` with `beta2` and "
        "`gradient**2`. Then, in new arrays, `mean / (1 - beta1**step)` and `square / (1 - beta2**step)`; "
        "`parameter -= rate * …`.",
    ),
    mistakes=(
        Mistake("Whose numbers did you change on the way?", _gradients_changed),
        Mistake("Do the parameters themselves change, or did you make new ones?", _stays("parameters")),
        Mistake("In which array does the next call look for the mean?", _stays("means")),
        Mistake("In which array does the next call look for the mean square?", _stays("squares")),
        Mistake("Which betas does the caller want?", _defaults),
        Mistake("What must not become of a gradient of 0?", _zero_over_zero),
        Mistake("Where does eps stand: below the root, or beside it, and beside which root?", _eps_matters),
        Mistake(
            "Do the averages begin at 0? Then by what is each too small?",
            _with(first=_uncorrected, second=_uncorrected),
        ),
        Mistake("One average is corrected. And the other?", _with(second=_uncorrected)),
        Mistake("One average is corrected. And the other?", _with(first=_uncorrected)),
        Mistake(
            "Does the correction stay the same in each step?",
            _with(first=lambda b, step: 1 - b, second=lambda b, step: 1 - b),
        ),
        Mistake(
            "Is it the first step, or step number 0?",
            _with(first=lambda b, step: 1 - b ** (step + 1), second=lambda b, step: 1 - b ** (step + 1)),
        ),
        Mistake("Do the averages themselves stay as they are when they are corrected?", _with(of=EVERY, keep=False)),
        Mistake("How much of an average is new?", _with(of=EVERY, new=lambda beta: 1.0)),
        Mistake("How much of an average is old, how much new?", _with(_turned_shares, of=("means",))),
        Mistake("The square of what?", _with(_square_of_mean, of=("squares",))),
        Mistake("The square of what?", _with(of=("squares",), power=np.abs)),
        Mistake("Is a step as long as the gradient is large?", _with(ratio=lambda m, s, eps: m / (s + eps))),
        Mistake("Uphill or downhill?", _with(ratio=lambda m, s, eps: -m / (np.sqrt(s) + eps))),
        Mistake("Which averages move the parameter: those before this gradient, or after?", _with(_averages_later)),
        Mistake("Is every parameter moved?", _first_only),
        Mistake(
            "Can one calculate with a whole list, or with each array in it?",
            lambda case, outcome: raised(outcome, "multiply sequence"),
        ),
        Mistake("Does it work for an array of any shape, even an empty one?", lambda case, outcome: raised(outcome)),
    ),
    praise=lambda outcome: "parameters and averages are those of torch.optim.Adam, over 100 steps too",
)

"""The check of `adam_step`: parameters and averages after many steps, as `torch.optim.Adam` has them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome, Recogniser

TOLERANCES = {"float64": 1e-6, "float32": 1e-4, "float16": 2e-2}
DEFAULTS = {"rate": 0.001, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
LAYERS = ((6, 4), (4,), (4, 2))
Arrays = Sequence[np.ndarray]


def after_steps(
    function: Callable,
    parameters: Arrays,
    gradients: Sequence[Arrays],
    means: Arrays,
    squares: Arrays,
    first_step: int,
    options: dict,
    views: bool,
) -> dict:
    """Return what the caller's arrays hold after one step for each entry of `gradients`."""
    held = [
        [np.repeat(array, 2, axis=0)[::2] if views else array.copy() for array in each]
        for each in (parameters, means, squares)
    ]
    for step, each in enumerate(gradients, start=first_step):
        parameters, means, squares = map(list, held)
        function(parameters, each, means, squares, step, **options)
    return dict(zip(("parameters", "means", "squares"), held, strict=True))


def by_torch(parameters: Arrays, gradients: Sequence[Arrays], before: int, options: dict) -> tuple[dict, dict]:
    """The same after `before` steps and after all, by `torch.optim.Adam` in float64, in the parameters' dtype."""
    import torch

    given = DEFAULTS | options
    weights = [torch.tensor(np.asarray(array, np.float64), requires_grad=True) for array in parameters]
    betas = (given["beta1"], given["beta2"])
    optimizer = torch.optim.Adam(weights or [torch.zeros(0)], lr=given["rate"], betas=betas, eps=given["eps"])

    def step(each: Arrays) -> None:
        for weight, gradient in zip(weights, each, strict=True):
            weight.grad = torch.tensor(np.asarray(gradient, np.float64))
        optimizer.step()

    def kept(name: str) -> list:
        return [optimizer.state.get(weight, {}).get(name, torch.zeros_like(weight)) for weight in weights]

    def arrays() -> dict:
        found = {"means": kept("exp_avg"), "squares": kept("exp_avg_sq"), "parameters": weights}
        return {
            name: [tensor.detach().numpy().astype(of.dtype) for tensor, of in zip(each, parameters, strict=True)]
            for name, each in found.items()
        }

    for each in gradients[:before]:
        step(each)
    start = arrays()
    for each in gradients[before:]:
        step(each)
    return start, arrays()


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        label: str,
        shapes: Sequence[tuple[int, ...]],
        steps: int,
        dtype: str | Sequence[str] = "float64",
        scale: float = 1.0,
        views: bool = False,
        before: int = 0,
        level_from: int | None = None,
        alike: bool = False,
        key: str = "",
        **options: float,
    ) -> Case:
        dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else dtype

        def drawn(steepness: float) -> Arrays:
            """Gradients of both signs, none of them near 0 beside the others."""
            each = [steepness * rng.uniform(0.3, 2, shape) * rng.choice([-1, 1], shape) for shape in shapes]
            return [np.asarray(array).astype(its) for array, its in zip(each, dtypes, strict=True)]

        weights = [np.asarray(rng.normal(size=shape)).astype(its) for shape, its in zip(shapes, dtypes, strict=True)]
        if alike:
            weights = [weights[0].copy() for _ in weights]
        level = range(before + steps if level_from is None else level_from, before + steps)
        gradients = [drawn(0.0 if step in level else scale) for step in range(before + steps)]
        start, expected = by_torch(weights, gradients, before, options)
        arrays = (start["parameters"], gradients[before:], start["means"], start["squares"])
        tolerance = TOLERANCES[dtype] if isinstance(dtype, str) else None
        given = (*arrays, before + 1, options, views)
        return Case(label, [given], [expected], with_comm=False, harness=after_steps, tolerance=tolerance, key=key)

    rate = float(rng.uniform(0.01, 0.1))
    yield case("2 steps", [(3,), (2, 2)], 2, rate=rate, key="first-steps")
    yield case("1 step", [(3,)], 1, rate=rate, key="first-steps")
    yield case("a gradient of 0 throughout", [(4,)], 3, scale=0.0)
    yield case("rate and betas not given", [(4,)], 3, key="defaults")
    yield case("5 steps, other betas", LAYERS, 5, rate=rate, beta1=0.8, beta2=0.95, key="five-steps")
    two = [(2, 3), (4,)]
    yield in_a_row(case("a network", two, 2, rate=rate), case("a second network", two, 2, rate=rate / 2))
    yield in_a_row(case("a large network", [(5, 4), (3,)], 1, rate=rate), case("a small network", [(2, 3)], 1))
    yield case("steps 7 to 9 of a training that goes on", LAYERS, 3, before=6, rate=rate)
    yield case("100 steps", LAYERS, 100, rate=rate)
    yield case("gradients around 1e-8: eps is as large", [(5,)], 3, scale=1e-8, rate=rate, key="eps")
    yield case("gradients around 1000", [(2, 3), (4,)], 2, scale=1000.0, rate=rate, key="steep")
    yield case("gradients around 1: eps is 0.1", [(5,)], 4, rate=rate, eps=0.1, key="eps")
    yield replace(case("2 steps, to the last digits", LAYERS, 2, rate=rate, key="digits"), tolerance=1e-11)
    yield case("20 steps in float32, other betas", LAYERS, 20, "float32", rate=rate, beta1=0.7, beta2=0.99)
    yield case("2 steps in float16", LAYERS, 2, "float16", rate=rate, eps=1e-3)
    yield case("three arrays of the same numbers", [(2, 3)] * 3, 2, rate=rate, alike=True, key="same-numbers")
    mixed = "float32", "float64"
    yield case("float32 first, then float64", [(3,), (2, 4)], 2, mixed, rate=rate, key="mixed-dtypes")
    yield case("arrays that do not lie in one piece", [(4, 3), (5,), (2, 3, 4)], 3, views=True, rate=rate, key="views")
    yield case("arrays of length 0 and 1 among them", [(0,), (1,), (3, 1, 2)], 2, rate=rate, key="empty-array")
    label = "4 steps, the gradient 0 from the third on"
    yield case(label, [(4,), (2, 3)], 4, rate=rate, level_from=2, key="gradient-0")
    yield case("2 steps at the rate 0", [(4,), (2, 3)], 2, rate=0.0, key="rate-0")
    yield case("step 1001 of a long training", [(4,)], 1, before=1000, rate=rate, key="long-training")
    yield case("an array of shape (), a single number", [(), (2,)], 2, rate=rate, key="scalar")
    yield case("no parameters at all", [], 2)


def _wrong_after_first_steps(name: str) -> Recogniser:
    def is_wrong(case: Case, outcome: Outcome) -> bool:
        return case.key == "first-steps" and name in outcome.finding.where

    return is_wrong


EXERCISE = Exercise(
    library="optimizers",
    number=4,
    minutes=15,
    difficulty=2,
    turn="update both averages in place, correct them, and move the parameter",
    title="a step of Adam, as torch takes it",
    cases=_cases,
    hints=(
        "Go through the four lists together with `zip`. Which arrays must have changed when your function returns, and "
        "which operators change an array instead of making a new one? Are the averages that are kept for the next "
        "step the corrected ones?",
        "For each parameter, write `mean *= beta1` and `mean += (1 - beta1) * gradient`, and the same for `square` "
        "with `beta2` and `gradient**2`. Put `mean / (1 - beta1**step)` and `square / (1 - beta2**step)` into new "
        "arrays. Then `parameter -= rate * …` with these two.",
    ),
    symptoms={
        "the means are wrong after two steps": _wrong_after_first_steps("means"),
        "the squares are wrong after two steps": _wrong_after_first_steps("squares"),
        "the parameters are wrong after two steps": _wrong_after_first_steps("parameters"),
    },
    praise=lambda outcome: "parameters and averages agree with torch.optim.Adam, even after 100 steps",
)

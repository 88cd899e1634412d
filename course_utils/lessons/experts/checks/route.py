"""The check of `route`: shares by NumPy, equal shares, a bias, low precision, and the gradient of the gate."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import in_a_row, rejected
from course_utils.checks.exercise import Case, Exercise
from course_utils.lessons.experts.checks.common import TOLERANCE
from course_utils.words import count

if TYPE_CHECKING:
    from torch import Tensor

EXPERTS, WEIGHTS, GRADIENT = "the tensor of experts", "the tensor of weights", "the gradient of scores"


def routed(function: Callable, scores: "Tensor", k: int, bias: "Tensor | None", upstream: "Tensor") -> object:
    """Call the learner's function, then go backward from the weights."""
    given, scores = scores, scores.clone().requires_grad_()
    result = function(scores, k) if bias is None else function(scores, k, bias)
    given.copy_(scores.detach())  # whoever changed them changed the caller's
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        return result
    experts, weights = result
    if getattr(weights, "requires_grad", False) and weights.shape == upstream.shape:
        (weights * upstream).sum().backward()
    return {EXPERTS: experts, WEIGHTS: getattr(weights, "detach", lambda: weights)(), GRADIENT: scores.grad}


def by_numpy(scores: "Tensor", k: int, bias: "Tensor | None", upstream: "Tensor") -> dict:
    """Do the same token by token, in float64."""
    import torch

    wanted: dict = {EXPERTS: [], WEIGHTS: [], GRADIENT: []}
    biases = np.zeros(scores.shape[1]) if bias is None else bias.double().numpy()
    for row, up in zip(scores.double().numpy(), upstream.double().numpy(), strict=True):
        powers = np.exp(row - row.max())
        shares = powers / powers.sum()
        experts = sorted(range(len(row)), key=lambda i: (-(shares[i] + biases[i]), i))[:k]  # noqa: B023
        into = np.zeros(len(row))
        into[experts] = up
        wanted[EXPERTS].append(experts)
        wanted[WEIGHTS].append(shares[experts])
        wanted[GRADIENT].append(shares * (into - (into * shares).sum()))
    number, dtype = len(scores), scores.dtype
    return {
        EXPERTS: torch.tensor(wanted[EXPERTS], dtype=torch.int64).view(number, k),
        WEIGHTS: torch.tensor(np.array(wanted[WEIGHTS]), dtype=dtype).view(number, k),
        GRADIENT: torch.tensor(np.array(wanted[GRADIENT]), dtype=dtype).view(scores.shape),
    }


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    import torch

    def case(
        tokens: int, number: int, k: int, about: str = "", dtype: str = "float64", values=None, bias=None, key=""
    ) -> Case:
        drawn = rng.standard_normal((tokens, number)) * 2 if values is None else np.array(values)
        scores = torch.tensor(drawn).to(getattr(torch, dtype))
        added = (
            None if bias is None else torch.tensor(bias, dtype=torch.float64 if dtype == "float64" else torch.float32)
        )
        upstream = torch.tensor(rng.standard_normal((len(scores), k))).to(scores.dtype)
        given = (scores, k, added, upstream)
        label = f"{count(len(scores), 'token')}, {count(scores.shape[1], 'expert')}, k = {k}, {dtype}{about}"
        more = {"with_comm": False, "harness": routed, "tolerance": TOLERANCE[dtype]}
        return Case(label, [given], [by_numpy(*given)], key=key, **more)

    yield case(5, 4, 1)
    yield case(6, 4, 2)
    yield case(4, 5, 5)
    yield case(6, 4, 2, ", with a bias", bias=rng.permutation([0.9, -0.9, 0.4, 0.1]))
    unequal = [[2, 1, 0, -1], [1.5, 1, 0, 0.5], [2, 0.5, 1, 0]]
    yield case(3, 4, 2, ", with a bias that puts a smaller share first", values=unequal, bias=[0.0, 0.6, 0.0, 0.0])
    yield case(6, 4, 1, ", with a bias", bias=rng.permutation([2.0, -1.0, -0.5, 0.0]))
    yield case(3, 4, 2, ", equal scores", values=[[1, 1, 1, 1], [0, 2, 0, 2], [3, 0, 0, 0]], key="equal-shares")
    yield case(3, 4, 2, ", scores that differ little", values=[rng.permutation(4) * 1e-6 for _ in range(3)])
    yield case(3, 3, 2, ", scores of a thousand", values=[[1000, 1001, 999], [-1000, -999, -1001], [0, 1000, 0.0]])
    yield case(2, 4, 2, ", small shares", "float16", [[0, -22, -21, -20], [-19, 0, -24, -18]])
    yield case(3, 4, 2, ", a small bias", "float16", np.zeros((3, 4)), [1e-5, 2e-5, 3e-5, 4e-5])
    close = [rng.permutation(4) / 1024 + 0.125 for _ in range(3)]
    yield case(3, 4, 2, ", scores that differ little", "bfloat16", close)
    yield case(4, 4, 2, "", "bfloat16", [[3, 1, 0, -2], [0, 2, 4, -1], [1, -1, -3, 4], [2, 5, 0, 1]])
    yield case(int(rng.integers(20, 40)), int(rng.integers(6, 12)), 3, "", "float32")
    values = np.tile([1.0, *[0.0] * 31], (3, 2))
    yield case(3, 64, 7, ", nearly all scores equal", values=values, key="equal-shares")
    yield case(3, 1, 1)
    yield case(0, 4, 2)
    yield in_a_row(case(7, 5, 2), case(7, 5, 2))
    yield in_a_row(case(3, 4, 1), case(5, 6, 3))
    for k in (0, 5, -1):
        scores = torch.tensor(rng.standard_normal((3, 4)))
        yield rejected(f"k = {k} of 4 experts", (scores, k), key="no-such-k")


EXERCISE = Exercise(
    library="gate",
    number=1,
    minutes=10,
    difficulty=1,
    turn="a softmax, then the k largest",
    title="the experts of each token",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "There are two results. Which of them does the bias change? And if you divided the weights by their sum, what "
        "would the weight be with k = 1, and what could the gate learn from it?",
        "`shares = scores.softmax(dim=-1, dtype=…)`, in float32, or in float64 for such scores. The experts are the "
        "first k columns of `(shares + bias).sort(dim=-1, descending=True, stable=True).indices`. The weights are "
        "`shares.gather(-1, experts)`, in the dtype of the scores.",
    ),
    praise=lambda outcome: (
        "each token goes to its k experts, with their shares as weights, and the gate can learn from them"
    ),
)

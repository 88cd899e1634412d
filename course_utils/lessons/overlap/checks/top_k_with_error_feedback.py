"""The check of `top_k_with_error_feedback`: the largest are sent, the rest is kept; any choice among equals will do."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, Kind, own
from course_utils.checks.symptoms import collectives, same
from course_utils.checks.torch_cases import drawn
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor


def what_comes(function: Callable, gradients: Sequence["Tensor"], error: "Tensor", k: int) -> dict:
    """Call the learner's function for one gradient after the other, each time with the error that is left.

    Every rank hands its indices and values to all others, nothing else; the dict holds what was given and what came of
    it in each step, and in the end the sum of all that all ranks have sent.
    """
    import torch
    import torch.distributed as dist

    total, steps = torch.zeros_like(error), []
    for gradient in gradients:
        corrected = gradient + error
        found = function(gradient, error, k)
        steps.append((corrected, found))
        if type(found) not in (tuple, list) or len(found) != 3:
            break
        indices, values, error = found
        if dist.is_initialized() and len(gradients) > 1:
            for sent in zip(everybodys(indices), everybodys(values), strict=True):
                total.index_add_(0, *sent)
    return {"steps": steps, "sent by all": total, "left": error}


def each_by_itself(
    function: Callable, gradients: Sequence["Tensor"], errors: Sequence["Tensor"], k: int
) -> dict[str, list]:
    """Call the learner's function for gradients that have nothing to do with each other, each with its own error."""
    given = list(zip(gradients, errors, strict=True))
    return {"steps": [(gradient + error, function(gradient, error, k)) for gradient, error in given]}


def everybodys(values: "Tensor") -> list["Tensor"]:
    """What each rank puts in, on every rank."""
    import torch
    import torch.distributed as dist

    received = [torch.empty_like(values) for _ in range(dist.get_world_size())]
    dist.all_gather(received, values.contiguous())
    return received


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    import torch

    def case(
        n: int, k: int, label: str = "", dtype: str = "float32", error: "Tensor | None" = None, key: str = ""
    ) -> Case:
        error = drawn(rng, n, dtype=dtype) if error is None else error
        label = f"{count(n, 'entry').replace('entrys', 'entries')}, k = {k}{label}, {dtype}"
        return made(label, drawn(rng, n, dtype=dtype), error, k, key)

    def made(label: str, gradient: "Tensor", error: "Tensor", k: int, key: str = "") -> Case:
        return Case(label, [([gradient], error, k)], backend="gloo", harness=what_comes, judge=_wrong, key=key)

    yield case(16, 4, ", no error yet", error=torch.zeros(16))
    yield case(20, 4)
    yield case(20, 4, dtype="float64")
    yield made("a negative entry is the largest", torch.tensor([1.0, -9.0, 2.0, 3.0]), torch.zeros(4), 1)
    yield made("the error outweighs the gradient", torch.tensor([5.0, 1.0, 4.0]), torch.tensor([0.0, 8.0, 0.0]), 1)
    yield made("the error cancels the gradient", torch.tensor([5.0, 1.0, 4.0]), torch.tensor([-5.0, 1.0, 0.0]), 2)
    yield case(1, 1)
    yield case(6, 6)
    yield case(6, 9, key="k-above-n")
    yield case(6, 0, key="k-0")
    equal = torch.tensor([2.0, -2.0, 2.0, -2.0, 1.0])
    larger = torch.tensor([1.0, 1.0, -1.0, 3.0, 1.0])
    more = "", ", all of them 0", ", and a larger one behind the first"
    for about, entries, k in zip(more, (equal, torch.zeros(5), larger), (3, 2, 2), strict=True):
        yield made(f"equal magnitudes{about}", entries, torch.zeros(5), k, "equal-magnitudes")
    every_other = drawn(rng, 14)[::2]
    yield made("every other entry of a longer vector", every_other.float(), drawn(rng, 14, dtype="float32")[1::2], 3)
    yield case(0, 2, key="no-entries")
    alike = 1 + torch.tensor(rng.permutation(12), dtype=torch.float64) * 1e-12  # one and the same number in float32
    yield made("12 entries that are nearly equal, k = 3, float64", alike, 0 * alike, 3, "nearly-equal")
    small = torch.tensor(rng.permutation(30) - 12) / 2**18  # halves are exact here, and their squares are 0
    label = "30 entries of at most 0.0001, k = 4, float16"
    yield made(label, small.half(), torch.zeros(30).half(), 4, "small-numbers")
    layers = [[drawn(rng, 12) for _ in range(3)] for _ in ("gradients", "errors")]
    label = "three layers of 12 entries, each with an error of its own, k = 3, float64"
    more = {"backend": "gloo", "harness": each_by_itself, "judge": _wrong_entries, "key": "own-errors"}
    yield Case(label, [(*layers, 3)], **more)
    for size in sorted({1, 2, available}):
        yield _together(rng, size, steps=6, n=int(rng.integers(30, 60)), k=4)


def _together(rng: np.random.Generator, size: int, steps: int, n: int, k: int) -> Case:
    import torch

    label = f"{ranks(size)}, {steps} steps of {n} entries, k = {k}, float64"
    given = [([drawn(rng, n) for _ in range(steps)], torch.zeros(n, dtype=torch.float64), k) for _ in range(size)]
    return Case(label, given, backend="gloo", harness=what_comes, judge=_wrong)


def _wrong(outcome: Outcome) -> Finding | None:
    return _wrong_entries(outcome) or _wrong_sum(outcome)


def _wrong_entries(outcome: Outcome) -> Finding | None:
    for rank, result in enumerate(outcome.results):
        k = outcome.case.arguments[rank][2]
        for corrected, found in result["steps"]:
            wrong = _wrong_step(rank, corrected, found, k)
            if wrong:
                return wrong
    return None


def _wrong_step(rank: int, corrected: "Tensor", found: tuple, k: int) -> Finding | None:
    """What is wrong with (indices, values, error) that were found for gradient + error."""
    import torch

    def wrong(key: str, words: str, **values: object) -> Finding:
        return own(key, f"{{who}} {words}", rank=rank, **values)

    k, whole = min(k, len(corrected)), tuple(corrected.shape)
    if type(found) not in (tuple, list) or len(found) != 3 or any(type(tensor) is not torch.Tensor for tensor in found):
        return wrong("no-three-tensors", "did not return three tensors: the indices, the values and the error")
    indices, values, error = (tensor.detach() for tensor in found)
    shapes = [tuple(tensor.shape) for tensor in found]
    if shapes != [(k,), (k,), whole]:
        key = "n-values" if shapes[1:] == [whole, whole] else "shapes"
        return wrong(
            key, "returned tensors of the shapes {got}, expected {expected}", got=shapes, expected=[(k,), (k,), whole]
        )
    if indices.dtype != torch.int64 or values.dtype != corrected.dtype or error.dtype != corrected.dtype:
        names = ", ".join(str(tensor.dtype).removeprefix("torch.") for tensor in found)
        return wrong(
            "dtypes",
            "returned the dtypes {got}; the indices need int64, and the other two the dtype of the gradient",
            got=names,
        )
    if len(set(indices.tolist())) != k or any(not 0 <= index < len(corrected) for index in indices.tolist()):
        return wrong(
            "indices",
            "returned the indices {got}, which are not {k} different positions of the gradient",
            got=indices.tolist(),
            k=k,
        )
    indices, order = indices.sort()
    values, sent, left = values[order], corrected[indices], corrected.index_fill(0, indices, 0)
    texts = {"got": _values_text(values), "expected": _values_text(sent)}
    if not torch.equal(values, sent):
        return wrong(
            "values",
            "returned the values {got} for the indices {indices}, expected {expected}",
            indices=indices.tolist(),
            **texts,
        )
    if k and values.abs().min() < left.abs().max():
        largest = _values_text(left.abs().max()[None])
        return wrong(
            "not-the-largest", "sends {got} and keeps back {left}, which is larger", got=texts["got"], left=largest
        )
    if not torch.equal(error, left):
        texts = {"got": _values_text(error), "expected": _values_text(left)}
        return wrong("error", "returned the error {got}, expected {expected}", **texts)
    return None


def _values_text(values: "Tensor", most: int = 6) -> str:
    texts = [f"{value:.3g}" for value in values.tolist()]
    return f"[{', '.join([*texts[:most], *(['…'] if len(texts) > most else [])])}]"


def _wrong_sum(outcome: Outcome) -> Finding | None:
    """Over time nothing is lost: what all have sent and still owe is the sum of all gradients. Bytes are counted."""
    case, size = outcome.case, outcome.world_size
    gradients, error, k = case.arguments[0]
    if len(gradients) == 1:
        return None
    owed = sum(result["left"] for result in outcome.results)
    whole = sum(sum(given[0]) for given in case.arguments)
    for rank, result in enumerate(outcome.results):
        if not same(result["sent by all"] + owed, whole, 1e-9):
            words = "what {who} received and what all ranks still owe do not add up to the sum of all gradients"
            return own("sum", words, rank=rank)
        most = len(gradients) * k * (8 + error.element_size())
        if _bytes(outcome, rank) > most and size > 1:
            return Finding(Kind.BYTES, rank, got=_bytes(outcome, rank), expected=most)
    return None


def _bytes(outcome: Outcome, rank: int) -> int:
    return sum(event.bytes for event in collectives(outcome, rank))


EXERCISE = Exercise(
    library="compression",
    number=5,
    minutes=10,
    difficulty=2,
    turn="add the error, choose the largest, keep the rest",
    title="send the largest numbers and remember the rest",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "What was left out earlier must not be lost. To what do you add it before you choose the largest numbers? And "
        "what is left when you take the chosen numbers out?",
        "`corrected = gradient + error`, and `indices = corrected.abs().topk(min(k, len(corrected))).indices`. The "
        "values are `corrected[indices]`, with their signs. The new error is a copy of `corrected` with zeros at "
        "`indices`.",
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} sent {_bytes(outcome, 0):,} bytes each in "
        f"{count(len(outcome.case.arguments[0][0]), 'step')}, {_share(outcome):.0%} of their gradients; "
        "what was sent and what is left add up to all of them"
    ),
)


def _share(outcome: Outcome) -> float:
    gradients, error, _ = outcome.case.arguments[0]
    return _bytes(outcome, 0) / (len(gradients) * error.numel() * error.element_size())

"""The check of `merge_attention`: against attention to all keys at once, and where exp has no number left."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise
from course_utils.checks.torch_cases import REUSED, drawn, is_new, lies_in, not_contiguous

NOTHING = -float("inf")
RESULT = ("the output", "the log-sum-exp")


def merged(function: Callable, *given: object) -> dict:
    """Call the learner's function; what it gives, by name, and whether these are new tensors."""
    found = function(*given)
    if type(found) not in (tuple, list) or len(found) != len(RESULT):
        return {RESULT[0]: found}
    new = {REUSED: lies_in([result for result in found if type(result) is type(given[0])], given)}
    return dict(zip(RESULT, found, strict=True)) | new


def merged_by_hand(out, lse, other_out, other_lse):
    """Both parts weighed against the larger log-sum-exp."""
    import torch

    lse, other_lse = lse[..., None], other_lse[..., None]
    top = torch.maximum(lse, other_lse).clamp(min=torch.finfo(lse.dtype).min)
    mine, theirs = torch.exp(lse - top), torch.exp(other_lse - top)
    total = mine + theirs
    weighed = (mine * out + theirs * other_out) / total.where(total > 0, torch.ones_like(total))
    return weighed, (top + total.log()).squeeze(-1).where(total.squeeze(-1) > 0, torch.tensor(NOTHING, dtype=lse.dtype))


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    import torch

    def case(
        shape: tuple[int, ...],
        about: str = "",
        dtype: str = "float64",
        add: float = 0.0,
        unseen: str = "",
        gap: float = 0.0,
        step: float = 0.0,
        key: str = "",
    ) -> Case:
        """A case whose log-sum-exps are near 3 `add`, with `gap` more in the second set and `step` for each query."""
        given = [drawn(rng, *some, dtype=dtype) for some in (shape, shape[:-1], shape, shape[:-1])]
        for index, of_all in ((1, add), (3, add + gap)):
            given[index] = (given[index] + of_all + step * torch.arange(shape[-2])) * 3
        for index, name in ((1, "first"), (3, "second")):
            if unseen in (name, "both"):  # of the first query
                given[index][..., 0], given[index - 1][..., 0, :] = NOTHING, 0.0
        if key == "not-contiguous":
            given[0], given[2] = not_contiguous(given[0]), not_contiguous(given[2])
        label = f"outputs of shape {shape}, {dtype}"
        expected = dict(zip(RESULT, merged_by_hand(*given), strict=True)) | {REUSED: ...}
        more = {"with_comm": False, "harness": merged, "judge": is_new, "key": key}
        return Case(f"{about}; {label}" if about else label, [tuple(given)], [expected], **more)

    yield case((3, 5))
    yield case((2, 4, 6, 8))
    yield case((5, 5), dtype="float32")
    yield case((4, 3), "log-sum-exps near 3,000", add=1000.0, key="large")
    yield case((4, 3), "log-sum-exps near -3,000", add=-1000.0, key="large")
    yield case((4, 3), "the second set's scores far above the first's", add=-400.0, gap=800.0, key="large")
    yield case((4, 3), "the second set's scores far below the first's", add=400.0, gap=-800.0, key="large")
    yield case((4, 3), "log-sum-exps from 0 to 3,000 in one call", step=-1000.0, add=1000.0, key="very-different")
    # In float32, the difference of two such numbers has an error of about 1e-4.
    few = case((2, 5, 3), "log-sum-exps from -300 to 300 in one call", "float32", add=-100.0, step=50.0)
    yield replace(few, key="very-different", tolerance=1e-3)
    yield case((2, 4, 3), "a query that saw no key of the first set", unseen="first", key="unseen")
    yield case((2, 4, 3), "a query that saw no key of the second set", unseen="second", key="unseen")
    yield case((2, 4, 3), "a query that saw no key at all", unseen="both", key="unseen")
    yield case((1, 3), "no key of the second set", unseen="second", key="unseen")
    yield case((1, 3), "no key of the first set", unseen="first", key="unseen")
    yield case((1, 2, 0, 4), "no query", key="no-query")
    yield case((2, 4, 6, 3), "outputs not contiguous", key="not-contiguous")
    yield case((1, 7, 2, 2), dtype="float32")
    yield in_a_row(case((2, 3, 4)), case((2, 3, 4)))
    yield in_a_row(case((3, 4)), case((2, 5, 3)))


EXERCISE = Exercise(
    library="merge",
    number=1,
    minutes=15,
    difficulty=2,
    turn="weigh two outputs; what is their sum divided by?",
    title="two parts of an attention, merged",
    cases=_cases,
    needs_torch=True,
    hints=(
        "An output is the sum of exp(score) · v, divided by the sum of exp(score), which is exp(lse). What do you have "
        "to multiply each output by, before you can divide both by the common sum? And what happens if exp(lse) is too "
        "large for a number, or 0?",
        "The new log-sum-exp is `torch.logaddexp(lse, other_lse)`. The outputs are multiplied by `exp(lse - new)` and "
        "`exp(other_lse - new)`, which need one more axis (`unsqueeze(-1)`). If new is -∞, replace it by 0 first.",
    ),
    praise=lambda outcome: "the same as with all keys at once, also for large scores and queries that see nothing",
)

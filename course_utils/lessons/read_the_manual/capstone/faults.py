"""What is wrong with what the ranks measured: do they agree, was enough sent, what makes a model inaccurate?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from course_utils.checks.finding import Finding, own
from course_utils.lessons.read_the_manual.capstone.past_the_links import NOTHING_SHARED
from course_utils.lessons.read_the_manual.capstone.result import CapstoneResult, megabytes_text, recognised, used
from course_utils.lessons.read_the_manual.capstone.task import BUDGET, IMAGES, network
from course_utils.words import join, percent

AGREE = 1e-4
"""Parameters of two ranks are equal up to so much, relative to the largest."""
PAST_THE_LINKS = 100_000
"""Bytes that a training run may write into files, or map of shared memory: enough to print, too few for a model."""
LONG = 3.5
"""Weights this many times as long as the first ones are too long; the sum of four ranks' is four times."""
PAST, NEARLY = "past-the-links", "nearly"
SUM, MEANS, WEIGHTS = "wrong-sum", "wrong-running-means", "wrong-weights"
"""Keys of findings; these three of what can be wrong with a model that is not accurate."""
_DIFFER = {
    "weights-differ": ("weights", (".weight", ".bias")),
    "running-means-differ": ("running means", (".running_mean", ".running_var")),
}
"""The key of a finding → what differs between ranks, and how its tensors' names end."""
_PAST = {
    "files": "wrote {amount} into files",
    "memory": "mapped {amount} of shared memory",
    "Unix sockets": "sent through a Unix socket, which ends within its node",
}
"""What went past the links, as `PastTheLinks.so_far` counts it → its words."""
LEAST = IMAGES * 64
"""Bytes that every node sends at least: this many are its images, one for each pixel, and its weights are more."""


def disagreement(measured: Sequence[dict[str, Any]]) -> Finding | None:
    """Find the first rank whose weights, or running means, are not rank 0's, and where; None where all agree."""
    first = measured[0]["weights"]
    words = "{part} of the ranks differ: rank {rank}'s {tensor} is up to {apart:.2g} from rank 0's"
    for key, (part, endings) in _DIFFER.items():
        for name in filter(lambda name: name.endswith(endings), first):
            for rank, result in enumerate(measured[1:], start=1):
                distance = float(np.max(np.abs(result["weights"][name] - first[name])))
                if not distance <= AGREE * float(np.max(np.abs(first[name]))) + 1e-7:
                    return own(key, words, {"apart": distance}, rank=rank, part=part, tensor=name)
    return None


def wrong_part(measured: Sequence[dict[str, Any]], held_out: tuple[np.ndarray, np.ndarray]) -> Finding:
    """Find out which of `SUM`, `MEANS` and `WEIGHTS` makes a model inaccurate, and how one sees it.

    Args:
        measured: of a training whose model recognises too little.
    """
    weights = measured[0]["weights"]
    if name := _summed_gradient(measured):
        words = "the sum is wrong: the optimizer's first gradient of {tensor} is the ranks' sum, and not their mean"
        return own(SUM, words, tensor=name)
    if name := _too_long(weights):
        words = (
            "the sum is wrong: {tensor} is more than {most:g} times as long as at the start, which training does not do"
        )
        return own(SUM, words, tensor=name, most=LONG)
    if began_apart(measured):
        return own(WEIGHTS, "the weights are wrong: in its first step a rank had different weights from rank 0")
    without = recognised(weights, *held_out, running_means=False)
    key, part = WEIGHTS, "the weights are wrong, and not only the running means"
    if without >= BUDGET.accuracy:
        key, part = MEANS, "the running means are wrong, and not the weights"
    words = f"{part}. If batch norm uses the means of the held-out images instead, these weights recognise {{without}}"
    return own(key, words, {"without": percent(without, 1)})


def began_apart(measured: Sequence[dict[str, Any]]) -> bool:
    """Whether the ranks had different weights in their first step, as far as one saw them."""
    began = [result["began"] for result in measured if result["began"] is not None]
    return any(not np.allclose(value, began[0], rtol=0.01, atol=1e-3) for value in began)


def _summed_gradient(measured: Sequence[dict[str, Any]]) -> str | None:
    """The tensor whose first gradient every optimizer got as the ranks' sum; None where it did not."""
    if any(result["own"] is None or result["used"] is None for result in measured):
        return None
    total = sum(result["own"] for result in measured)
    distance = max(float(np.linalg.norm(result["used"] - total)) for result in measured)
    return "linear.bias" if distance <= 0.02 * float(np.linalg.norm(total)) else None


def _too_long(weights: dict[str, np.ndarray]) -> str | None:
    """The first layer whose weights are longer than any training makes them; None where there is none."""
    first = {name: values.numpy() for name, values in network(0).state_dict().items() if name.endswith(".weight")}
    norm = np.linalg.norm
    return next((name for name, values in first.items() if not norm(weights[name]) < LONG * norm(values)), None)


def unfit(measured: Sequence[dict[str, Any]]) -> Finding | None:
    """Find out why the weights cannot be judged; None where they can."""
    for rank, result in enumerate(measured):
        if result["weights"] is None:
            what = "nothing" if result["returned"] == "NoneType" else f"an object of type {result['returned']}"
            return own("no-network", "rank {rank} returned {what}, expected the trained VGG-11", rank=rank, what=what)
    idle = [rank for rank, result in enumerate(measured) if not result["images"]]
    if idle:
        words = "on rank {rank} no image went through the `model` that it was given, in training"
        return own("no-image", words, rank=idle[0])
    return disagreement(measured)


def past_the_links(measured: Sequence[dict[str, Any]]) -> Finding | None:
    """Find what a rank put where others could read it without a link; None where there was nothing."""
    for rank, result in enumerate(measured):
        for what, done in _PAST.items():
            amount = result["past"][what]
            if amount > (0 if what == "Unix sockets" else PAST_THE_LINKS):
                measured = {"amount": megabytes_text(amount)}
                return own(PAST, f"rank {{rank}} {done}; {NOTHING_SHARED}", measured, rank=rank)
    return None


def too_little(measured: Sequence[dict[str, Any]]) -> Finding | None:
    """Find a rank that sent less than its images teach; None where none did."""
    words = "rank {rank} sent {sent}, too little for what its images teach"
    few = ((rank, megabytes_text(result["sent"])) for rank, result in enumerate(measured) if result["sent"] < LEAST)
    return next((own("too-little-sent", words, {"sent": sent}, rank=rank) for rank, sent in few), None)


def missed(result: CapstoneResult) -> Finding | None:
    """Find what is not as asked for; None where all is well."""
    names = join(result.misses())
    measured = {"names": names, "used": used(result)}
    if result.nearly:
        words = (
            "the accuracy is missed by little, and the budgets are kept: {used}. Other images may decide otherwise, so "
            "run the check again, which deals new ones"
        )
        return own(NEARLY, words, measured)
    return own("missed", "missed: {names}. {used}", measured) if names else None

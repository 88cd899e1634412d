"""What the runs of lesson 11 say, in a sentence: written here once, chosen by the numbers."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from course_utils.lessons.hybrid_and_sharded.mesh_parts import MeshPart, holding_the_same
from course_utils.lessons.hybrid_and_sharded.mesh_training import MeshRun
from course_utils.lessons.hybrid_and_sharded.report_network import RankTraining
from course_utils.words import bytes_text, capital, count, join, number_text, percent

SAME = 1e-10
"""In double precision, losses and weights nearer than this are the same training, added up in another order."""
CHANCE = 0.1
"""The share of ten digits that guessing recognises."""


def largest_difference(first: Sequence[float] | torch.Tensor, second: Sequence[float] | torch.Tensor) -> float:
    """The largest difference between two lists of numbers of one length, infinite where one is not a number."""
    difference = np.abs(np.subtract(np.asarray(first), np.asarray(second))).max()
    return float(difference) if np.isfinite(difference) else float("inf")


def distances(replicas: Sequence[RankTraining]) -> dict[str, list[float]]:
    """After each step, how far each rank's fully connected layers are from rank 0's, by the rank's name."""
    first = replicas[0].dense
    others = enumerate(replicas[1:], start=1)
    return {f"rank {rank}": (replica.dense - first).norm(dim=1).tolist() for rank, replica in others}


def drift_text(replicas: Sequence[RankTraining]) -> str:
    """How far the fully connected layers end up from rank 0's, also as a share of the distance that those moved."""
    first = replicas[0].dense
    went = (first[-1] - first[0]).norm().item()
    far = max(line[-1] for line in distances(replicas).values())
    convolutions = max(
        largest_difference(replica.convolutions[-1], replicas[0].convolutions[-1]) for replica in replicas
    )
    agree = "The convolutions agree" if convolutions <= SAME else "Not even the convolutions agree"
    if far <= SAME:
        return f"{agree}, and so do the fully connected layers"
    share = far / went if went else float("inf")
    moved = f"{percent(share)} of the distance that rank 0's layers moved"
    return f"{agree}, but the fully connected layers end up to {far:.2g} away from rank 0's, {moved}"


def symptom(replicas: Sequence[RankTraining]) -> str:
    """What replicas that drift show: "a" a loss that does not fall, "b" images not recognised, "c" neither."""
    if any(np.mean(replica.losses[-5:]) >= replica.losses[0] for replica in replicas):
        return "a"
    return "b" if min(replica.accuracy for replica in replicas) < 3 * CHANCE else "c"


def muon_drift_text(own_rows: Sequence[float], serial: Sequence[float], apart: float) -> str:
    """What a wrong Muon shows: whether its loss falls as well, and how far its weights are from the right ones.

    Args:
        own_rows, serial: losses of each step, if each rank orthogonalises its own rows, and in one process.
        apart: the distance of the weights in the end, as a share of the distance that the right ones have moved.
    """
    if apart <= SAME:
        return "The wrong Muon has the weights of one process"
    first, last = own_rows[0], own_rows[-1]
    falls = (
        "falls even faster" if last < min(first, serial[-1]) else "falls as well" if last < first else "doesn't fall"
    )
    miss = f"its weights miss those of one process by {percent(apart)} of the distance that these moved"
    return f"The loss of the wrong Muon {falls}, {'and' if last >= first else 'but'} {miss}"


def muon_ways_text(sent: Mapping[str, Mapping[str, float]], orthogonalised: Mapping[str, float]) -> str:
    """Which way of using Muon over shards sends the least, and which orthogonalises the fewest matrices on a rank."""
    sums = dict(zip(sent, totals(sent), strict=True))
    least, fewest = min(sums, key=sums.__getitem__), min(orthogonalised, key=orthogonalised.__getitem__)
    matrices = f"{orthogonalised[fewest]:g} instead of {max(orthogonalised.values()):g} matrices"
    if least == fewest:
        return f"{capital(least)} sends the least, and lets a rank orthogonalise {matrices}"
    return f"{capital(least)} sends the least, but with {fewest} a rank orthogonalises {matrices}"


def totals(bars: Mapping[str, Mapping[str, float]]) -> list[float]:
    """The sum of each bar's parts."""
    return [sum(parts.values()) for parts in bars.values()]


def stages_text(kept: Mapping[str, Mapping[str, float]], sent: Mapping[str, Mapping[str, float]]) -> str:
    """What the last stage saves and costs beside the first: the parts of both, in the stages' order."""
    first, *_, last = kept
    stays, *_, goes = totals(kept)
    before, *_, after = totals(sent)
    more = after / before
    cost = "the same bytes" if abs(more - 1) < 0.02 else f"{number_text(more)} times as many bytes"
    keeps = f"{last[:1].upper()}{last[1:]} keeps {bytes_text(goes)} instead of the {bytes_text(stays)} of {first}"
    return f"{keeps}, and sends {cost}"


def mixtures_text(sent: Mapping[str, Mapping[str, float]]) -> str:
    """Which mesh sends the least, and which the most: bytes that a rank sends, by mesh and axis."""
    sums = dict(zip(sent, totals(sent), strict=True))
    least, most = min(sums, key=sums.__getitem__), max(sums, key=sums.__getitem__)
    if sums[least] > 0.98 * sums[most]:
        return "All these meshes send the same"
    factor = number_text(sums[most] / sums[least])
    return f"{least} sends the least, and {most} sends {factor} times as much"


def same_text(losses: Mapping[str, Sequence[float]], serial: Sequence[float]) -> str:
    """How far the losses of each mixture are from the serial ones, and whether that is rounding.

    Raises:
        AssertionError: a mixture trains something else.
    """
    far = {name: largest_difference(line, serial) for name, line in losses.items()}
    assert max(far.values()) <= SAME, f"this is not the training run of one process: {far}"
    who = join(list(far)) if len(far) < 4 else f"all {len(far)} runs"
    near = (
        f"within {max(far.values()):.0e} of one process" if max(far.values()) else "as in one process, digit for digit"
    )
    return f"{who}: the loss is {near}, in each of {count(len(serial), 'step')}"


def saved_text(bars: Mapping[str, Mapping[str, float]]) -> str:
    """Say what share is kept with the last method, and with the best of those between the first and the last."""
    sums = dict(zip(bars, totals(bars), strict=True))
    first, *between, last = sums
    best = min(between, key=sums.__getitem__)
    shares = [percent(sums[name] / sums[first]) for name in (best, last)]
    return f"With {best} {shares[0]} of the activations are kept, with {last} {shares[1]}"


def clip_text(by_own_norms: Sequence[MeshRun], serial: Sequence[float]) -> str:
    """What happens if ranks clip by their own norms: how far losses and copies of a weight differ in the end.

    Args:
        by_own_norms: of all ranks; the first two are a tensor group.
        serial: losses of one process that clips by the norm of the whole gradient.
    """
    loss, steps = largest_difference(by_own_norms[-1].losses, serial), len(serial)
    if loss <= SAME:
        return f"When ranks clip by their own norms, they train as one process does, for {steps} steps"
    first, second = (run.parameters for run in by_own_norms[:2])
    drift = max(largest_difference(first[name], second[name]) for name in first)
    copies = f", and copies of a weight by up to {drift:.1g}" if drift > SAME else ""
    return f"When ranks clip by their own norms for {steps} steps, losses differ by up to {loss:.1g}{copies}"


def utilizations_text(parts: Mapping[str, Mapping[str, float]]) -> str:
    """From where to where the MFU of several training runs lies: training → part → share of the peak."""
    sums = totals(parts)
    low, high = percent(min(sums)), percent(max(sums))
    return f"The models' own arithmetic takes {low} to {high} of the peak"


def held_text(parts: Sequence[Mapping[str, MeshPart]], batch: str) -> str:
    """Which ranks hold the same weights, and which read the same examples; `batch` names what is no weight."""
    weights = [name for name in parts[0] if name != batch]
    same = _groups_text(holding_the_same(parts, weights), "hold the same weights")
    read = _groups_text(holding_the_same(parts, [batch]), "read the same examples")
    return f"{same[0].upper()}{same[1:]}; {read}"


def _groups_text(groups: Sequence[Sequence[int]], what: str) -> str:
    shared = [join(list(map(str, group))) for group in groups if len(group) > 1]
    if not shared:
        return f"no two ranks {what}"
    first, *others = shared
    return f"ranks {first} {what}" + (f", and so do {join(others)}" if others else "")
